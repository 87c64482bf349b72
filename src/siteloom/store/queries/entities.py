"""Entities: the things that records of several sources tell of, as they were linked last."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, func, insert, select

from siteloom.core.database import writing
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.sequences import batches, row_batches
from siteloom.core.storable_text import storable, storable_json
from siteloom.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Engine, Row, Select

_WRITTEN_AT_A_TIME = 5_000
_READ_AT_A_TIME = 1_000
_MARK = "\x1f"  # around the names of attributes: none has it, as it cannot be seen


class Linking(NamedTuple):
    """What was linked last: what its content tells of it, and when that was."""

    run_id: int
    content: dict[str, Any]
    at: datetime


class LinkedEntity(NamedTuple):
    """A thing: its number, how many sources tell of it, in which attributes they differ, and what they say.

    `words` are all values, for the search.
    """

    number: int
    sources: int
    conflicting: tuple[str, ...]
    words: tuple[str, ...]
    content: Mapping[str, Any]


class StoredEntity(NamedTuple):
    """A thing as it is kept."""

    number: int
    sources: int
    conflicting: tuple[str, ...]
    content: dict[str, Any]


class EntityFilter(NamedTuple):
    """Which entities are wanted: all words stand in their values, and sources differ, or do so in one."""

    words: tuple[str, ...] = ()
    has_conflicts: bool = False
    attribute: str | None = None
    least_sources: int = 1


@dataclass(frozen=True, slots=True)
class Entities:
    """The entities of a store."""

    engine: Engine
    clock: Callable[[], datetime]

    def replace(self, run_id: int, content: Mapping[str, object], entities: Iterable[LinkedEntity]) -> None:
        """Keep entities in the place of those before, as a whole or not at all."""
        linking = {"run_id": run_id, "content": dict(content), "at": self.clock()}
        # All of them first: while the transaction lasts, no one else can write.
        rows = [_row(entity) for entity in entities]
        with held_back_interrupt(), writing(self.engine) as connection:
            connection.execute(delete(schema.linkings))
            connection.execute(delete(schema.entities))
            connection.execute(insert(schema.linkings), linking)
            for batch in batches(rows, _WRITTEN_AT_A_TIME):
                connection.execute(insert(schema.entities), batch)

    def last_linking(self) -> Linking | None:
        """What was linked last, if anything was."""
        with self.engine.connect() as connection:
            found = connection.execute(select(schema.linkings)).one_or_none()
        return None if found is None else Linking(*found)

    def get(self, number: int) -> StoredEntity | None:
        """An entity, if there is one of this number."""
        with self.engine.connect() as connection:
            found = connection.execute(_kept().where(schema.entities.c.number == number)).one_or_none()
        return None if found is None else _entity(found)

    def count(self, wanted: EntityFilter = EntityFilter()) -> int:
        """How many there are."""
        query = select(func.count()).select_from(schema.entities).where(*_conditions(wanted))
        with self.engine.connect() as connection:
            found: int = connection.execute(query).scalar_one()
        return found

    def page(self, wanted: EntityFilter, start: int, limit: int) -> list[StoredEntity]:
        """Some of them, by number."""
        query = _kept().where(*_conditions(wanted)).order_by(schema.entities.c.number)
        with self.engine.connect() as connection:
            return [_entity(row) for row in connection.execute(query.offset(start).limit(limit))]

    def all(self, wanted: EntityFilter = EntityFilter()) -> Iterator[StoredEntity]:
        """All of them by number, read a few at a time."""
        query = _kept().where(*_conditions(wanted))
        for rows in row_batches(self.engine, query, [schema.entities.c.number], _READ_AT_A_TIME):
            yield from map(_entity, rows)


def _row(entity: LinkedEntity) -> dict[str, object]:
    return {
        "number": entity.number,
        "sources": entity.sources,
        "conflicts": len(entity.conflicting),
        "conflicting": _marked(entity.conflicting),
        "words": storable("\n".join(entity.words).casefold()),
        "content": storable_json(json.dumps(entity.content, ensure_ascii=False)),
    }


def _marked(names: Iterable[str]) -> str:
    return _MARK + "".join(f"{storable(name)}{_MARK}" for name in names)


def _kept() -> Select[int, int, str, str]:
    columns = schema.entities.c
    return select(columns.number, columns.sources, columns.conflicting, columns.content)


def _entity(row: Row[*tuple[Any, ...]]) -> StoredEntity:
    names = tuple(row.conflicting.strip(_MARK).split(_MARK)) if row.conflicting != _MARK else ()
    return StoredEntity(row.number, row.sources, names, json.loads(row.content))


def _conditions(wanted: EntityFilter) -> list[ColumnElement[bool]]:
    columns = schema.entities.c
    found = [columns.words.contains(storable(word.casefold()), autoescape=True) for word in wanted.words]
    if wanted.has_conflicts:
        found.append(columns.conflicts > 0)
    if wanted.attribute is not None:
        # Every database minds the case of letters here, but SQLite not in `contains`.
        without = func.replace(columns.conflicting, _marked([wanted.attribute]), "")
        found.append(without != columns.conflicting)
    if wanted.least_sources > 1:
        found.append(columns.sources >= wanted.least_sources)
    return found
