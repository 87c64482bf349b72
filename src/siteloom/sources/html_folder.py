"""Pages from HTML files: a folder of any depth, or a single file."""

from __future__ import annotations

import csv
import io
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urljoin, urlsplit

from siteloom.core.errors import SourceError
from siteloom.core.foreign_files import leads_out, lines_at_most, open_below
from siteloom.core.model import Failure, Page
from siteloom.core.urls import oversized_url
from siteloom.sources.page_source import time_from_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from siteloom.core.settings import PagesSettings

HTML_SUFFIXES = (".html", ".htm", ".xhtml")
INDEX_FILE = "index.csv"

# Some seconds of work for a worker, and a list that is soon sent to it.
_FILES_PER_SHARD = 256

OUTSIDE = "outside the folder"
"""Why a file is not read that a link leads to, or an index, as a `Failure` says it."""

_LONGEST_LINE = 1_000_000  # characters, of a line of the index: a path and an address may take some thousand

_BODY_TAG = re.compile(rb"<body[\s/>]", re.IGNORECASE)


class _Entry(NamedTuple):
    """What `index.csv` says of a file."""

    url: str
    fetched_at: datetime | None


class _File(NamedTuple):
    """A file to read, and what the index says of it, if anything."""

    path: Path
    entry: _Entry | None


@dataclass(frozen=True, slots=True)
class Folder:
    """All HTML files below a folder, and whatever else its `index.csv` names.

    The index has the columns `file` (relative to the folder) and `url`, and may
    have `fetched_at`.
    """

    path: Path
    settings: PagesSettings
    index: tuple[tuple[Path, _Entry | Failure], ...]

    @classmethod
    def open(cls, path: Path, settings: PagesSettings) -> Folder:
        """Read the index, and make sure that there is anything to read."""
        folder = cls(path, settings, _read_index(path))
        if not folder.index and next(folder._html_files(), None) is None:
            raise SourceError(
                f"There are no pages in {path}: files must end in {', '.join(HTML_SUFFIXES)} "
                f"or be listed in {INDEX_FILE}."
            )
        return folder

    def read(self) -> Iterator[Page | Failure]:
        """Indexed files in the order of the index, then the others in the order of their names."""
        return _read_files(self._listing(), self.settings)

    def shards(self) -> Sequence[_FolderPart]:
        """The files as they are listed now, some hundred at a time."""
        listing = tuple(self._listing())
        starts = range(0, len(listing), _FILES_PER_SHARD)
        return [_FolderPart(listing[start : start + _FILES_PER_SHARD], self.settings) for start in starts]

    def _listing(self) -> Iterator[_File | Failure]:
        for file, entry in self.index:
            yield entry if isinstance(entry, Failure) else _File(file, entry)
        indexed = {file for file, _ in self.index}
        for found in self._html_files():
            if isinstance(found, Failure):
                yield found
            elif found not in indexed:
                yield _File(found, None)

    def _html_files(self) -> Iterator[Path | Failure]:
        unreadable: list[OSError] = []
        for folder, subfolders, files in os.walk(self.path, onerror=unreadable.append):
            subfolders.sort()
            for name in sorted(files):
                if name.lower().endswith(HTML_SUFFIXES):
                    yield self._file(Path(folder, name))
        for error in unreadable:
            place = _file_url(Path(error.filename))
            yield Failure(place, "unreadable folder", f"{error.filename}: {error.strerror}")

    def _file(self, file: Path) -> Path | Failure:
        """The file, unless it is a link that leads out: a folder may come from anyone."""
        # Only files are looked at: no folder is walked that is a link.
        return (file.is_symlink() and outside(file, self.path)) or file


@dataclass(frozen=True, slots=True)
class _FolderPart:
    """Some files of a folder, and what went wrong among them when they were listed."""

    files: tuple[_File | Failure, ...]
    settings: PagesSettings

    def read(self) -> Iterator[Page | Failure]:
        """The pages in the order of the files."""
        return _read_files(self.files, self.settings)

    def shards(self) -> Sequence[_FolderPart]:
        """The part itself."""
        return (self,)


@dataclass(frozen=True, slots=True)
class HtmlFile:
    """A single page in a file."""

    path: Path
    settings: PagesSettings

    def read(self) -> Iterator[Page | Failure]:
        """The one page."""
        yield _read_page(self.path, None, self.settings)

    def shards(self) -> Sequence[HtmlFile]:
        """The file itself."""
        return (self,)


def _read_index(folder: Path) -> tuple[tuple[Path, _Entry | Failure], ...]:
    file = folder / INDEX_FILE
    if not file.exists():
        return ()
    index: list[tuple[Path, _Entry | Failure]] = []
    try:
        with io.TextIOWrapper(open_below(file, folder), encoding="utf-8-sig", newline="") as content:
            rows = csv.DictReader(lines_at_most(content, _LONGEST_LINE))
            missing = {"file", "url"} - set(rows.fieldnames or ())
            if missing:
                raise SourceError(
                    f"{file} has no column {' and no column '.join(sorted(missing))}: it needs file and url."
                )
            for row in rows:
                # Normal, so that a file is known again when the folder is walked.
                path = folder / os.path.normpath(row["file"] or "")
                index.append((path, _entry(row, path, folder, f"{file}:{rows.line_num}")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise SourceError(f"{file} cannot be read: {why}.") from error
    return tuple(index)


def _entry(row: dict[str, str | None], path: Path, folder: Path, place: str) -> _Entry | Failure:
    url = (row["url"] or "").strip()
    if not url:
        return Failure(place, "no URL", "the column url is empty")
    if failure := oversized_url(url):
        return failure
    try:
        if leads_out(path, folder):
            return Failure(url, OUTSIDE, f"{row['file']} ({place})")
    except (OSError, ValueError) as error:
        return Failure(url, "unreadable file", f"{error} ({place})")
    try:
        return _Entry(url, time_from_field(row.get("fetched_at")))
    except ValueError as error:
        return Failure(url, "bad fetched_at", f"{error} ({place})")


def outside(file: Path, folder: Path) -> Failure | None:
    """The failure that a link leads out of a folder, if it does: the folder may come from anyone."""
    try:
        if leads_out(file, folder):
            target = file.readlink() if file.is_symlink() else file.resolve()
            return Failure(_file_url(file), OUTSIDE, f"{file} is a link to {target}")
    except OSError:  # told when it is read
        pass
    return None


def _read_files(files: Iterable[_File | Failure], settings: PagesSettings) -> Iterator[Page | Failure]:
    for file in files:
        yield file if isinstance(file, Failure) else _read_page(file.path, file.entry, settings)


def _read_page(file: Path, entry: _Entry | None, settings: PagesSettings) -> Page | Failure:
    place = entry.url if entry else _file_url(file)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            return Failure(place, "not a file", str(file))
        if status.st_size > settings.max_bytes:
            detail = f"{file} has {status.st_size:,} bytes; at most {settings.max_bytes:,} are taken"
            return Failure(place, "page too large", detail)
        html = file.read_bytes()
    except OSError as error:
        return Failure(place, "unreadable file", f"{file}: {error.strerror}")
    if entry:
        return Page(entry.url, html, entry.fetched_at)
    url = canonical_url(Page(place, html)) or place
    return oversized_url(url) or Page(url, html)


def _file_url(file: Path) -> str:
    """A file's address, the same however the way to the file was written."""
    return Path(os.path.abspath(file)).as_uri()  # noqa: PTH100 - absolute() would leave ".." in it


def canonical_url(page: Page) -> str | None:
    """The absolute web address that a page gives as its own in `<link rel="canonical">`."""
    # Only a link in the head counts, and the head is a small part of a page.
    body = _BODY_TAG.search(page.html)
    head = page.html[: body.start()] if body else page.html
    if b"canonical" not in head.lower():
        return None
    from siteloom.html.parser import parse  # noqa: PLC0415 - loads the compiled kernels, seldom needed here

    root = parse(Page(page.url, head))
    if isinstance(root, Failure):
        return None
    bases = cast("list[str]", root.xpath("//base/@href"))
    for link in root.iter("link"):
        if "canonical" in (link.get("rel") or "").lower().split():
            try:
                url = urljoin(bases[0].strip() if bases else "", (link.get("href") or "").strip())
                address = urlsplit(url)
            except ValueError:
                continue
            if address.scheme in ("http", "https") and address.netloc:
                return url
    return None
