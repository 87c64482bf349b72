"""What people said of a page, attribute by attribute, out of all annotations that it ever had."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from siteloom.core.model import Example
    from siteloom.learning.annotation.clicked_nodes import Picked


class Version(NamedTuple):
    """What was said of a page at one time as a whole; the revision is greater than that of any before."""

    revision: int
    author: str
    at: datetime
    example: Example


class StatedValue(NamedTuple):
    """A value, and the node that it was taken from, if that is known."""

    text: str
    node: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """What was last said of an attribute, by whom, and when: its values, or none if it is absent."""

    values: tuple[StatedValue, ...]
    author: str
    at: datetime
    revision: int


Statements = dict[str, Statement]


class PageStatements(NamedTuple):
    """What holds of a page: of the whole page, or of each of its records that were told of."""

    values: Statements
    records: tuple[Statements, ...]

    @property
    def all_statements(self) -> list[Statement]:
        """Every statement."""
        return [statement for unit in (self.values, *self.records) for statement in unit.values()]

    @property
    def as_list(self) -> PageStatements:
        """The same of a page that is a list: what was said of it as a whole is said of its first record."""
        return self if self.records or not self.values else PageStatements({}, (self.values,))

    def of(self, record: int | None) -> Statements:
        """What holds of the whole page or of one record; nothing yet of a record that no one told of."""
        if record is None:
            return self.values
        return self.records[record] if record < len(self.records) else {}


def statements(versions: Iterable[Version]) -> PageStatements:
    """What holds after all versions, the oldest first.

    Who repeats a statement did not make it, nor who gave its attribute another name, or counted its record
    otherwise.
    """
    current = PageStatements({}, ())
    for version in versions:
        example = version.example
        nodes = [*example.record_nodes, *({} for _ in example.records)]
        units = [
            _stated_values(example.values, example.nodes),
            *(_stated_values(record, nodes[number]) for number, record in enumerate(example.records)),
        ]
        earlier = _EarlierStatements(current, names={name for unit in units for name in unit})
        values, *records = (
            {
                name: earlier.statement(number, name, stated)
                or Statement(stated, version.author, version.at, version.revision)
                for name, stated in unit.items()
            }
            for number, unit in enumerate(units)
        )
        current = PageStatements(values, tuple(records))
    return current


class _EarlierStatements:
    """What held before, to be found again; `names` are those of all attributes that are told of now."""

    def __init__(self, earlier: PageStatements, names: Collection[str]) -> None:
        self._units = (earlier.values, *earlier.records)
        self._by_name: dict[tuple[str, tuple[StatedValue, ...]], Statement] = {}
        self._renamed: dict[tuple[StatedValue, ...], Statement] = {}
        for unit in self._units:
            for name, statement in unit.items():
                if statement.values:  # that something is absent could have been said of anything
                    self._by_name.setdefault((name, statement.values), statement)
                    if name not in names:
                        self._renamed.setdefault(statement.values, statement)

    def statement(self, unit: int, name: str, values: tuple[StatedValue, ...]) -> Statement | None:
        """The same statement as it was made before: at the same place, of another record, by another name."""
        unchanged = self._units[unit].get(name) if unit < len(self._units) else None
        if unchanged is not None and unchanged.values == values:
            return unchanged
        return self._by_name.get((name, values)) or self._renamed.get(values)


def _stated_values(
    values: Mapping[str, Sequence[str]], nodes: Mapping[str, Sequence[str]]
) -> dict[str, tuple[StatedValue, ...]]:
    stated = {}
    for name, texts in values.items():
        paths = list(nodes.get(name, ()))
        stated[name] = tuple(
            StatedValue(text, paths[number] if number < len(paths) else None)
            for number, text in enumerate(texts)
        )
    return stated


def as_list(example: Example) -> Example:
    """An example of a page that is a list: what was said of the page as a whole is its first record.

    A record of which nothing is known but what it lacks tells nothing.
    """
    records = [*example.records] or [example.values]
    nodes = [*example.record_nodes] or [example.nodes if not example.records else {} for _ in records]
    non_empty = [number for number, record in enumerate(records) if any(record.values())]
    return replace(
        example,
        values={},
        nodes={},
        records=[records[number] for number in non_empty],
        record_nodes=[nodes[number] for number in non_empty],
    )


def amend(example: Example, changes: Mapping[str, Sequence[Picked] | None], record: int | None) -> Example:
    """An example with what was said of some attributes; None takes back what was said of one.

    If it is said of a record, the page is a list from now on: what was said of it before is its first record.
    """
    if record is None:
        if example.records:
            raise UsageError("This page lists records: say which of them is meant.")
        values, nodes = _apply_changes(example.values, example.nodes, changes)
        return replace(example, values=values, nodes=nodes)
    records = [*example.records] or ([example.values] if example.values else [])
    record_nodes = [*example.record_nodes] or ([example.nodes] if example.values else [])
    if record > len(records):
        raise UsageError(f"There is no record {record + 1} on this page: it has {len(records)} so far.")
    if record == len(records):
        records.append({})
    record_nodes += [{} for _ in records[len(record_nodes) :]]
    records[record], record_nodes[record] = _apply_changes(records[record], record_nodes[record], changes)
    non_empty = [number for number, values in enumerate(records) if values]
    return replace(
        example,
        values={},
        nodes={},
        records=[records[number] for number in non_empty],
        record_nodes=[record_nodes[number] for number in non_empty],
    )


def _apply_changes(
    values: Mapping[str, Sequence[str]],
    nodes: Mapping[str, Sequence[str]],
    changes: Mapping[str, Sequence[Picked] | None],
) -> tuple[dict[str, Sequence[str]], dict[str, Sequence[str]]]:
    values, nodes = dict(values), dict(nodes)
    for name, picked in changes.items():
        values.pop(name, None)
        nodes.pop(name, None)
        if picked is not None:
            values[name] = [value.text for value in picked]
            nodes[name] = [value.node for value in picked]
    return values, nodes


def rename_attributes(example: Example, names: Mapping[str, str | None]) -> Example:
    """An example with other names for some attributes, or, with None, without them."""

    def under_new_names(values: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
        renamed_items = ((names.get(name, name), texts) for name, texts in values.items())
        return {name: texts for name, texts in renamed_items if name is not None}

    records = [under_new_names(record) for record in example.records]
    non_empty = [number for number, record in enumerate(records) if record]
    record_nodes = [under_new_names(record) for record in example.record_nodes]
    return replace(
        example,
        values=under_new_names(example.values),
        nodes=under_new_names(example.nodes),
        records=[records[number] for number in non_empty],
        record_nodes=[record_nodes[number] for number in non_empty] if record_nodes else [],
    )
