"""The connection to the tables: SQLite in the workspace, or a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from siteloom.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    import psycopg
    from sqlalchemy import URL, Connection, Engine

SQLITE_FILE = "siteloom.db"
_BUSY_MILLISECONDS = 30_000  # commits are short, so this is ample


def sqlite_url(folder: Path) -> URL:
    """Where a workspace keeps its tables unless told otherwise."""
    return sqlalchemy.URL.create("sqlite", database=str(folder / SQLITE_FILE))


def postgres_url(text: str) -> URL:
    """A `postgresql://` address with the driver that Siteloom uses."""
    wanted = "it must look like postgresql://user@host/name"
    try:
        url = sqlalchemy.make_url(text)
    except (ArgumentError, ValueError):
        # Not shown, because no one can tell where in it a password stands.
        raise UsageError(f"The address of the database cannot be read: {wanted}.") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise UsageError(f"{url!r} is no address of a PostgreSQL database: {wanted}.")
    return url.set(drivername="postgresql+psycopg")


def connect(url: URL) -> Engine:
    """An engine for the tables at a URL; nothing is read or written yet."""
    try:
        engine = sqlalchemy.create_engine(url)
    except (ImportError, NoSuchModuleError) as error:
        raise MissingExtra("PostgreSQL", "postgres") from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "connect", _set_up_postgres)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    # Python's own opening of transactions leaves out CREATE and ALTER, which
    # would make a migration that is killed half done.
    connection.isolation_level = None
    # WAL lets others read while one writes; FULL makes a commit survive a
    # power cut, as "accepted" promises.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={_BUSY_MILLISECONDS}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _set_up_postgres(connection: psycopg.Connection, _: Any) -> None:
    # In another zone the first and last days of the calendar fall off its ends,
    # and crawlers do write 0001-01-01 for "never".
    connection.execute("SET TIME ZONE 'UTC'")
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
