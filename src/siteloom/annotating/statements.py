"""What people said of a page, attribute by attribute, out of all annotations that it ever had."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from siteloom.annotating.picks import Picked
    from siteloom.model import Example


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

    def of(self, record: int | None) -> Statements:
        """What holds of the whole page or of one record; nothing yet of a record that no one told of."""
        if record is None:
            return self.values
        return self.records[record] if record < len(self.records) else {}


def statements(versions: Iterable[Version]) -> PageStatements:
    """What holds after all versions, the oldest first; who repeats a statement did not make it."""
    found = PageStatements({}, ())
    for version in versions:
        example = version.example
        nodes = [*example.record_nodes, *({} for _ in example.records)]
        found = PageStatements(
            _continued(found.values, example.values, example.nodes, version),
            tuple(
                _continued(found.of(number), record, nodes[number], version)
                for number, record in enumerate(example.records)
            ),
        )
    return found


def _continued(
    before: Statements,
    values: Mapping[str, Sequence[str]],
    nodes: Mapping[str, Sequence[str]],
    version: Version,
) -> Statements:
    after: Statements = {}
    for name, texts in values.items():
        paths = list(nodes.get(name, ()))
        said = tuple(
            StatedValue(text, paths[number] if number < len(paths) else None)
            for number, text in enumerate(texts)
        )
        known = before.get(name)
        after[name] = (
            known
            if known is not None and known.values == said
            else Statement(said, version.author, version.at, version.revision)
        )
    return after


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
