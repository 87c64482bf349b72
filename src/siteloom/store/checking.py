"""Whether the packs of a store hold what its tables say."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Row, select

from siteloom.confined_folder import ConfinedFolder
from siteloom.errors import PackError
from siteloom.store import schema
from siteloom.store.keys import content_hash
from siteloom.store.packs import Pack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine, Select


class Problem(NamedTuple):
    """Something in the store that is not as it should be."""

    place: str
    text: str


def problems(engine: Engine, packs_folder: Path) -> Iterator[Problem]:
    """Read every pack of a store and compare it with the tables."""
    columns = schema.packs.c
    for pack_id, file, committed in _rows(engine, select(columns.id, columns.file, columns.committed_bytes)):
        try:
            yield from _problems_of_pack(engine, packs_folder, pack_id, file, committed)
        except PackError as error:
            yield Problem(file, str(error))


def links(folder: Path, packs_folder: Path) -> Iterator[str]:
    """The paths of symbolic links in a workspace; its folder of packs may be a link itself."""
    packs = packs_folder.name
    yield from (link for link in ConfinedFolder(folder).links() if link != packs)
    if packs_folder.is_symlink():
        yield from (f"{packs}/{link}" for link in ConfinedFolder(packs_folder).links())


def _problems_of_pack(
    engine: Engine, packs_folder: Path, pack_id: int, file: str, committed: int
) -> Iterator[Problem]:
    columns = schema.versions.c
    query = (
        select(columns.block_offset, columns.slot, schema.urls.c.url, columns.content_hash)
        .join(schema.urls)
        .where(columns.pack_id == pack_id)
        # Others may have been written since the length of the pack was read.
        .where(columns.block_offset < committed)
    )
    expected = {(row[0], row[1]): (row[2], row[3]) for row in _rows(engine, query)}
    with closing(Pack(packs_folder, file)) as pack:
        for offset, documents in pack.blocks(committed):
            for slot, document in enumerate(documents):
                found = (document.url, content_hash(document.media_type, document.body))
                if expected.pop((offset, slot), None) != found:
                    yield Problem(file, f"{document.url} is not what the tables say.")
    if expected:
        yield Problem(file, f"{len(expected)} versions of pages are missing.")


def _rows(engine: Engine, query: Select[*tuple[Any, ...]]) -> list[Row[*tuple[Any, ...]]]:
    with engine.connect() as connection:
        return list(connection.execute(query).all())
