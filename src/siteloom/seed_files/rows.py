"""Rows of tables, as they are read one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROWS_AT_A_TIME = 1_000


class BadRow(NamedTuple):
    """A row that cannot be read, and why."""

    reason: str
    detail: str = ""


NumberedRows: TypeAlias = "Iterator[tuple[int, Mapping[str, object] | BadRow]]"
"""Rows as they come, each with its number, from 1 on or that of its line."""


class Rows(NamedTuple):
    """The numbered rows of something, how a place in it is named, and what it is called."""

    rows: NumberedRows
    place: str
    name: str
