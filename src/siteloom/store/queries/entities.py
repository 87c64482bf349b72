"""Entities: records of several sources about the same thing, as last linked."""

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
    """The last linking: its content, and when it was made."""

    run_id: int
    content: dict[str, Any]
    at: datetime


class LinkedEntity(NamedTuple):
    """An entity: its number, the number of sources, the attributes in which they differ, and the content.

    `words` are all values, for searching.
    """

    number: int
    sources: int
    conflicting: tuple[str, ...]
    words: tuple[str, ...]
    content: Mapping[str, Any]


class StoredEntity(NamedTuple):
    """An entity in the store."""

    number: int
    sources: int
    conflicting: tuple[str, ...]
    content: dict[str, Any]


class EntityFilter(NamedTuple):
    """A filter of entities by words in their values, and by conflicts in any or in one attribute."""

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
        """Return the last linking, if any."""
        with self.engine.connect() as connection:
            row = connection.execute(select(schema.linkings)).one_or_none()
        return None if row is None else Linking(*row)

    def get(self, number: int) -> StoredEntity | None:
        """An entity, if there is one of this number."""
        with self.engine.connect() as connection:
            row = connection.execute(
                _select_entities().where(schema.entities.c.number == number)
            ).one_or_none()
        return None if row is None else _entity(row)

    def count(self, entity_filter: EntityFilter = EntityFilter()) -> int:
        """Count the entities that match a filter."""
        query = select(func.count()).select_from(schema.entities).where(*_conditions(entity_filter))
        with self.engine.connect() as connection:
            count: int = connection.execute(query).scalar_one()
        return count

    def page(self, entity_filter: EntityFilter, start: int, limit: int) -> list[StoredEntity]:
        """Some of them, by number."""
        query = _select_entities().where(*_conditions(entity_filter)).order_by(schema.entities.c.number)
        with self.engine.connect() as connection:
            return [_entity(row) for row in connection.execute(query.offset(start).limit(limit))]

    def each_entity(self, entity_filter: EntityFilter = EntityFilter()) -> Iterator[StoredEntity]:
        """All of them by number, read a few at a time."""
        query = _select_entities().where(*_conditions(entity_filter))
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


def _select_entities() -> Select[int, int, str, str]:
    columns = schema.entities.c
    return select(columns.number, columns.sources, columns.conflicting, columns.content)


def _entity(row: Row[*tuple[Any, ...]]) -> StoredEntity:
    names = tuple(row.conflicting.strip(_MARK).split(_MARK)) if row.conflicting != _MARK else ()
    return StoredEntity(row.number, row.sources, names, json.loads(row.content))


def _conditions(entity_filter: EntityFilter) -> list[ColumnElement[bool]]:
    columns = schema.entities.c
    conditions = [
        columns.words.contains(storable(word.casefold()), autoescape=True) for word in entity_filter.words
    ]
    if entity_filter.has_conflicts:
        conditions.append(columns.conflicts > 0)
    if entity_filter.attribute is not None:
        # Every database minds the case of letters here, but SQLite not in `contains`.
        without = func.replace(columns.conflicting, _marked([entity_filter.attribute]), "")
        conditions.append(without != columns.conflicting)
    if entity_filter.least_sources > 1:
        conditions.append(columns.sources >= entity_filter.least_sources)
    return conditions
