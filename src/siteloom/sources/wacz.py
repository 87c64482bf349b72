"""Pages from WACZ files: web archives in a zip file, as browser-based crawlers write them.

Read are the WARC files in it, wherever they stand, and those of WACZ files in it. What the zip file says
besides, its index and its list of pages, is not needed for that.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.sources.page_source import told_of
from siteloom.sources.warc import Warc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zipfile import ZipInfo

    from siteloom.core.settings import PagesSettings

SUFFIX = ".wacz"
_WARC_SUFFIXES = (".warc", ".warc.gz", ".warc.zst")
_UNREADABLE = "unreadable file"
_DAMAGED = "damaged archive"

_BYTES_AT_A_TIME = 65_536  # that a member is damaged is known with the last of them, which is not given then

# Deflate makes at most a thousandth of bytes that are all alike, and a tenth of HTML; WARC files that are
# compressed by themselves get no smaller at all.
_MOST_TIMES_SMALLER = 100

# What the format allows. Of others, zipfile decompresses any number of bytes at once, however few are wanted.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# A collection has WACZ files in it, and those have WARC files.
_DEEPEST = 1

# What zipfile raises for members that are damaged, encrypted, or compressed in a way that it does not know.
_ZIP_ERRORS = (zipfile.BadZipFile, RuntimeError, OSError, EOFError, ValueError, zlib.error)


@dataclass(frozen=True, slots=True)
class Wacz:
    """A WACZ file, or one member of it.

    `depth` is how many others it is within, and `most_bytes` how many a member of it may have then.
    """

    path: Path
    settings: PagesSettings
    with_resources: bool = False
    member: str | None = None
    depth: int = 0
    most_bytes: int | None = None

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """The pages of its WARC files, in the order in which these stand in it."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = self._members(archive)
                if not members:
                    yield Failure(str(self.path), "no archive", "there is no WARC file in it")
                # A zip file may hold the same bytes under many names, to be far more than it is.
                if sum(one.compress_size for one in archive.infolist()) > self.path.stat().st_size:
                    yield Failure(str(self.path), _DAMAGED, "its parts have more bytes than itself")
                    return
                for member in members:
                    if self.member in (None, member.filename):
                        yield from self._read(archive, member)
        except _ZIP_ERRORS as error:
            yield Failure(str(self.path), _UNREADABLE, _told(error))

    def shards(self) -> Sequence[Wacz]:
        """One for each WARC file in it, as each is copied whole when it is read."""
        if self.member is not None:
            return (self,)
        try:
            with zipfile.ZipFile(self.path) as archive:
                names = list(dict.fromkeys(one.filename for one in self._members(archive)))
        except _ZIP_ERRORS:  # told when it is read
            return (self,)
        return [replace(self, member=name) for name in names] or (self,)

    def _members(self, archive: zipfile.ZipFile) -> list[ZipInfo]:
        suffixes = (*_WARC_SUFFIXES, SUFFIX) if self.depth < _DEEPEST else _WARC_SUFFIXES
        return [one for one in archive.infolist() if one.filename.lower().endswith(suffixes)]

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
            # Only the ending of the name, which may lead anywhere.
            copy = Path(folder, "archive" + "".join(PurePosixPath(member.filename.lower()).suffixes[-2:]))
            with copy.open("wb") as file:
                damage = _copied(archive, member, file)
            if copy.stat().st_size or damage is None:
                yield from told_of(place, self._reader(copy, most_bytes).read(), copy)
            if damage is not None:
                yield Failure(place, _DAMAGED, damage)

    def _reader(self, copy: Path, most_bytes: int) -> Warc | Wacz:
        if copy.name.endswith(SUFFIX):
            depth = self.depth + 1
            return Wacz(copy, self.settings, self.with_resources, depth=depth, most_bytes=most_bytes)
        return Warc(copy, self.settings, self.with_resources)


def _copied(archive: zipfile.ZipFile, member: ZipInfo, file: BinaryIO) -> str | None:
    """Copy a member as far as it can be read; what is wrong with the rest, if anything is."""
    try:
        with archive.open(member) as content:
            while piece := content.read(_BYTES_AT_A_TIME):
                file.write(piece)
    except _ZIP_ERRORS as error:
        return _told(error)
    return None


def _told(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
