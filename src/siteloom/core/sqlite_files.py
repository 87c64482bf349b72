"""SQLite databases, which are opened here and nowhere else: each may be the work of someone else.

A rollback journal tells SQLite how to undo what a program left half done. It may name a "super-journal", the
file that programs which write several databases at once keep meanwhile. SQLite removes that file when it has
undone the change, whatever file it is. So a journal from someone else could have any file removed, and no
database is opened that has such a journal.

Views, triggers and constraints of a database call only functions that do no harm.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from siteloom.core.confined_folder import ConfinedFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import URL, Engine

# What stands at the end of a journal that names a super-journal: https://www.sqlite.org/fileformat2.html
_END = bytes.fromhex("d9d505f920a163d7")
# What SQLite's authors advise for files of others: https://www.sqlite.org/security.html
_GUARDS = ("trusted_schema=OFF", "cell_size_check=ON")
_SECONDS_OF_PATIENCE = 5.0  # with others that have it locked, as Python has it


def open_sqlite(
    file: Path, refused: Callable[[str], Exception], *, timeout: float = _SECONDS_OF_PATIENCE
) -> sqlite3.Connection:
    """Open a database, or raise what `refused` makes of the sentence that says why not.

    No transaction is begun unless a statement begins one.
    """
    _check(file, refused)
    connection = sqlite3.connect(file, timeout=timeout, isolation_level=None)
    _guard(connection)
    return connection


def temporary_sqlite() -> sqlite3.Connection:
    """A new database in a file without a name, which SQLite removes when it is closed, whatever happens."""
    return sqlite3.connect("")


def engine_for(url: URL, refused: Callable[[str], Exception], **options: Any) -> Engine:
    """SQLAlchemy's engine for any database; connections to one of SQLite are opened as by `open_sqlite`."""
    import sqlalchemy  # noqa: PLC0415 - slow to load, and few files of others are databases

    engine = sqlalchemy.create_engine(url, **options)
    if engine.dialect.name == "sqlite" and url.database:
        file = sqlite_file(url)
        sqlalchemy.event.listen(engine, "do_connect", lambda *_: _check(file, refused))
        sqlalchemy.event.listen(engine, "connect", lambda connection, _: _guard(connection))
    return engine


def sqlite_file(url: URL) -> Path:
    """The file of a database."""
    database = str(url.database)
    if "uri" in url.query and database.startswith("file:"):
        return Path(unquote(database.removeprefix("file:")))
    return Path(database)


def journal_fault(database: Path) -> str:
    """Why SQLite must not open a database because of its journal: a sentence, or nothing."""
    file = database.resolve()  # as SQLite does: the journal is beside the file, not beside a link to it
    journal = file.with_name(f"{file.name}-journal")
    try:
        with ConfinedFolder(journal.parent).open(journal.name, "rb") as opened:
            opened.seek(0, os.SEEK_END)
            opened.seek(max(0, opened.tell() - len(_END)))
            names_another = opened.read() == _END
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{journal} cannot be read: {error.strerror}."
    if not names_another:
        return ""
    return (
        f"{journal} names another file, which SQLite would remove: remove the journal, unless a program of "
        "yours was changing several databases at once."
    )


def _check(file: Path, refused: Callable[[str], Exception]) -> None:
    if fault := journal_fault(file):
        raise refused(fault)


def _guard(connection: sqlite3.Connection) -> None:
    for pragma in _GUARDS:
        connection.execute(f"PRAGMA {pragma}")
