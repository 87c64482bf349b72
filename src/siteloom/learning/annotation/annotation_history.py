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
    def all(self) -> list[Statement]:
        """Every statement."""
        return [said for part in (self.values, *self.records) for said in part.values()]

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
    found = PageStatements({}, ())
    for version in versions:
        example = version.example
        nodes = [*example.record_nodes, *({} for _ in example.records)]
        parts = [
            _stated(example.values, example.nodes),
            *(_stated(record, nodes[number]) for number, record in enumerate(example.records)),
        ]
        earlier = _Earlier(found, names={name for part in parts for name in part})
        values, *records = (
            {
                name: earlier.statement(number, name, said)
                or Statement(said, version.author, version.at, version.revision)
                for name, said in part.items()
            }
            for number, part in enumerate(parts)
        )
        found = PageStatements(values, tuple(records))
    return found


class _Earlier:
    """What held before, to be found again; `names` are those of all attributes that are told of now."""

    def __init__(self, before: PageStatements, names: Collection[str]) -> None:
        self._parts = (before.values, *before.records)
        self._by_name: dict[tuple[str, tuple[StatedValue, ...]], Statement] = {}
        self._renamed: dict[tuple[StatedValue, ...], Statement] = {}
        for part in self._parts:
            for name, one in part.items():
                if one.values:  # that something is absent could have been said of anything
                    self._by_name.setdefault((name, one.values), one)
                    if name not in names:
                        self._renamed.setdefault(one.values, one)

    def statement(self, part: int, name: str, said: tuple[StatedValue, ...]) -> Statement | None:
        """The same statement as it was made before: at the same place, of another record, by another name."""
        same = self._parts[part].get(name) if part < len(self._parts) else None
        if same is not None and same.values == said:
            return same
        return self._by_name.get((name, said)) or self._renamed.get(said)


def _stated(
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
    kept = [number for number, record in enumerate(records) if any(record.values())]
    return replace(
        example,
        values={},
        nodes={},
        records=[records[number] for number in kept],
        record_nodes=[nodes[number] for number in kept],
    )


def amended(example: Example, said: Mapping[str, Sequence[Picked] | None], record: int | None) -> Example:
    """An example with what was said of some attributes; None takes back what was said of one.

    If it is said of a record, the page is a list from now on: what was said of it before is its first record.
    """
    if record is None:
        if example.records:
            raise UsageError("This page lists records: say which of them is meant.")
        values, nodes = _amended(example.values, example.nodes, said)
        return replace(example, values=values, nodes=nodes)
    records = [*example.records] or ([example.values] if example.values else [])
    record_nodes = [*example.record_nodes] or ([example.nodes] if example.values else [])
    if record > len(records):
        raise UsageError(f"There is no record {record + 1} on this page: it has {len(records)} so far.")
    if record == len(records):
        records.append({})
    record_nodes += [{} for _ in records[len(record_nodes) :]]
    records[record], record_nodes[record] = _amended(records[record], record_nodes[record], said)
    kept = [number for number, values in enumerate(records) if values]
    return replace(
        example,
        values={},
        nodes={},
        records=[records[number] for number in kept],
        record_nodes=[record_nodes[number] for number in kept],
    )


def _amended(
    values: Mapping[str, Sequence[str]],
    nodes: Mapping[str, Sequence[str]],
    said: Mapping[str, Sequence[Picked] | None],
) -> tuple[dict[str, Sequence[str]], dict[str, Sequence[str]]]:
    values, nodes = dict(values), dict(nodes)
    for name, picked in said.items():
        values.pop(name, None)
        nodes.pop(name, None)
        if picked is not None:
            values[name] = [one.text for one in picked]
            nodes[name] = [one.node for one in picked]
    return values, nodes


def renamed(example: Example, names: Mapping[str, str | None]) -> Example:
    """An example with other names for some attributes, or, with None, without them."""

    def under_new_names(values: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
        told = ((names.get(name, name), texts) for name, texts in values.items())
        return {name: texts for name, texts in told if name is not None}

    records = [under_new_names(record) for record in example.records]
    kept = [number for number, record in enumerate(records) if record]
    record_nodes = [under_new_names(record) for record in example.record_nodes]
    return replace(
        example,
        values=under_new_names(example.values),
        nodes=under_new_names(example.nodes),
        records=[records[number] for number in kept],
        record_nodes=[record_nodes[number] for number in kept] if record_nodes else [],
    )
