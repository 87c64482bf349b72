"""The base of all query classes: the engine, the clock, and conditional inserts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, literal, select

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Engine, Insert, Table


@dataclass(frozen=True, slots=True)
class Tables:
    """The engine of the tables, and the clock for times written there.

    Each module for some of the tables has a class with their queries; the store combines all of these.
    """

    engine: Engine
    clock: Callable[[], datetime]


def insert_if(table: Table, row: Mapping[str, Any], condition: ColumnElement[bool]) -> Insert:
    """Insert a row if a condition holds, as one statement.

    SQLite refuses to write in a transaction that has read what another has changed since.
    """
    values = select(*(literal(value, table.c[name].type) for name, value in row.items())).where(condition)
    return insert(table).from_select(list(row), values)
