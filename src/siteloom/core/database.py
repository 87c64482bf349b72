"""Databases: connect to SQLite or PostgreSQL by address, and hide passwords."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from siteloom.core.errors import MissingExtra, StoreError, UsageError
from siteloom.core.settings import without_passwords
from siteloom.core.sqlite_files import engine_for, sqlite_file
from siteloom.core.sqlite_schema import schema_fault

if TYPE_CHECKING:
    import sqlite3
    from contextlib import AbstractContextManager
    from pathlib import Path

    import psycopg
    from sqlalchemy import URL, Connection, Engine, Table
    from sqlalchemy.engine import ExceptionContext


SQLITE_FILE = "siteloom.db"
VERSION_TABLE = "alembic_version"
"""The table in which Alembic notes the step that the tables are at."""
# Most commits are short; the largest, a hundred thousand entities, takes some seconds.
_BUSY_MILLISECONDS = 30_000
_WRITES = "siteloom_writes"
# WAL lets others read while one writes; FULL makes a commit survive a power cut, as "accepted" promises.
_WRITING = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    f"busy_timeout={_BUSY_MILLISECONDS}",
)
# SQLite says only that reading or writing failed when it has no room for the files beside its own, of which
# the first takes 32 KiB; less than this is left where that happens.
_BYTES_OF_A_FULL_DISK = 2**20
_DISK_FULL = "53100"  # in PostgreSQL's list of error codes


def sqlite_url(folder: Path) -> URL:
    """Where a workspace keeps its tables unless told otherwise.

    In a folder that may only be read, SQLite must be told that nothing will
    change there: it could not keep track of changes. Unless a process was killed there: what it has
    committed is in a journal then, which SQLite reads as long as it is not told so.
    """
    file = folder / SQLITE_FILE
    if os.access(file, os.R_OK) and not os.access(folder, os.W_OK):
        as_it_is = {"mode": "ro", "uri": "true"}
        if not _is_filled(folder / f"{SQLITE_FILE}-wal"):
            as_it_is["immutable"] = "1"
        return sqlalchemy.URL.create("sqlite", database=f"file:{quote(str(file))}", query=as_it_is)
    return sqlalchemy.URL.create("sqlite", database=str(file))


def _is_filled(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False


def postgres_url(text: str) -> URL:
    """A `postgresql://` address with the driver that Siteloom uses."""
    expected_form = "it must look like postgresql://user@host/name"
    try:
        url = sqlalchemy.make_url(text)
    except (ArgumentError, ValueError):
        # Not shown, because no one can tell where in it a password stands.
        raise UsageError(f"The address of the database cannot be read: {expected_form}.") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise UsageError(f"{shown_address(url)} is no address of a PostgreSQL database: {expected_form}.")
    return url.set(drivername="postgresql+psycopg")


def shown_address(url: URL) -> str:
    """An address without its secrets, which its options may be, too, and without our driver."""
    return without_passwords(url.set(drivername=url.get_backend_name()).render_as_string())


def connect(url: URL) -> Engine:
    """An engine for the tables at a URL; nothing is read or written yet.

    Whatever the database complains of later, its users see as a StoreError.
    """
    try:
        engine = engine_for(url, partial(_refused, url), json_deserializer=_read_json)
    except (ImportError, NoSuchModuleError) as error:
        raise MissingExtra("PostgreSQL", "postgres") from error
    event.listen(engine, "handle_error", _raise_store_error)
    if engine.dialect.name == "sqlite":
        _guard_sqlite(engine)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        # Before SQLAlchemy asks for the schema that is meant where none is named.
        event.listen(engine, "connect", _set_up_postgres, insert=True)
    return engine


def writing(engine: Engine) -> AbstractContextManager[Connection]:
    """A transaction that writes, committed at its end.

    In SQLite it waits for its turn before it reads anything: a transaction that has read what another then
    changes can write no more, however long it waits.
    """
    return engine.execution_options(**{_WRITES: True}).begin()


def upsert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that can be told what to do with a row that is there already."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged_value("JSON") from error


def _refused(url: URL, fault: str) -> StoreError:
    return StoreError(f"The workspace {sqlite_file(url).parent} is not opened: {fault}")


def _guard_sqlite(engine: Engine) -> None:
    """Have each connection look at what may be the work of someone else before anything of it is used."""
    file = sqlite_file(engine.url)
    is_read_only = "mode" in engine.url.query

    def set_up(connection: sqlite3.Connection, _: Any) -> None:
        # Python's own opening of transactions leaves out CREATE and ALTER, which
        # would make a migration that is killed half done.
        connection.isolation_level = None
        try:
            for pragma in () if is_read_only else _WRITING:
                connection.execute(f"PRAGMA {pragma}")
            fault = schema_fault(connection)
        except UnicodeDecodeError as error:  # what SQLite says quotes what is in the file
            raise StoreError(f"The database {file} cannot be opened: its schema is damaged.") from error
        if fault:
            raise StoreError(
                f"The workspace {file.parent} is not opened: {file.name} has {fault}, which Siteloom did not "
                "make and which may change what is stored. Remove it, if you know why it is there."
            )

    event.listen(engine, "connect", set_up)


def _set_up_postgres(connection: psycopg.Connection, _: Any) -> None:
    # In another zone the first and last days of the calendar fall off its ends,
    # and crawlers do write 0001-01-01 for "never".
    connection.execute("SET TIME ZONE 'UTC'")
    # Of the schemas in the search path only that of our tables counts: in any other, tables and functions
    # of the same names may stand. The functions of PostgreSQL itself come first then.
    rows = connection.execute(
        "SELECT name, pg_catalog.to_regclass(pg_catalog.format('%%I.%%I', name, %s::text)) "
        "FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS name",
        [VERSION_TABLE],
    ).fetchall()
    schemas = [name for name, table in rows if table is not None] or [name for name, _ in rows]
    if schemas:
        connection.execute(
            "SELECT pg_catalog.set_config('search_path', pg_catalog.quote_ident(%s), false)", [schemas[0]]
        )
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    waits = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if waits else "BEGIN")


def _raise_store_error(context: ExceptionContext) -> None:
    error = context.sqlalchemy_exception
    if not isinstance(error, DBAPIError):
        return  # a mistake in our own code
    assert context.engine is not None  # every connection is made by one
    if context.engine.dialect.name == "sqlite":
        folder = sqlite_file(context.engine.url).parent
        name = getattr(error.orig, "sqlite_errorname", "")
        if name.startswith("SQLITE_READONLY"):
            raise StoreError(
                f"The workspace {folder} cannot be written: it may only be read."
            ) from error.orig
        if name == "SQLITE_FULL" or (name.startswith("SQLITE_IOERR") and _is_full(folder)):
            raise StoreError(f"The disk of the workspace {folder} is full: make room, then try again.") from (
                error.orig
            )
    address = shown_address(context.engine.url)
    if getattr(error.orig, "sqlstate", None) == _DISK_FULL:
        raise StoreError(f"The disk of the database {address} is full: make room, then try again.") from (
            error.orig
        )
    fate = "opened" if context.connection is None else "used"
    reason = str(error.orig).strip().partition("\n")[0]
    raise StoreError(f"The database {address} cannot be {fate}: {reason}.") from error.orig


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _BYTES_OF_A_FULL_DISK
    except OSError:
        return False


def damaged_value(expected: str) -> StoreError:
    """The error that a table holds what cannot be read as what stands there."""
    return StoreError(
        f"The tables of this workspace are damaged: one holds what is not {expected}. "
        "Restore the workspace from a backup."
    )
