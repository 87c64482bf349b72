"""No trace of what was removed: not in files that no table speaks of, nor in what a database has yet to free.

A mark on the disk says that something was begun to be removed. It goes last of all, so whoever finds it knows
that there may be traces.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, inspect, select, text

from siteloom.confined_folder import ConfinedFolder
from siteloom.errors import StoreBusy, StoreError
from siteloom.store import schema
from siteloom.store.database import writing
from siteloom.store.migrate import remove_backups
from siteloom.store.packs import is_pack_name
from siteloom.store.search_index import SearchIndex
from siteloom.store.search_terms import TABLE
from siteloom.telling import some_names

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_MARK = "forgetting"
# Readers have done with a page or a table by then; whoever reads a whole site takes longer.
_SECONDS_OF_PATIENCE = 30
_NOT_LOCKED = "55P03"  # in PostgreSQL's list of error codes: someone had the lock for longer


def is_unfinished(folder: Path) -> bool:
    """Whether something was begun to be removed from a workspace, and not all traces of it are gone."""
    return ConfinedFolder(folder).is_file(_MARK)


def begin(folder: Path) -> None:
    """Write down that something is about to be removed."""
    try:
        ConfinedFolder(folder).write(_MARK, b"")
    except OSError as error:
        raise StoreError(f"The workspace {folder} cannot be written: {error.strerror}.") from error


def finish(folder: Path, packs_folder: Path, engine: Engine) -> None:
    """Remove all traces of what is in no table any more. Call it under the locks of writers and of packs."""
    remove_unknown_packs(packs_folder, engine)
    remove_backups(engine)
    with writing(engine) as connection:
        SearchIndex(engine).wipe(connection)
    if engine.dialect.name == "sqlite":
        _wipe_sqlite(Path(str(engine.url.database)))
    else:
        _wipe_postgres(engine)
    workspace = ConfinedFolder(folder)
    workspace.remove(_MARK)
    workspace.sync()


def remove_unknown_packs(packs_folder: Path, engine: Engine) -> None:
    """Remove the packs that no table names, which a killed process has left; other files stay."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            # The last commit of a killed process may still be under way there, and speak of such a file.
            connection.execute(text(f"LOCK TABLE {schema.packs.name} IN EXCLUSIVE MODE"))
        known = set(connection.execute(select(schema.packs.c.file)).scalars())
        try:
            packs = ConfinedFolder(packs_folder)
            for site in [name for name in packs.names() if packs.is_folder(name)]:
                for pack in [f"{site}/{file}" for file in packs.names(site)]:
                    if is_pack_name(pack) and pack not in known:
                        packs.remove(pack)
                with suppress(OSError):  # there are packs in it
                    packs.remove_folder(site)
            if packs_folder.exists():
                packs.sync()
        except OSError as error:
            raise StoreError(f"{error.filename} cannot be removed: {error.strerror}.") from error


def _wipe_sqlite(file: Path) -> None:
    """Write all tables anew, so that nothing is left in pages that are free, and empty the journal."""
    try:
        with closing(sqlite3.connect(file, timeout=_SECONDS_OF_PATIENCE, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreError(f"The database {file} cannot be written anew: {error}.") from error
        is_busy = True
    if is_busy:
        raise _busy(str(file))


def _busy(place: str) -> StoreBusy:
    return StoreBusy(
        "It is removed, but another process reads this workspace, so traces of it are left in "
        f"{place}: when that ends, give siteloom forget once more."
    )


def _wipe_postgres(engine: Engine) -> None:
    """Have the server write our tables, their indexes and what it knows of their values anew."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.detach()  # its setting is for no one else
        connection.execute(text(f"SET lock_timeout = {_SECONDS_OF_PATIENCE * 1_000:.0f}"))
        there = set(inspect(connection).get_table_names())
        tables = sorted(there & {*schema.metadata.tables, TABLE})
        # Whoever may not do that to a table is warned by the server, and it goes on.
        left = [table for table in tables if not _is_written_anew(connection, table)]
        # Common values of columns stand in it. Who does not own the database is warned there, and no more.
        connection.execute(text("VACUUM (FULL) pg_catalog.pg_statistic"))
    if left:
        raise StoreError(
            f"It is removed, but traces of it are left in the files of {some_names(left)}, which only the "
            "owner of these tables can have written anew: give siteloom forget once more as that role."
        )


def _is_written_anew(connection: Connection, table: str) -> bool:
    """Have the server write a table anew, into another file; whether it did."""
    file = select(func.pg_relation_filenode(table))
    before = connection.execute(file).scalar_one()
    try:
        connection.execute(text(f"VACUUM (FULL, ANALYZE) {table}"))
    except StoreError as error:
        if getattr(error.__cause__, "sqlstate", None) != _NOT_LOCKED:
            raise
        raise _busy(f"the table {table}") from error
    return bool(connection.execute(file).scalar_one() != before)
