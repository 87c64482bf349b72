"""Packs without some of their versions: what stays is written to new files, and the old ones are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, bindparam, delete, insert, select, update

from siteloom.store import schema
from siteloom.store.batches import batches, paged_rows
from siteloom.store.database import writing
from siteloom.store.interrupts import held_back_interrupt
from siteloom.store.packs import copy_without, pack_name, pack_number, pack_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sqlalchemy import ColumnElement, Connection, Engine

    from siteloom.store.packs import Move

_ROWS_AT_A_TIME = 1_000


def remove_versions(
    engine: Engine, packs_folder: Path, is_gone: ColumnElement[bool], run_id: int
) -> Iterator[int]:
    """Remove versions, pack by pack, and say how many each time; new packs are called after the run.

    What stays of a pack is on the disk before the tables speak of it, and the old file goes when they do no
    more. To be called under the locks of writers and packs.
    """
    versions, packs = schema.versions.c, schema.packs.c
    holding = select(versions.pack_id).where(is_gone).distinct()
    with engine.connect() as connection:
        found = connection.execute(select(schema.packs).where(packs.id.in_(holding)).order_by(packs.id)).all()
    for pack in found:
        old_file = pack_path(packs_folder, pack.file)
        is_of_pack = versions.pack_id == pack.id
        with engine.connect() as connection:
            stays = connection.execute(select(versions.id).where(is_of_pack, ~is_gone).limit(1)).first()
            slots = _slots(connection, and_(is_of_pack, is_gone)) if stays else {}
        with held_back_interrupt():
            if stays:
                folder, _, name = pack.file.rpartition("/")
                file = f"{folder}/{pack_name(pack_number(name), run_id)}"
                moves, length = copy_without(old_file, pack.committed_bytes, slots, packs_folder / file)
            with writing(engine) as connection:
                count = _delete_versions(connection, and_(is_of_pack, is_gone))
                if stays:
                    row = {"site_id": pack.site_id, "file": file, "committed_bytes": length}
                    new = insert(schema.packs).values(row).returning(packs.id)
                    _move(connection, pack.id, connection.execute(new).scalar_one(), moves)
                connection.execute(delete(schema.packs).where(packs.id == pack.id))
            old_file.unlink(missing_ok=True)
        yield count


def _slots(connection: Connection, is_gone: ColumnElement[bool]) -> dict[int, set[int]]:
    """The slots of versions in a pack, by the offsets of their blocks."""
    versions = schema.versions.c
    query = select(versions.block_offset, versions.slot).where(is_gone)
    slots: dict[int, set[int]] = {}
    for row in connection.execute(query.execution_options(yield_per=_ROWS_AT_A_TIME)):
        slots.setdefault(row.block_offset, set()).add(row.slot)
    return slots


def _delete_versions(connection: Connection, is_gone: ColumnElement[bool]) -> int:
    """Remove versions from the tables, with what was said of them, even if that was just now."""
    gone = select(schema.versions.c.id).where(is_gone)
    for table in (schema.validators, schema.annotations):
        connection.execute(delete(table).where(table.c.version_id.in_(gone)))
    return connection.execute(delete(schema.versions).where(is_gone)).rowcount


def _move(connection: Connection, old_id: int, new_id: int, moves: Mapping[int, Move]) -> None:
    """Let the tables say where the versions of a pack stand in the one that takes its place."""
    versions = schema.versions.c
    slots = {
        offset: {old: new for new, old in enumerate(move.slots)}
        for offset, move in moves.items()
        if move.slots is not None
    }
    place = {"block_offset": bindparam("new_offset"), "slot": bindparam("new_slot"), "pack_id": new_id}
    statement = update(schema.versions).where(versions.id == bindparam("version")).values(place)
    query = select(versions.id, versions.block_offset, versions.slot).where(versions.pack_id == old_id)
    rows = paged_rows(connection, query, [versions.id], _ROWS_AT_A_TIME)
    for some in batches(rows, _ROWS_AT_A_TIME):
        places = [
            {
                "version": row.id,
                "new_offset": moves[row.block_offset].offset,
                "new_slot": slots[row.block_offset][row.slot] if row.block_offset in slots else row.slot,
            }
            for row in some
        ]
        connection.execute(statement, places)
