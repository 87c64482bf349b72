"""Writing a row only as long as something still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, literal, select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Insert, Table


def insert_if(table: Table, row: Mapping[str, Any], condition: ColumnElement[bool]) -> Insert:
    """Insert a row if a condition holds, as one statement.

    SQLite refuses to write in a transaction that has read what another has changed since.
    """
    values = select(*(literal(value, table.c[name].type) for name, value in row.items())).where(condition)
    return insert(table).from_select(list(row), values)
