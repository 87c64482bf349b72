"""What every query class starts from: the connection, transactions, batch size, conditional inserts."""

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
    """Where the tables are, and the clock by which what is written there is dated.

    Each module that knows what some of the tables hold has a class of what can be asked of them and written
    to them; a store can do what all of these can.
    """

    engine: Engine
    clock: Callable[[], datetime]


def insert_if(table: Table, row: Mapping[str, Any], condition: ColumnElement[bool]) -> Insert:
    """Insert a row if a condition holds, as one statement.

    SQLite refuses to write in a transaction that has read what another has changed since.
    """
    values = select(*(literal(value, table.c[name].type) for name, value in row.items())).where(condition)
    return insert(table).from_select(list(row), values)
