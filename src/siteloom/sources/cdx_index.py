"""Read the pages of WARC files that an index lists: CDX, and CDXJ as pywb and Common Crawl write it.

Each line of an index gives the file, offset and length of a capture. Only these bytes are read, and only of
captures listed as HTML with status 200. So a few lines selected from a large index give just these pages.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from siteloom.core.errors import SourceError
from siteloom.core.foreign_files import OutsideError, open_below
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.remote_files import (
    MISSING,
    fetch,
    folders_above,
    has_scheme,
    local_path,
    look_up,
    read_range,
    shown,
    source_error,
    without_query,
)
from siteloom.sources.compressed_file import DECOMPRESSION_ERRORS, open_compressed
from siteloom.sources.html_folder import OUTSIDE
from siteloom.sources.warc import HTML_TYPES, Warc, records_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.core.settings import PagesSettings

_BAD_LINE = "not a CDX line"
_UNREADABLE = "unreadable file"
_DAMAGED = "damaged record"

# The fields of lines in an index without a header, by their number, named as in the header.
_USUAL_FIELDS = {9: "NbamskrVg", 10: "NbamskrMVg", 11: "NbamskrMSVg"}
_HEADER = re.compile(r"[ \t]?CDX((?:[ \t][A-Za-z])+)\s*")

_LONGEST_LINE = 1 << 20  # an address may have some thousand characters, and lines contain it twice
_MOST_DIGITS = 18

# Lines are sorted by file and offset in blocks of this size, so that files are read from start to end. Larger
# blocks would need more memory: some hundred bytes per line, plus its text.
_LINES_OF_A_BLOCK = 100_000
_CHARACTERS_OF_A_BLOCK = 50_000_000

# Some seconds of work for a worker, as with files of a folder.
_LOCATIONS_OF_A_PART = 256

# An index of more parts is read as a stream: lists of their locations would take too much memory.
_MOST_PARTS = 4_096

# Headers of a record and of a response, in addition to the page.
_BYTES_BESIDE_A_PAGE = 1 << 20

_WARC_FOLDERS = ("warcs", "archive")


class _RecordLocation(NamedTuple):
    """The location of a record, and the URL that the index gives for it."""

    file: str
    offset: int
    length: int | None
    url: str


class _Capture(NamedTuple):
    """A capture as a line describes it."""

    url: str
    media_type: str
    status: str
    location: _RecordLocation


@dataclass(frozen=True, slots=True)
class Cdx:
    """A local or remote index."""

    location: str
    settings: PagesSettings
    with_resources: bool = False

    @classmethod
    def open(cls, location: str, settings: PagesSettings, *, with_resources: bool = False) -> Cdx:
        """Open an index, and check that it exists."""
        if local_path(location) is None:
            info = look_up(location)
            if isinstance(info, Failure):
                raise source_error(info)
        return cls(location, settings, with_resources)

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """Yield the pages, each block of lines in the order of files and offsets."""
        for part in self._parts():
            yield from part.read()

    def shards(self) -> Sequence[Cdx | CdxPart]:
        """Split the index into shards of some hundred locations; a very large one is a single shard."""
        parts = list(islice(self._parts(), _MOST_PARTS + 1))
        return parts if len(parts) <= _MOST_PARTS else (self,)

    def _parts(self) -> Iterator[CdxPart]:
        part = CdxPart(self.location, self.settings, self.with_resources)
        captures = self._captures()
        while block := _block(captures):
            other_items = tuple(item for item in block if not isinstance(item, _RecordLocation))
            locations = sorted(
                {item for item in block if isinstance(item, _RecordLocation)}, key=_location_key
            )
            for start in range(0, max(len(locations), 1), _LOCATIONS_OF_A_PART):
                part_locations = tuple(locations[start : start + _LOCATIONS_OF_A_PART])
                yield replace(part, locations=part_locations, other_items=() if start else other_items)

    def _captures(self) -> Iterator[_RecordLocation | Failure | Skipped]:
        """Yield the locations of pages in the index, and why its other lines are not read."""
        name = shown(self.location)
        line_number = 0
        has_captures = False
        try:
            with self._open() as file:
                fields = ""
                while line := file.readline(_LONGEST_LINE):
                    line_number += 1
                    line_name = f"{name}:{line_number}"
                    if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                        yield Failure(line_name, _BAD_LINE, f"it has over {_LONGEST_LINE:,} bytes")
                        while line and not line.endswith(b"\n"):
                            line = file.readline(_LONGEST_LINE)
                        continue
                    text = line.decode("utf-8", "replace").rstrip("\r\n")
                    if header := _HEADER.fullmatch(text):
                        fields = "".join(header[1].split())
                    elif text.strip() and not text.startswith("!"):
                        has_captures = True
                        yield self._location_or_reason(_captured(text, fields), line_name)
        except _IndexUnavailable as error:
            yield error.failure
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            yield Failure(f"{name}:{line_number + 1}" if line_number else name, _UNREADABLE, reason)
        else:
            if not has_captures:
                yield Failure(name, "empty file", "it names no capture")

    def _location_or_reason(
        self, capture: _Capture | str, line_name: str
    ) -> _RecordLocation | Failure | Skipped:
        if isinstance(capture, str):
            return Failure(line_name, _BAD_LINE, capture)
        if capture.media_type == "warc/revisit":
            return Skipped(capture.url, "revisit record")
        if capture.status.isdecimal() and capture.status != "200":
            return Skipped(capture.url, f"status {capture.status}")
        # If the index does not give the type, the record does.
        has_type = "/" in capture.media_type
        is_resource = capture.media_type == "text/css" or capture.media_type.startswith("image/")
        is_collected = capture.media_type in HTML_TYPES or (self.with_resources and is_resource)
        if has_type and not is_collected:
            return Skipped(capture.url, f"not HTML but {capture.media_type}")
        return capture.location

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with ExitStack() as stack:
            path = local_path(self.location)
            if path is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="siteloom-"))
                path = str(Path(folder, f"index{PurePosixPath(without_query(self.location)).suffix}"))
                failure = fetch(self.location, Path(path))
                if failure is not None:
                    raise _IndexUnavailable(failure)
            yield stack.enter_context(io.BufferedReader(open_compressed(Path(path))))  # type: ignore[type-var]  # any binary file will do


def _block(
    captures: Iterator[_RecordLocation | Failure | Skipped],
) -> list[_RecordLocation | Failure | Skipped]:
    """Return the next captures, as many as are sorted together."""
    block: list[_RecordLocation | Failure | Skipped] = []
    characters = 0
    for capture in islice(captures, _LINES_OF_A_BLOCK):
        block.append(capture)
        characters += len(capture.url) + (len(capture.file) if isinstance(capture, _RecordLocation) else 0)
        if characters > _CHARACTERS_OF_A_BLOCK:
            break
    return block


def _location_key(location: _RecordLocation) -> tuple[str, int, str]:
    return location.file, location.offset, location.url


class _IndexUnavailable(Exception):
    """Raised if a remote index cannot be fetched now."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class CdxPart:
    """Some locations of an index, and the items to report for its other lines.

    If `insistent`, a temporary failure raises an error; a missing file is always a failure item.
    """

    index: str
    settings: PagesSettings
    with_resources: bool = False
    locations: tuple[_RecordLocation, ...] = ()
    other_items: tuple[Failure | Skipped, ...] = ()
    insistent: bool = False

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """Yield the pages, with a failure for each that cannot be read."""
        yield from self.other_items
        reader = Warc(Path(self.index), self.settings, self.with_resources)
        with _Warcs(self.index, self.settings) as warcs:
            for location in self.locations:
                content = warcs.read(location)
                if isinstance(content, Failure) and self.insistent and content.reason in _TEMPORARY:
                    raise SourceError(f"{source_error(content)} The same command goes on where it was.")
                yield _item(content, location, reader)

    def shards(self) -> Sequence[CdxPart]:
        """Return the part itself, which is small."""
        return (self,)


_TEMPORARY = ("connection failed", "cut off", "no permission", "no credentials")


def _item(
    content: IO[bytes] | Failure, location: _RecordLocation, reader: Warc
) -> Page | Resource | Failure | Skipped:
    """Read the page of the record at the start of the content."""
    if isinstance(content, Failure):
        return replace(content, url=location.url, detail=f"{content.url}: {content.detail}")
    where = f"at byte {location.offset:,} of {shown(location.file)}"
    start = content.tell()
    try:
        records = records_from(content)
        record = next(records, None)
        if record is None or record.stream_pos != start:
            return Failure(location.url, _DAMAGED, f"there is no WARC record {where}")
        item = reader.item_of(record, location.url, checks_digest=True)
        if location.length is not None:
            next(records, None)  # damage of a compressed record shows only at its end
    except OSError as error:
        return Failure(location.url, _DAMAGED, f"{error} {where}")
    return item if item is not None else Skipped(location.url, "record without a response")


class _Warcs:
    """The WARC files of an index, searched for near it and in the folder given in the settings."""

    def __init__(self, index: str, settings: PagesSettings) -> None:
        self._max_bytes = settings.max_bytes + _BYTES_BESIDE_A_PAGE
        self._search_folders = _search_folders(index, settings.warcs)
        self._not_found_detail = _not_found_detail(index, settings.warcs)
        self._missing: dict[str, Failure] = {}
        self._open_warc: _OpenWarc | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def read(self, location: _RecordLocation) -> IO[bytes] | Failure:
        """Open a record at its first byte."""
        if location.length is not None and location.length > self._max_bytes:
            return Failure(
                location.file,
                "page too large",
                f"{location.length:,} bytes; at most {self._max_bytes:,} are read",
            )
        if self._open_warc is not None and self._open_warc.name == location.file:
            return _content_at(self._open_warc, location)
        if location.file in self._missing:
            return self._missing[location.file]
        self._close()
        failure: Failure | None = None
        for search_folder in self._search_folders:
            content = self._content_in(search_folder, location)
            if content is not None and not isinstance(content, Failure):
                self._search_folders = [
                    search_folder,
                    *(folder for folder in self._search_folders if folder is not search_folder),
                ]
                return content
            if content is not None and (failure is None or failure.reason == MISSING):
                failure = content
        if failure is None or failure.reason == MISSING:
            failure = Failure(shown(location.file), MISSING, self._not_found_detail)
            self._missing[location.file] = failure
        return failure

    def _content_in(
        self, search_folder: _SearchFolder, location: _RecordLocation
    ) -> IO[bytes] | Failure | None:
        address = search_folder.location_of(location.file)
        if address is None:
            return None
        file = _open_locally(address, search_folder.within)
        if isinstance(file, Failure):
            return file
        warc = _OpenWarc(location.file, address, file)
        content = _content_at(warc, location)
        if not isinstance(content, Failure):
            self._open_warc = warc
        elif file is not None:
            file.close()
        return content

    def _close(self) -> None:
        if self._open_warc is not None and self._open_warc.file is not None:
            self._open_warc.file.close()
        self._open_warc = None


class _OpenWarc(NamedTuple):
    """A WARC file: its name, its location, and if it is local, the open file."""

    name: str
    location: str
    file: IO[bytes] | None


def _content_at(warc: _OpenWarc, location: _RecordLocation) -> IO[bytes] | Failure:
    """Return the file positioned at a record, or the bytes of the record."""
    if warc.file is not None:
        warc.file.seek(location.offset)
        return warc.file if location.length is None else io.BytesIO(warc.file.read(location.length))
    if location.length is None:
        return Failure(shown(warc.location), "no length", "of a file elsewhere only known lengths are read")
    content = read_range(warc.location, location.offset, location.offset + location.length)
    return content if isinstance(content, Failure) else io.BytesIO(content)


def _open_locally(location: str, within: str) -> IO[bytes] | Failure | None:
    """Open a file if it is local; None otherwise."""
    path, folder = local_path(location), local_path(within)
    if path is None or folder is None:
        return None
    try:
        return open_below(Path(path), Path(folder or "/"))
    except FileNotFoundError:
        return Failure(location, MISSING)
    except OutsideError:
        return Failure(location, OUTSIDE, f"it leads out of {within} by a link")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Failure(location, _UNREADABLE, reason)


class _SearchFolder(NamedTuple):
    """A folder that may contain WARC files; `is_bare` if they are there without the folders in their names.

    An index is untrusted, so it must not lead anywhere else: an absolute address or path counts only if the
    folder `takes_whole` ones and contains it. No link may lead out of `within`, which is the folder itself
    or, if the folder may come with the index, its parent.
    """

    folder: str
    within: str
    is_bare: bool = False
    takes_whole: bool = False

    def location_of(self, file: str) -> str | None:
        """Return where a file would be in this folder; None if its name cannot be in it."""
        if self.is_bare:
            name = file.rpartition("/")[2]
            return self._joined(name) if name and name not in (".", "..") else None
        # Reject names that lead out of the folder.
        if ".." in file.split("/"):
            return None
        if has_scheme(file) or file.startswith("/"):
            is_within = file.startswith(f"{self.folder}/")
            return (
                self._joined(file.removeprefix(f"{self.folder}/")) if self.takes_whole and is_within else None
            )
        return self._joined(file)

    def _joined(self, name: str) -> str | None:
        """Append a name to the folder; a remote folder rejects chained addresses (zip://a::https://b)."""
        is_chain = has_scheme(self.folder) and "::" in name
        return None if is_chain else f"{self.folder}/{name}"


def _search_folders(index: str, warcs: str) -> list[_SearchFolder]:
    """Return the folders to search for the files of an index, most likely first.

    All folders above a remote index belong to one host or bucket. For a local index, the search ends at the
    current folder: above it are all files of the machine.
    """
    path = local_path(index)
    folders = (
        folders_above(index) if path is None else [str(folder) for folder in Path(path).absolute().parents]
    )
    near = {
        location: folder
        for folder in folders[:2]
        for location in (folder, *(f"{folder}/{name}" for name in _WARC_FOLDERS))
    }
    from_settings = {warcs.rstrip("/"): warcs.rstrip("/")} if warcs else {}
    own = [*from_settings, *(folders if path is None else folders[:2])]
    further = [folder for folder in folders[2:] if path is None or Path(folder).is_relative_to(Path.cwd())]
    bare = {**from_settings, **near, **from_settings}
    with_folders = {**bare, **{folder: folder for folder in further if folder not in bare}}
    return [
        *(
            _SearchFolder(folder, within, takes_whole=folder in own)
            for folder, within in with_folders.items()
        ),
        *(_SearchFolder(folder, within, is_bare=True) for folder, within in bare.items()),
    ]


def _not_found_detail(index: str, warcs: str) -> str:
    """Describe where a missing file was searched for."""
    near = f"near {shown(index)}, in its folder or those above, or in warcs or archive there"
    if warcs:
        return f"it is neither in {shown(warcs)}, as the setting pages.warcs says, nor {near}"
    return f"it is not {near}; the setting pages.warcs says where WARC files are"


def _captured(line: str, fields: str) -> _Capture | str:
    """Parse a line, or return why it cannot be parsed."""
    start = 0 if line.startswith("{") else line.find(" {") + 1
    if line[start] == "{":
        return _from_json(line[start:])
    cells = line.split("\t" if "\t" in line else " ")
    names = fields or _USUAL_FIELDS.get(len(cells), "")
    if len(names) != len(cells):
        return f"it has {len(cells)} fields" + (f" instead of {len(names)}" if names else "")
    fields_by_name = dict(zip(names, cells, strict=True))
    return _capture(
        fields_by_name.get("a", ""),
        fields_by_name.get("m"),
        fields_by_name.get("s"),
        fields_by_name.get("S"),
        fields_by_name.get("V"),
        fields_by_name.get("g"),
    )


def _from_json(text: str) -> _Capture | str:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"what is in braces is no JSON: {error}"
    if not isinstance(row, dict):
        return "what is in braces is no object"
    names = ("url", "mime", "status", "length", "offset", "filename")
    return _capture(*(row.get(name) for name in names))


def _capture(url: Any, media_type: Any, status: Any, length: Any, offset: Any, file: Any) -> _Capture | str:
    start = _number(offset)
    if not isinstance(file, str) or file in ("", "-") or "\0" in file or start is None:
        return "it names no file and byte"
    if not isinstance(url, str) or not url:
        return "it names no URL"
    kind = str(media_type or "").partition(";")[0].strip().lower()
    return _Capture(url, kind, str(status or "").strip(), _RecordLocation(file, start, _number(length), url))


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None
