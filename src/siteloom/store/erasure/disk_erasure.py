"""Rewrite packs without erased pages; remove leftovers from crawl and upload folders, and free database
pages.

A mark on the disk records that a removal was started. It is removed last, so its presence means that there
may be traces.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, inspect, select, text, update

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.database import writing
from siteloom.core.errors import StoreBusy, StoreError
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.sequences import batches
from siteloom.core.sqlite_files import open_sqlite, sqlite_file
from siteloom.core.wording import some_names
from siteloom.store import schema
from siteloom.store.migrate import remove_backups
from siteloom.store.packs.pack_file import check_pack_name, copy_without, is_pack_name, pack_name, pack_number
from siteloom.store.queries.search_index import SearchIndex
from siteloom.store.queries.search_terms import TABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement, Connection, Engine, Row

    from siteloom.store.packs.pack_file import Move


if TYPE_CHECKING:
    Place = Row[*tuple[Any, ...]]
    """The `id` of a version, and its location in its pack: `block_offset` and `slot`."""

_ROWS_AT_A_TIME = 1_000


def remove_versions(
    engine: Engine, packs_folder: Path, is_gone: ColumnElement[bool], run_id: int
) -> Iterator[int]:
    """Remove versions pack by pack, and yield their number each time; new packs are named after the run.

    The remaining content of a pack is on the disk before the tables refer to it, and the old file is removed
    when they no longer do. Call it under the locks of writers and packs.
    """
    versions = schema.versions.c
    # One query for all packs: a query per pack would scan all versions each time.
    query = select(versions.pack_id, versions.id, versions.block_offset, versions.slot).where(is_gone)
    with engine.connect() as connection:
        in_order = query.order_by(versions.pack_id).execution_options(yield_per=_ROWS_AT_A_TIME)
        for pack_id, gone in groupby(connection.execute(in_order), key=lambda place: place.pack_id):
            yield _remove_from_pack(engine, packs_folder, pack_id, list(gone), run_id)


def _remove_from_pack(
    engine: Engine, packs_folder: Path, pack_id: int, gone: Sequence[Place], run_id: int
) -> int:
    packs = schema.packs.c
    ids = {place.id for place in gone}
    with engine.connect() as connection:
        pack = connection.execute(select(schema.packs).where(packs.id == pack_id)).one()
        remaining = [place for place in _places(connection, pack) if place.id not in ids]
    check_pack_name(pack.file)
    with held_back_interrupt():
        if remaining:
            folder, _, name = pack.file.rpartition("/")
            file = f"{folder}/{pack_name(pack_number(name), run_id)}"
            slots = _slots_by_block(gone)
            moves, length = copy_without(packs_folder, pack.file, pack.committed_bytes, slots, file)
        with writing(engine) as connection:
            _delete_versions(connection, ids)
            if remaining:
                _move(connection, remaining, moves)
                moved = update(schema.packs).where(packs.id == pack_id)
                connection.execute(moved.values(file=file, committed_bytes=length))
            else:
                connection.execute(delete(schema.packs).where(packs.id == pack_id))
        ConfinedFolder(packs_folder).remove(pack.file)
    return len(ids)


def _places(connection: Connection, pack: Row[*tuple[Any, ...]]) -> Sequence[Place]:
    """Return the locations of the versions of a pack."""
    versions, urls = schema.versions.c, schema.urls.c
    of_site = select(urls.id).where(urls.site_id == pack.site_id)  # these are indexed
    query = select(versions.id, versions.block_offset, versions.slot)
    return connection.execute(
        query.where(versions.url_id.in_(of_site), versions.pack_id == pack.id).order_by(versions.id)
    ).all()


def _slots_by_block(places: Sequence[Place]) -> dict[int, set[int]]:
    """Return the slots of versions in a pack by the offsets of their blocks."""
    slots: dict[int, set[int]] = {}
    for place in places:
        slots.setdefault(place.block_offset, set()).add(place.slot)
    return slots


def _delete_versions(connection: Connection, ids: Collection[int]) -> None:
    """Remove versions from the tables, with their validators and annotations, even if just added."""
    for batch in batches(ids, _ROWS_AT_A_TIME):
        for table in (schema.validators, schema.annotations):
            connection.execute(delete(table).where(table.c.version_id.in_(batch)))
        connection.execute(delete(schema.versions).where(schema.versions.c.id.in_(batch)))


def _move(connection: Connection, places: Sequence[Place], moves: Mapping[int, Move]) -> None:
    """Update the locations of versions to the pack that replaces theirs."""
    slots = {
        offset: {version: new for new, version in enumerate(move.slots)}
        for offset, move in moves.items()
        if move.slots is not None
    }
    is_it = schema.versions.c.id == bindparam("version")
    place: dict[str, object] = {"block_offset": bindparam("new_offset"), "slot": bindparam("new_slot")}
    statement = update(schema.versions).where(is_it).values(place)
    for batch in batches(places, _ROWS_AT_A_TIME):
        rows = [
            {
                "version": version.id,
                "new_offset": moves[version.block_offset].offset,
                "new_slot": slots[version.block_offset][version.slot]
                if version.block_offset in slots
                else version.slot,
            }
            for version in batch
        ]
        connection.execute(statement, rows)


_MARK = "forgetting"
# Enough for readers of a page or a table; reading a whole site takes longer.
_SECONDS_OF_PATIENCE = 30
_NOT_LOCKED = "55P03"  # in PostgreSQL's list of error codes: someone had the lock for longer


def is_unfinished(folder: Path) -> bool:
    """Return whether a removal from a workspace was started and may have left traces."""
    return ConfinedFolder(folder).is_file(_MARK)


def begin(folder: Path) -> None:
    """Record that a removal starts."""
    try:
        ConfinedFolder(folder).write(_MARK, b"")
    except OSError as error:
        raise StoreError(f"The workspace {folder} cannot be written: {error.strerror}.") from error


def finish(folder: Path, packs_folder: Path, engine: Engine) -> None:
    """Remove all traces of removed rows. Call it under the locks of writers and packs."""
    remove_unknown_packs(packs_folder, engine)
    remove_backups(engine)
    with writing(engine) as connection:
        SearchIndex(engine).wipe(connection)
    if engine.dialect.name == "sqlite":
        _wipe_sqlite(sqlite_file(engine.url))
    else:
        _wipe_postgres(engine)
    workspace = ConfinedFolder(folder)
    workspace.remove(_MARK)
    workspace.sync()


def remove_unknown_packs(packs_folder: Path, engine: Engine) -> None:
    """Remove packs that no table names, which a killed process left; other files stay."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            # The last commit of a killed process may still be in progress there, and refer to such a file.
            connection.execute(text(f"LOCK TABLE {schema.packs.name} IN EXCLUSIVE MODE"))
        known_packs = set(connection.execute(select(schema.packs.c.file)).scalars())
        try:
            packs = ConfinedFolder(packs_folder)
            for site in [name for name in packs.names() if packs.is_folder(name)]:
                for pack in [f"{site}/{file}" for file in packs.names(site)]:
                    if is_pack_name(pack) and pack not in known_packs:
                        packs.remove(pack)
                with suppress(OSError):  # there are packs in it
                    packs.remove_folder(site)
            if packs_folder.exists():
                packs.sync()
        except OSError as error:
            raise StoreError(f"{error.filename} cannot be removed: {error.strerror}.") from error


def _wipe_sqlite(file: Path) -> None:
    """Rewrite all tables, so that nothing remains in free pages, and empty the journal."""
    try:
        with closing(open_sqlite(file, StoreError, timeout=_SECONDS_OF_PATIENCE)) as connection:
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
    """Have the server rewrite our tables, their indexes and its statistics."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.detach()  # its setting must not affect others
        connection.execute(text(f"SET lock_timeout = {_SECONDS_OF_PATIENCE * 1_000:.0f}"))
        existing_tables = set(inspect(connection).get_table_names())
        tables = sorted(existing_tables & {*schema.metadata.tables, TABLE})
        # Without permission for a table, the server only warns and continues.
        unwritten = [table for table in tables if not _is_rewritten(connection, table)]
        # It contains common values of columns. Without ownership of the database, the server only warns.
        connection.execute(text("VACUUM (FULL) pg_catalog.pg_statistic"))
    if unwritten:
        raise StoreError(
            f"It is removed, but traces of it are left in the files of {some_names(unwritten)}, which only "
            "the owner of these tables can have written anew: give siteloom forget once more as that role."
        )


def _is_rewritten(connection: Connection, table: str) -> bool:
    """Have the server rewrite a table into another file, and return whether it did."""
    file = select(func.pg_relation_filenode(table))
    before = connection.execute(file).scalar_one()
    try:
        connection.execute(text(f"VACUUM (FULL, ANALYZE) {table}"))
    except StoreError as error:
        if getattr(error.__cause__, "sqlstate", None) != _NOT_LOCKED:
            raise
        raise _busy(f"the table {table}") from error
    return bool(connection.execute(file).scalar_one() != before)
