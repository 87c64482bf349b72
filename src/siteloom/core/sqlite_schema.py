"""Check the schema of a workspace in SQLite: it may have tables, indexes of columns, and the terms of FTS5.

Triggers, views, computed columns, constraints with expressions and the like run when tables are read or
written. Siteloom creates none, so any of them is untrusted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.core.wording import shortened

if TYPE_CHECKING:
    import sqlite3

_LONGEST_NAME = 80  # in a message
_NAME = r"""(?: \w++ | "\w++" | '\w++' )"""
_COLUMNS = rf"\( {_NAME} (?: ,\s*+ {_NAME} )*+ \)"
_TYPE = r"(?: BIGINT | BLOB | BOOLEAN | DATETIME | FLOAT | INTEGER | JSON | TEXT | VARCHAR\(\d++\) )"
_CONSTRAINT = rf"""(?:
    (?: CONSTRAINT\s {_NAME} \s )? (?: PRIMARY\sKEY | UNIQUE ) \s*+ {_COLUMNS}
  | FOREIGN\sKEY \s*+ {_COLUMNS} \s REFERENCES\s {_NAME} \s*+ {_COLUMNS}
)"""
_COLUMN = (
    rf"(?: {_NAME} (?: \s {_TYPE} )? (?: \s DEFAULT\s\d++ )? (?: \s NOT\sNULL )? (?: \s PRIMARY\sKEY )? )"
)
_ITEM = rf"(?: {_CONSTRAINT} | {_COLUMN} )"
_STATEMENT = re.compile(
    rf"""
    CREATE\sTABLE\s {_NAME} \s*+ \( \s*+ {_ITEM} (?: ,\s*+ {_ITEM} )*+ \s*+ \) (?: \s?WITHOUT\sROWID )?
  | CREATE\s (?: UNIQUE\s )? INDEX\s {_NAME} \s ON\s {_NAME} \s*+ {_COLUMNS}
  | CREATE\sVIRTUAL\sTABLE\ssearch_terms\s USING\sfts5\( (?: \w++ ,\s )++ content='',\stokenize='ascii' \)
    """,
    re.VERBOSE,
)


def schema_fault(connection: sqlite3.Connection) -> str:
    """Return a phrase for the first object in a schema that Siteloom does not create, or an empty text."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    for kind, name, table, statement in rows:
        # An index without a statement belongs to a constraint.
        if kind not in ("table", "index") or not _is_plain(statement, kind):
            where = "" if kind in ("table", "view") else f" of the table {_shown(table)}"
            return f"the {kind} {_shown(name)}{where}"
    return ""


def _shown(name: object) -> str:
    return shortened(repr(name), _LONGEST_NAME)


def _is_plain(statement: object, kind: str) -> bool:
    if statement is None:
        return kind == "index"
    return isinstance(statement, str) and _STATEMENT.fullmatch(statement) is not None
