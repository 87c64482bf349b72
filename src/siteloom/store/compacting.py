"""Packs without some of their versions: what stays is written to new files, and the old ones are removed."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select, update

from siteloom.confined_folder import ConfinedFolder
from siteloom.store import schema
from siteloom.store.batches import batches
from siteloom.store.database import writing
from siteloom.store.interrupts import held_back_interrupt
from siteloom.store.packs import check_pack_name, copy_without, pack_name, pack_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement, Connection, Engine, Row

    from siteloom.store.packs import Move

    Place = Row[*tuple[Any, ...]]
    """The `id` of a version, and where it stands in its pack: `block_offset` and `slot`."""

_ROWS_AT_A_TIME = 1_000


def remove_versions(
    engine: Engine, packs_folder: Path, is_gone: ColumnElement[bool], run_id: int
) -> Iterator[int]:
    """Remove versions, pack by pack, and say how many each time; new packs are called after the run.

    What stays of a pack is on the disk before the tables speak of it, and the old file goes when they do no
    more. To be called under the locks of writers and packs.
    """
    versions = schema.versions.c
    # Asked once for all packs: for each of them, all versions would be looked at again.
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
        left = [place for place in _places(connection, pack) if place.id not in ids]
    check_pack_name(pack.file)
    with held_back_interrupt():
        if left:
            folder, _, name = pack.file.rpartition("/")
            file = f"{folder}/{pack_name(pack_number(name), run_id)}"
            slots = _slots_by_block(gone)
            moves, length = copy_without(packs_folder, pack.file, pack.committed_bytes, slots, file)
        with writing(engine) as connection:
            _delete_versions(connection, ids)
            if left:
                _move(connection, left, moves)
                moved = update(schema.packs).where(packs.id == pack_id)
                connection.execute(moved.values(file=file, committed_bytes=length))
            else:
                connection.execute(delete(schema.packs).where(packs.id == pack_id))
        ConfinedFolder(packs_folder).remove(pack.file)
    return len(ids)


def _places(connection: Connection, pack: Row[*tuple[Any, ...]]) -> Sequence[Place]:
    """Where the versions of a pack stand."""
    versions, urls = schema.versions.c, schema.urls.c
    of_site = select(urls.id).where(urls.site_id == pack.site_id)  # by these there is an index
    query = select(versions.id, versions.block_offset, versions.slot)
    return connection.execute(
        query.where(versions.url_id.in_(of_site), versions.pack_id == pack.id).order_by(versions.id)
    ).all()


def _slots_by_block(places: Sequence[Place]) -> dict[int, set[int]]:
    """The slots of versions in a pack, by the offsets of their blocks."""
    slots: dict[int, set[int]] = {}
    for place in places:
        slots.setdefault(place.block_offset, set()).add(place.slot)
    return slots


def _delete_versions(connection: Connection, ids: Collection[int]) -> None:
    """Remove versions from the tables, with what was said of them, even if that was just now."""
    for some in batches(ids, _ROWS_AT_A_TIME):
        for table in (schema.validators, schema.annotations):
            connection.execute(delete(table).where(table.c.version_id.in_(some)))
        connection.execute(delete(schema.versions).where(schema.versions.c.id.in_(some)))


def _move(connection: Connection, places: Sequence[Place], moves: Mapping[int, Move]) -> None:
    """Let the tables say where versions stand in the pack that takes the place of theirs."""
    slots = {
        offset: {old: new for new, old in enumerate(move.slots)}
        for offset, move in moves.items()
        if move.slots is not None
    }
    is_it = schema.versions.c.id == bindparam("version")
    place: dict[str, object] = {"block_offset": bindparam("new_offset"), "slot": bindparam("new_slot")}
    statement = update(schema.versions).where(is_it).values(place)
    for some in batches(places, _ROWS_AT_A_TIME):
        rows = [
            {
                "version": old.id,
                "new_offset": moves[old.block_offset].offset,
                "new_slot": slots[old.block_offset][old.slot] if old.block_offset in slots else old.slot,
            }
            for old in some
        ]
        connection.execute(statement, rows)
