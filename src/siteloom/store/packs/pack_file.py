"""Pack files: the bytes of a site's pages, appended in compressed blocks.

Pages of one template are nearly equal, so compressing them together makes them about 39 times smaller, while
single pages shrink 5 times. A block is the unit of random access. A pack can be read without the database:
each block contains the addresses, types and times of its documents.

    pack   = magic, block, block, ...
    block  = header, index, bodies
    header = magic, length of the index, length of the bodies, CRC-32 of both
    index  = zstd of a JSON list, one entry a document
    bodies = zstd of all documents, one behind the other

Blocks are only appended. The database records how many bytes of a pack are committed; the next writer removes
bytes after these, which a killed process left. When documents are erased, the remaining ones are written to a
new pack. File names are never reused, so a known location contains its document or nothing at all.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import zstandard

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import DamagedBlock, PackError, StoreError
from siteloom.store.compression import decompressed

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from pathlib import Path

PACK_MAGIC = b"SLPACK1\n"
_BLOCK_MAGIC = b"SLBK"
_HEADER = struct.Struct("<4sIII")

# Level 9 packs the development sites 35 times (the worst 9.6 times) at 280 MB/s;
# level 6 gives 34 times at 370 MB/s, level 12 36 times at 130 MB/s.
_COMPRESSION_LEVEL = 9
_PACK_FILE = re.compile(r"[^/.\0][^/\0]*/\d+(?:-\d+)?\.pack", re.ASCII)
# The window spans the whole block, so that a later page can refer to an earlier one.
_WINDOW_LOG = 24


@dataclass(frozen=True, slots=True)
class Document:
    """A page or resource in a pack."""

    url: str
    body: bytes
    media_type: str
    charset: str | None
    fetched_at: datetime | None


def encode_block(documents: Sequence[Document]) -> bytes:
    """Encode documents as a block of a pack."""
    entries = [
        [d.url, len(d.body), d.media_type, d.charset, d.fetched_at.isoformat() if d.fetched_at else None]
        for d in documents
    ]
    index = _compress(json.dumps(entries).encode())
    bodies = _compress(b"".join(d.body for d in documents))
    checksum = zlib.crc32(bodies, zlib.crc32(index))
    return _HEADER.pack(_BLOCK_MAGIC, len(index), len(bodies), checksum) + index + bodies


def _compress(data: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _COMPRESSION_LEVEL, window_log=_WINDOW_LOG, source_size=len(data)
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


class Pack:
    """One pack file of a folder of packs, open for reading; safe to use from several threads."""

    # Readers read a block page by page, and several may do so at once.
    _BLOCKS_KEPT = 4

    def __init__(self, packs_folder: Path, name: str) -> None:
        check_pack_name(name)
        self.path = packs_folder / name
        try:
            self._opened = ConfinedFolder(packs_folder).open(name, "rb")
        except OSError as error:
            raise PackError(f"{self.path} cannot be opened: {error.strerror}.") from error
        self._file = self._opened.fileno()
        self._blocks: OrderedDict[int, tuple[Document, ...]] = OrderedDict()

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def document(self, offset: int, slot: int) -> Document:
        """Return the document in a slot of the block at an offset."""
        block = self._blocks.get(offset)
        if block is None:
            block = _decoded(self._block(offset))
            self._blocks[offset] = block
            if len(self._blocks) > self._BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        try:
            return block[slot]
        except IndexError:
            raise DamagedBlock(f"{self.path} has no slot {slot} in the block at byte {offset}.") from None

    def blocks(self, until: int | None = None) -> Iterator[tuple[int, tuple[Document, ...]]]:
        """Yield each block before the byte `until`, or all to the end of the file, with its offset."""
        for offset, block in self.encoded_blocks(until):
            yield offset, _decoded(block)

    def encoded_blocks(self, until: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the encoded blocks before the byte `until`, or all to the end of the file."""
        until = os.fstat(self._file).st_size if until is None else until
        if self._read(0, len(PACK_MAGIC)) != PACK_MAGIC:
            raise PackError(f"{self.path} is no pack file.")
        offset = len(PACK_MAGIC)
        while offset < until:
            block = self._block(offset)
            yield offset, block
            offset += len(block)

    def _block(self, offset: int) -> bytes:
        """Return the encoded block at an offset."""
        header = self._read(offset, _HEADER.size)
        magic, index_length, bodies_length, checksum = _HEADER.unpack(header)
        if magic != _BLOCK_MAGIC:
            raise DamagedBlock(f"{self.path} has no block at byte {offset}.")
        content = self._read(offset + _HEADER.size, index_length + bodies_length)
        if zlib.crc32(content) != checksum:
            raise DamagedBlock(f"{self.path} is damaged in the block at byte {offset}.")
        return header + content

    def _read(self, offset: int, length: int) -> bytes:
        # Checked first, because a damaged header may claim gigabytes.
        is_within_file = offset + length <= os.fstat(self._file).st_size
        data = os.pread(self._file, length, offset) if is_within_file else b""
        if len(data) < length:
            raise DamagedBlock(
                f"{self.path} ends before byte {offset + length}, where the store expects more."
            )
        return data


def _decoded(block: bytes) -> tuple[Document, ...]:
    """Decode the documents of a block."""
    _, index_length, _, _ = _HEADER.unpack_from(block)
    content = memoryview(block)[_HEADER.size :]
    documents = []
    start = 0
    try:
        index = json.loads(decompressed(content[:index_length]))
        bodies = memoryview(decompressed(content[index_length:]))
        for url, size, media_type, charset, fetched_at in index:
            time = datetime.fromisoformat(fetched_at) if fetched_at else None
            documents.append(Document(url, bytes(bodies[start : start + size]), media_type, charset, time))
            start += size
    except (ValueError, TypeError, RecursionError) as error:
        # Its checksum is right, so another program than Siteloom wrote it.
        raise DamagedBlock(f"A block of a pack cannot be read: {error}.") from error
    return tuple(documents)


def is_pack_name(name: str) -> bool:
    """Return whether a path below the folder of packs is a valid name of a pack."""
    return _PACK_FILE.fullmatch(name) is not None


def check_pack_name(name: str) -> None:
    """Raise PackError for an invalid name of a pack in the tables, which may be untrusted.

    The name could lead out of the folder of packs, to a file that would be read, written or removed.
    """
    if not is_pack_name(name):
        raise PackError(f"The workspace names a pack {name!r}, which is none of its own: do not use it.")


def pack_name(number: int, erased_by: int | None) -> str:
    """Return the name of a site's pack with a number.

    It includes the last run that erased anything, because numbers of erased packs are reused.
    """
    return f"{number:06}.pack" if erased_by is None else f"{number:06}-{erased_by}.pack"


def pack_number(file: str) -> int:
    """Return the number of a pack among those of its site, by its file name."""
    return int(file.rpartition("/")[2].removesuffix(".pack").partition("-")[0])


class Move(NamedTuple):
    """The offset of a block in another pack, and its remaining old slots in order."""

    offset: int
    slots: Sequence[int] | None  # None if unchanged


def copy_without(
    packs_folder: Path, source: str, committed: int, gone: Mapping[int, Container[int]], target: str
) -> tuple[dict[int, Move], int]:
    """Copy a pack without some slots of blocks, which are given by their offsets.

    Returns the new location of each remaining block, and the length; the copy is on the disk then.
    """
    appender = PackAppender(packs_folder)
    moves: dict[int, Move] = {}
    end = 0
    pack = Pack(packs_folder, source)
    try:
        for offset, block in pack.encoded_blocks(committed):
            if offset not in gone:
                start, end = appender.append(target, end, block)
                moves[offset] = Move(start, None)
                continue
            documents = _decoded(block)
            slots = [slot for slot in range(len(documents)) if slot not in gone[offset]]
            if slots:
                start, end = appender.append(target, end, encode_block([documents[slot] for slot in slots]))
                moves[offset] = Move(start, slots)
    finally:
        pack.close()
    appender.sync()
    return moves, end


class PackAppender:
    """Appends blocks to the packs of a folder; they are on the disk after `sync`."""

    def __init__(self, packs_folder: Path) -> None:
        self._packs = ConfinedFolder(packs_folder)
        self._changed: set[str] = set()
        self._has_new_names = False

    def append(self, name: str, committed: int, block: bytes) -> tuple[int, int]:
        """Append a block after the committed bytes of a pack; returns its start and the new length.

        Bytes after the committed ones were never accepted and are removed first.
        """
        check_pack_name(name)
        path = self._packs.root / name
        try:
            if committed == 0:
                self._begin(name)
                committed = len(PACK_MAGIC)
            with self._packs.open(name, "r+b") as file:
                if file.seek(0, os.SEEK_END) < committed:
                    raise PackError(f"{path} is shorter than the {committed} bytes that were written to it.")
                file.truncate(committed)
                file.seek(committed)
                file.write(block)
        except FileNotFoundError as error:
            raise PackError(f"{path} is gone, but {committed} bytes were written to it.") from error
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror or error}.") from error
        self._changed.add(name)
        return committed, committed + len(block)

    def sync(self) -> None:
        """Return when everything appended is on the disk."""
        name = ""
        try:
            for name in self._changed:
                self._packs.sync(name)
            if self._has_new_names:
                name = "."
                self._packs.sync()
                ConfinedFolder(self._packs.root.parent).sync()
        except OSError as error:
            path = self._packs.root / name
            raise StoreError(f"{path} cannot be written: {error.strerror or error}.") from error
        self._changed.clear()
        self._has_new_names = False

    def _begin(self, name: str) -> None:
        site, _, _ = name.rpartition("/")
        self._packs.make_folder(site)
        with self._packs.open(name, "wb") as file:
            file.write(PACK_MAGIC)
        # The pack, its site's folder and the folder of all packs may be new, and a name is only on the disk
        # when its folder is.
        self._changed.add(site)
        self._has_new_names = True
