"""Pages of WARC files that an index names: CDX, and CDXJ as pywb and Common Crawl write it.

Each line of an index says what was captured and where: in which file, from which byte on, and how many.
Only these bytes are read, and only of what the index says is HTML with status 200. So an index of some
lines, picked from a large one, gives just these pages.
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

_LINE = "not a CDX line"
_UNREADABLE = "unreadable file"
_DAMAGED = "damaged record"

# The fields of lines in an index without a header, by their number: as the header would name them.
_USUAL_FIELDS = {9: "NbamskrVg", 10: "NbamskrMVg", 11: "NbamskrMSVg"}
_HEADER = re.compile(r"[ \t]?CDX((?:[ \t][A-Za-z])+)\s*")

_LONGEST_LINE = 1 << 20  # an address may take some thousand characters, and lines hold it twice
_MOST_DIGITS = 18

# So many lines are put in the order of the files and bytes they name, so that files are read from their
# start to their end. More would take more memory: some hundred bytes each, and as much as they say.
_LINES_OF_A_BLOCK = 100_000
_CHARACTERS_OF_A_BLOCK = 50_000_000

# Some seconds of work for a worker, as with files of a folder.
_PLACES_OF_A_PART = 256

# An index of more parts is read as a stream: lists of their places would take too much memory.
_MOST_PARTS = 4_096

# Headers of a record and of a response, beside the page.
_BYTES_BESIDE_A_PAGE = 1 << 20

_FOLDERS_OF_WARCS = ("warcs", "archive")


class _Place(NamedTuple):
    """Where a record stands, and what it is said to be of."""

    file: str
    offset: int
    length: int | None
    url: str


class _Capture(NamedTuple):
    """What a line says."""

    url: str
    media_type: str
    status: str
    place: _Place


@dataclass(frozen=True, slots=True)
class Cdx:
    """An index, here or elsewhere."""

    location: str
    settings: PagesSettings
    with_resources: bool = False

    @classmethod
    def open(cls, location: str, settings: PagesSettings, *, with_resources: bool = False) -> Cdx:
        """Make sure that the index is there."""
        if local_path(location) is None:
            found = look_up(location)
            if isinstance(found, Failure):
                raise source_error(found)
        return cls(location, settings, with_resources)

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """The pages in the order of files and bytes, as far as lines are sorted together."""
        for part in self._parts():
            yield from part.read()

    def shards(self) -> Sequence[Cdx | CdxPart]:
        """Some hundred places each; an index with very many is one shard."""
        parts = list(islice(self._parts(), _MOST_PARTS + 1))
        return parts if len(parts) <= _MOST_PARTS else (self,)

    def _parts(self) -> Iterator[CdxPart]:
        part = CdxPart(self.location, self.settings, self.with_resources)
        captures = self._captures()
        while block := _block(captures):
            others = tuple(one for one in block if not isinstance(one, _Place))
            places = sorted({one for one in block if isinstance(one, _Place)}, key=_by_place)
            for start in range(0, max(len(places), 1), _PLACES_OF_A_PART):
                some = tuple(places[start : start + _PLACES_OF_A_PART])
                yield replace(part, places=some, others=() if start else others)

    def _captures(self) -> Iterator[_Place | Failure | Skipped]:
        """Where the pages are that the index names, and why the rest of its lines are not read."""
        name = shown(self.location)
        number = 0
        has_captures = False
        try:
            with self._opened() as file:
                fields = ""
                while line := file.readline(_LONGEST_LINE):
                    number += 1
                    place = f"{name}:{number}"
                    if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                        yield Failure(place, _LINE, f"it has over {_LONGEST_LINE:,} bytes")
                        while line and not line.endswith(b"\n"):
                            line = file.readline(_LONGEST_LINE)
                        continue
                    text = line.decode("utf-8", "replace").rstrip("\r\n")
                    if header := _HEADER.fullmatch(text):
                        fields = "".join(header[1].split())
                    elif text.strip() and not text.startswith("!"):
                        has_captures = True
                        yield self._wanted(_captured(text, fields), place)
        except _IndexGone as error:
            yield error.failure
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            yield Failure(f"{name}:{number + 1}" if number else name, _UNREADABLE, told)
        else:
            if not has_captures:
                yield Failure(name, "empty file", "it names no capture")

    def _wanted(self, capture: _Capture | str, place: str) -> _Place | Failure | Skipped:
        if isinstance(capture, str):
            return Failure(place, _LINE, capture)
        if capture.media_type == "warc/revisit":
            return Skipped(capture.url, "revisit record")
        if capture.status.isdecimal() and capture.status != "200":
            return Skipped(capture.url, f"status {capture.status}")
        # Where the index does not know the type, the record does.
        is_known = "/" in capture.media_type
        is_resource = capture.media_type == "text/css" or capture.media_type.startswith("image/")
        is_wanted = capture.media_type in HTML_TYPES or (self.with_resources and is_resource)
        if is_known and not is_wanted:
            return Skipped(capture.url, f"not HTML but {capture.media_type}")
        return capture.place

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        with ExitStack() as stack:
            path = local_path(self.location)
            if path is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="siteloom-"))
                path = str(Path(folder, f"index{PurePosixPath(without_query(self.location)).suffix}"))
                failure = fetch(self.location, Path(path))
                if failure is not None:
                    raise _IndexGone(failure)
            yield stack.enter_context(io.BufferedReader(open_compressed(Path(path))))  # type: ignore[type-var]  # any binary file will do


def _block(captures: Iterator[_Place | Failure | Skipped]) -> list[_Place | Failure | Skipped]:
    """The next of what lines say, as much as is put in order at once."""
    block: list[_Place | Failure | Skipped] = []
    characters = 0
    for capture in islice(captures, _LINES_OF_A_BLOCK):
        block.append(capture)
        characters += len(capture.url) + (len(capture.file) if isinstance(capture, _Place) else 0)
        if characters > _CHARACTERS_OF_A_BLOCK:
            break
    return block


def _by_place(place: _Place) -> tuple[str, int, str]:
    return place.file, place.offset, place.url


class _IndexGone(Exception):
    """An index elsewhere cannot be had now."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class CdxPart:
    """Some places that an index names, and what is to be told of its other lines.

    What is read with insistence is an error if it cannot be had now, unless it is not there at all.
    """

    index: str
    settings: PagesSettings
    with_resources: bool = False
    places: tuple[_Place, ...] = ()
    others: tuple[Failure | Skipped, ...] = ()
    insistent: bool = False

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """The pages that are there; a failure for each that is not."""
        yield from self.others
        reader = Warc(Path(self.index), self.settings, self.with_resources)
        with _Warcs(self.index, self.settings) as warcs:
            for place in self.places:
                content = warcs.read(place)
                if isinstance(content, Failure) and self.insistent and content.reason in _TEMPORARY:
                    raise SourceError(f"{source_error(content)} The same command goes on where it was.")
                yield _item(content, place, reader)

    def shards(self) -> Sequence[CdxPart]:
        """They are few."""
        return (self,)


_TEMPORARY = ("connection failed", "cut off", "no permission", "no credentials")


def _item(content: IO[bytes] | Failure, place: _Place, reader: Warc) -> Page | Resource | Failure | Skipped:
    """The page of a record that content begins with."""
    if isinstance(content, Failure):
        return replace(content, url=place.url, detail=f"{content.url}: {content.detail}")
    where = f"at byte {place.offset:,} of {shown(place.file)}"
    start = content.tell()
    try:
        records = records_from(content)
        record = next(records, None)
        if record is None or record.stream_pos != start:
            return Failure(place.url, _DAMAGED, f"there is no WARC record {where}")
        found = reader.item_of(record, place.url, checks_digest=True)
        if place.length is not None:
            next(records, None)  # only at its end does a record that is compressed tell that it is damaged
    except OSError as error:
        return Failure(place.url, _DAMAGED, f"{error} {where}")
    return found if found is not None else Skipped(place.url, "record without a response")


class _Warcs:
    """The WARC files that an index names, found near it or where the settings say."""

    def __init__(self, index: str, settings: PagesSettings) -> None:
        self._max_bytes = settings.max_bytes + _BYTES_BESIDE_A_PAGE
        self._ways = _ways(index, settings.warcs)
        self._nowhere = _nowhere(index, settings.warcs)
        self._missing: dict[str, Failure] = {}
        self._found: _Found | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def read(self, place: _Place) -> IO[bytes] | Failure:
        """A record, from its first byte on."""
        if place.length is not None and place.length > self._max_bytes:
            return Failure(
                place.file, "page too large", f"{place.length:,} bytes; at most {self._max_bytes:,} are read"
            )
        if self._found is not None and self._found.name == place.file:
            return _content_at(self._found, place)
        if place.file in self._missing:
            return self._missing[place.file]
        self._close()
        failure: Failure | None = None
        for way in self._ways:
            content = self._found_by(way, place)
            if content is not None and not isinstance(content, Failure):
                self._ways = [way, *(one for one in self._ways if one is not way)]
                return content
            if content is not None and (failure is None or failure.reason == MISSING):
                failure = content
        if failure is None or failure.reason == MISSING:
            failure = Failure(shown(place.file), MISSING, self._nowhere)
            self._missing[place.file] = failure
        return failure

    def _found_by(self, way: _Way, place: _Place) -> IO[bytes] | Failure | None:
        location = way.location_of(place.file)
        if location is None:
            return None
        file = _opened_here(location, way.within)
        if isinstance(file, Failure):
            return file
        found = _Found(place.file, location, file)
        content = _content_at(found, place)
        if not isinstance(content, Failure):
            self._found = found
        elif file is not None:
            file.close()
        return content

    def _close(self) -> None:
        if self._found is not None and self._found.file is not None:
            self._found.file.close()
        self._found = None


class _Found(NamedTuple):
    """A WARC file: its name, where it is, and if that is here, itself."""

    name: str
    location: str
    file: IO[bytes] | None


def _content_at(found: _Found, place: _Place) -> IO[bytes] | Failure:
    """The file from a place on, or the bytes that are named."""
    if found.file is not None:
        found.file.seek(place.offset)
        return found.file if place.length is None else io.BytesIO(found.file.read(place.length))
    if place.length is None:
        return Failure(shown(found.location), "no length", "of a file elsewhere only known lengths are read")
    content = read_range(found.location, place.offset, place.offset + place.length)
    return content if isinstance(content, Failure) else io.BytesIO(content)


def _opened_here(location: str, within: str) -> IO[bytes] | Failure | None:
    """An open file, if it is one of this machine."""
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
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Failure(location, _UNREADABLE, told)


class _Way(NamedTuple):
    """A folder in which WARC files may be; `is_bare` if they are there without the folders of their names.

    An index may come from anyone, so it leads nowhere else: a whole address or path counts only where it is
    one of something in a folder that `takes_whole` ones. No link leads out of `within`, which is the folder
    itself or, where an index may bring that, the one it is in.
    """

    folder: str
    within: str
    is_bare: bool = False
    takes_whole: bool = False

    def location_of(self, file: str) -> str | None:
        """Where a file would be; None if its name has nothing to look for this way."""
        if self.is_bare:
            name = file.rpartition("/")[2]
            return self._joined(name) if name and name not in (".", "..") else None
        # A name that leads out of the folder is not for this folder.
        if ".." in file.split("/"):
            return None
        if has_scheme(file) or file.startswith("/"):
            is_within = file.startswith(f"{self.folder}/")
            return (
                self._joined(file.removeprefix(f"{self.folder}/")) if self.takes_whole and is_within else None
            )
        return self._joined(file)

    def _joined(self, name: str) -> str | None:
        """A name in the folder; elsewhere, a chain of addresses (zip://a::https://b) is none."""
        is_chain = has_scheme(self.folder) and "::" in name
        return None if is_chain else f"{self.folder}/{name}"


def _ways(index: str, warcs: str) -> list[_Way]:
    """How the files of an index are looked for, the likeliest way first.

    All folders above an index elsewhere are of one host or bucket. Here they end at the current one: further
    above are all files of the machine.
    """
    path = local_path(index)
    folders = folders_above(index) if path is None else [str(one) for one in Path(path).absolute().parents]
    near = {
        place: one for one in folders[:2] for place in (one, *(f"{one}/{name}" for name in _FOLDERS_OF_WARCS))
    }
    given = {warcs.rstrip("/"): warcs.rstrip("/")} if warcs else {}
    own = [*given, *(folders if path is None else folders[:2])]
    further = [one for one in folders[2:] if path is None or Path(one).is_relative_to(Path.cwd())]
    bare = {**given, **near, **given}
    with_folders = {**bare, **{one: one for one in further if one not in bare}}
    return [
        *(_Way(folder, within, takes_whole=folder in own) for folder, within in with_folders.items()),
        *(_Way(folder, within, is_bare=True) for folder, within in bare.items()),
    ]


def _nowhere(index: str, warcs: str) -> str:
    """Where a file was looked for by all ways, and was not."""
    near = f"near {shown(index)}, in its folder or those above, or in warcs or archive there"
    if warcs:
        return f"it is neither in {shown(warcs)}, as the setting pages.warcs says, nor {near}"
    return f"it is not {near}; the setting pages.warcs says where WARC files are"


def _captured(line: str, fields: str) -> _Capture | str:
    """What a line says; or why it says nothing."""
    start = 0 if line.startswith("{") else line.find(" {") + 1
    if line[start] == "{":
        return _from_json(line[start:])
    cells = line.split("\t" if "\t" in line else " ")
    names = fields or _USUAL_FIELDS.get(len(cells), "")
    if len(names) != len(cells):
        return f"it has {len(cells)} fields" + (f" instead of {len(names)}" if names else "")
    found = dict(zip(names, cells, strict=True))
    return _capture(
        found.get("a", ""), found.get("m"), found.get("s"), found.get("S"), found.get("V"), found.get("g")
    )


def _from_json(text: str) -> _Capture | str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"what is in braces is no JSON: {error}"
    if not isinstance(found, dict):
        return "what is in braces is no object"
    names = ("url", "mime", "status", "length", "offset", "filename")
    return _capture(*(found.get(name) for name in names))


def _capture(url: Any, media_type: Any, status: Any, length: Any, offset: Any, file: Any) -> _Capture | str:
    start = _number(offset)
    if not isinstance(file, str) or file in ("", "-") or "\0" in file or start is None:
        return "it names no file and byte"
    if not isinstance(url, str) or not url:
        return "it names no URL"
    kind = str(media_type or "").partition(";")[0].strip().lower()
    return _Capture(url, kind, str(status or "").strip(), _Place(file, start, _number(length), url))


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None
