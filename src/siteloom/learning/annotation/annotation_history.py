"""The current statements about a page, attribute by attribute, derived from all its annotations."""

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
    """One version of a page's annotation; its revision is greater than that of all earlier versions."""

    revision: int
    author: str
    at: datetime
    example: Example


class StatedValue(NamedTuple):
    """A value, and the path of its node if that is known."""

    text: str
    node: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """The last statement about an attribute: its values, or none if it is absent, with author and time."""

    values: tuple[StatedValue, ...]
    author: str
    at: datetime
    revision: int


Statements = dict[str, Statement]


class PageStatements(NamedTuple):
    """The current statements about a page as a whole, or about each of its annotated records."""

    values: Statements
    records: tuple[Statements, ...]

    @property
    def all_statements(self) -> list[Statement]:
        """Every statement."""
        return [statement for unit in (self.values, *self.records) for statement in unit.values()]

    @property
    def as_list(self) -> PageStatements:
        """The statements of a list page: those about the whole page become those about its first record."""
        return self if self.records or not self.values else PageStatements({}, (self.values,))

    def of(self, record: int | None) -> Statements:
        """Return the statements about the whole page or one record, none for a record without annotation."""
        if record is None:
            return self.values
        return self.records[record] if record < len(self.records) else {}


def statements(versions: Iterable[Version]) -> PageStatements:
    """Return the statements after all versions, given from the oldest on.

    Repeating a statement, renaming its attribute or renumbering its record does not change its author.
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
                or Statement(values=stated, author=version.author, at=version.at, revision=version.revision)
                for name, stated in unit.items()
            }
            for number, unit in enumerate(units)
        )
        current = PageStatements(values, tuple(records))
    return current


class _EarlierStatements:
    """Earlier statements, to be matched with new values; `names` are all current attributes."""

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
        """Find the earlier statement with these values: in the same unit, another record, or another name."""
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
    """Return the example of a list page: values of the page as a whole become its first record.

    Records without any value are dropped.
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
    """Return an example with changed values of some attributes; None removes the statement about one.

    A change to a record turns the page into a list: earlier values of the page become its first record.
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
    """Return an example with some attributes renamed, or removed where the new name is None."""

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
