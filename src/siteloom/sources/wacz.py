"""Read pages from WACZ files: web archives in a zip file, as browser-based crawlers write them.

All WARC files in the zip file are read, and those of WACZ files in it. The index and the list of pages in it
are not needed.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.sources.page_source import renamed_items
from siteloom.sources.warc import Warc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zipfile import ZipInfo

    from siteloom.core.settings import PagesSettings

SUFFIX = ".wacz"
_WARC_SUFFIXES = (".warc", ".warc.gz", ".warc.zst")
_UNREADABLE = "unreadable file"
_DAMAGED = "damaged archive"

_BYTES_AT_A_TIME = 65_536  # zipfile detects damage with the last piece, which it then does not return

# Deflate compresses equal bytes to a thousandth and HTML to a tenth; compressed WARC files get no smaller.
_MOST_TIMES_SMALLER = 100

# The methods of the format. For others, zipfile decompresses without limit, however few bytes are requested.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# A collection contains WACZ files, and those contain WARC files.
_DEEPEST = 1

# The errors of zipfile for members that are damaged, encrypted, or compressed by an unknown method.
_ZIP_ERRORS = (zipfile.BadZipFile, RuntimeError, OSError, EOFError, ValueError, zlib.error)


@dataclass(frozen=True, slots=True)
class Wacz:
    """A WACZ file, or one member of it.

    `depth` is its nesting in other WACZ files, and `most_bytes` the limit of a member of a nested one.
    """

    path: Path
    settings: PagesSettings
    with_resources: bool = False
    member: str | None = None
    depth: int = 0
    most_bytes: int | None = None

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """Yield the pages of its WARC files, in their order in the file."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = self._members(archive)
                if not members:
                    yield Failure(str(self.path), "no archive", "there is no WARC file in it")
                # A zip bomb may list the same bytes under many names.
                if sum(entry.compress_size for entry in archive.infolist()) > self.path.stat().st_size:
                    yield Failure(str(self.path), _DAMAGED, "its parts have more bytes than itself")
                    return
                for member in members:
                    if self.member in (None, member.filename):
                        yield from self._read(archive, member)
        except _ZIP_ERRORS as error:
            yield Failure(str(self.path), _UNREADABLE, _reason(error))

    def shards(self) -> Sequence[Wacz]:
        """Return a shard for each WARC file in it, because each is copied as a whole when it is read."""
        if self.member is not None:
            return (self,)
        try:
            with zipfile.ZipFile(self.path) as archive:
                names = list(dict.fromkeys(entry.filename for entry in self._members(archive)))
        except _ZIP_ERRORS:  # reported when the file is read
            return (self,)
        return [replace(self, member=name) for name in names] or (self,)

    def _members(self, archive: zipfile.ZipFile) -> list[ZipInfo]:
        suffixes = (*_WARC_SUFFIXES, SUFFIX) if self.depth < _DEEPEST else _WARC_SUFFIXES
        return [entry for entry in archive.infolist() if entry.filename.lower().endswith(suffixes)]

    def _read(
        self, archive: zipfile.ZipFile, member: ZipInfo
    ) -> Iterator[Page | Resource | Failure | Skipped]:
        place = f"{self.path}/{member.filename}"
        if member.compress_type not in _METHODS:
            yield Failure(
                place, _UNREADABLE, f"it is compressed by method {member.compress_type}, not deflated"
            )
            return
        most_bytes = _MOST_TIMES_SMALLER * max(member.compress_size, 1)
        if self.most_bytes is not None:
            most_bytes = min(most_bytes, self.most_bytes)
        if member.file_size > most_bytes:
            yield Failure(
                place,
                "archive too large",
                f"{member.file_size:,} bytes when decompressed; at most {most_bytes:,} are taken, which is "
                f"{_MOST_TIMES_SMALLER} times as many as it has in the file",
            )
            return
        with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
            # Only the suffix of the name, which could otherwise lead anywhere.
            copy = Path(folder, "archive" + "".join(PurePosixPath(member.filename.lower()).suffixes[-2:]))
            with copy.open("wb") as file:
                damage = _copied(archive, member, file)
            if copy.stat().st_size or damage is None:
                yield from renamed_items(place, self._reader(copy, most_bytes).read(), copy)
            if damage is not None:
                yield Failure(place, _DAMAGED, damage)

    def _reader(self, copy: Path, most_bytes: int) -> Warc | Wacz:
        if copy.name.endswith(SUFFIX):
            depth = self.depth + 1
            return Wacz(copy, self.settings, self.with_resources, depth=depth, most_bytes=most_bytes)
        return Warc(copy, self.settings, self.with_resources)


def _copied(archive: zipfile.ZipFile, member: ZipInfo, file: BinaryIO) -> str | None:
    """Copy a member as far as it can be read, and return the error that stopped it, if any."""
    try:
        with archive.open(member) as content:
            while piece := content.read(_BYTES_AT_A_TIME):
                file.write(piece)
    except _ZIP_ERRORS as error:
        return _reason(error)
    return None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
