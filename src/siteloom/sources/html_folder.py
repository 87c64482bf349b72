"""Read pages from HTML files: a folder of any depth, or a single file."""

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
"""The reason of a `Failure` for a file that a link or an index names outside the folder."""

_LONGEST_LINE = 1_000_000  # characters of a line of the index: a path and an address may have some thousand

_BODY_TAG = re.compile(rb"<body[\s/>]", re.IGNORECASE)


class _Entry(NamedTuple):
    """The entry of a file in `index.csv`."""

    url: str
    fetched_at: datetime | None


class _File(NamedTuple):
    """A file to read, and its entry in the index, if any."""

    path: Path
    entry: _Entry | None


@dataclass(frozen=True, slots=True)
class Folder:
    """All HTML files below a folder, and any other file that its `index.csv` names.

    The index has the columns `file` (relative to the folder) and `url`, and may
    have `fetched_at`.
    """

    path: Path
    settings: PagesSettings
    index: tuple[tuple[Path, _Entry | Failure], ...]

    @classmethod
    def open(cls, path: Path, settings: PagesSettings) -> Folder:
        """Read the index, and check that the folder contains pages."""
        folder = cls(path, settings, _read_index(path))
        if not folder.index and next(folder._html_files(), None) is None:
            raise SourceError(
                f"There are no pages in {path}: files must end in {', '.join(HTML_SUFFIXES)} "
                f"or be listed in {INDEX_FILE}."
            )
        return folder

    def read(self) -> Iterator[Page | Failure]:
        """Yield the pages of indexed files in index order, then the others in the order of their names."""
        return _read_files(self._listing(), self.settings)

    def shards(self) -> Sequence[_FolderPart]:
        """Split the current list of files into parts of some hundred."""
        listing = tuple(self._listing())
        starts = range(0, len(listing), _FILES_PER_SHARD)
        return [_FolderPart(listing[start : start + _FILES_PER_SHARD], self.settings) for start in starts]

    def _listing(self) -> Iterator[_File | Failure]:
        for path, entry in self.index:
            yield entry if isinstance(entry, Failure) else _File(path, entry)
        indexed = {path for path, _ in self.index}
        for file in self._html_files():
            if isinstance(file, Failure):
                yield file
            elif file not in indexed:
                yield _File(file, None)

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
        """Return the file, or a failure if it is a link that leads out of the untrusted folder."""
        # Only files need this check: folders that are links are not walked.
        return (file.is_symlink() and outside(file, self.path)) or file


@dataclass(frozen=True, slots=True)
class _FolderPart:
    """Some files of a folder, with the failures from listing them."""

    files: tuple[_File | Failure, ...]
    settings: PagesSettings

    def read(self) -> Iterator[Page | Failure]:
        """Yield the pages in the order of the files."""
        return _read_files(self.files, self.settings)

    def shards(self) -> Sequence[_FolderPart]:
        """Return the part itself."""
        return (self,)


@dataclass(frozen=True, slots=True)
class HtmlFile:
    """A single page in a file."""

    path: Path
    settings: PagesSettings

    def read(self) -> Iterator[Page | Failure]:
        """Yield the page."""
        yield _read_page(self.path, None, self.settings)

    def shards(self) -> Sequence[HtmlFile]:
        """Return the file itself."""
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
                # Normalized, so that the file is recognized when the folder is walked.
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
    """Return a failure if a link leads out of an untrusted folder."""
    try:
        if leads_out(file, folder):
            target = file.readlink() if file.is_symlink() else file.resolve()
            return Failure(_file_url(file), OUTSIDE, f"{file} is a link to {target}")
    except OSError:  # reported when the file is read
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
    """Return a file's URL, which is the same however its path was written."""
    return Path(os.path.abspath(file)).as_uri()  # noqa: PTH100 - absolute() would leave ".." in it


def canonical_url(page: Page) -> str | None:
    """Return the absolute web address of a page's `<link rel="canonical">`, if it has one."""
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
