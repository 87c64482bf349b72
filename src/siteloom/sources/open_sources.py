"""open_sources() and read_pages(): expand folders, file patterns and @lists, and open each location."""

from __future__ import annotations

import glob
import io
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from siteloom.core.errors import SourceError
from siteloom.core.foreign_files import read_at_most
from siteloom.core.model import Failure, Page
from siteloom.core.remote_files import (
    fetch_needed,
    folders_above,
    has_scheme,
    leads_to_this_machine,
    local_path,
    look_up,
    shown,
    without_query,
)
from siteloom.core.settings import PagesSettings
from siteloom.sources.cdx_index import Cdx
from siteloom.sources.compressed_file import DECOMPRESSION_ERRORS, open_compressed
from siteloom.sources.html_folder import Folder, HtmlFile, outside
from siteloom.sources.json_lines import JsonLines
from siteloom.sources.page_source import Items, PageSource, SourceItem
from siteloom.sources.parquet import Parquet
from siteloom.sources.remote_source import ListedFile, RemoteFile, no_match, remote_files
from siteloom.sources.source_formats import is_found_by, is_index, open_file
from siteloom.sources.wacz import Wacz
from siteloom.sources.warc import Warc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def open_source(
    location: str | Path, settings: PagesSettings = PagesSettings(), *, with_resources: bool = False
) -> PageSource:
    """Open the source at a path, by its kind and suffix.

    A text with a scheme, such as `s3://bucket/crawl.warc.gz`, is a remote file; a `Path` never is.
    """
    if isinstance(location, str) and has_scheme(location):
        local = local_path(location)
        if local is None and is_index(without_query(location)):
            return Cdx.open(location, settings, with_resources=with_resources)
        if local is None:
            return RemoteFile.open(location, settings, with_resources=with_resources)
        location = local
    path = Path(location)
    try:
        is_folder = path.is_dir()
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise SourceError(f"{location!s} cannot be opened: {error}.") from error
    if not exists:
        raise SourceError(f"There is no file or folder {location!s}: check the path.")
    if is_folder:
        return Folder.open(path, settings)
    if (reader := open_file(path, settings, with_resources=with_resources)) is not None:
        return reader
    raise SourceError(
        f"Cannot tell what {location!s} is: a source is a folder of HTML files, or a file named "
        ".html, .warc, .wacz, .parquet, .jsonl or .cdxj (.warc, .jsonl and .cdxj also compressed, such as "
        ".warc.gz)."
    )


def place_on_disk(source: PageSource) -> Path | None:
    """Return the local file or folder of a source, if it has one."""
    if isinstance(source, Cdx):
        path = local_path(source.location)
        return Path(path) if path is not None else None
    return source.path if isinstance(source, Folder | HtmlFile | JsonLines | Parquet | Wacz | Warc) else None


def read_sources(sources: Iterable[PageSource]) -> Iterator[SourceItem]:
    """Yield the items of several sources, one source after the other."""
    for source in sources:
        yield from source.read()


LIST_MARK = "@"
"""The mark before the name of a file that lists sources."""

_COMMENT_MARK = "#"

# The file list of a Common Crawl release has 100,000 entries in 14 MB.
_LARGEST_LIST = 1 << 25
_MOST_LISTED = 250_000

# The number of concurrent lookups of remote files: a list may have thousands, and each lookup takes a round
# trip. Object stores accept far more requests from one client.
_LOOKED_UP_AT_ONCE = 16


def open_sources(
    locations: Iterable[str | Path],
    settings: PagesSettings = PagesSettings(),
    *,
    with_resources: bool = False,
) -> list[PageSource]:
    """Open the sources at locations, in their order; a `Path` is always a single source.

    A text with * stands for all files that match it, an address that ends in / for all files below it, and
    @FILE for the locations listed in that file, one per line.
    """

    def open_location(location: str | Path | ListedFile | Items) -> PageSource:
        if isinstance(location, Items):
            return location
        if isinstance(location, ListedFile) and is_index(without_query(location.url)):
            return open_source(location.url, settings, with_resources=with_resources)
        if isinstance(location, ListedFile):
            return RemoteFile.open(
                location.url, settings, with_resources=with_resources, state=location.state
            )
        return open_source(location, settings, with_resources=with_resources)

    expanded = [item for location in locations for item in _expanded(location)]
    with ThreadPoolExecutor(_LOOKED_UP_AT_ONCE) as pool:
        return list(pool.map(open_location, expanded))


def _expanded(location: str | Path) -> Iterator[str | Path | ListedFile | Items]:
    if isinstance(location, str) and location.startswith(LIST_MARK):
        for listed in _listed(location.removeprefix(LIST_MARK)):
            yield from _matching(listed)
    else:
        yield from _matching(location)


def _matching(location: str | Path) -> Iterable[str | Path | ListedFile | Items]:
    """Expand a location that is not a list."""
    if isinstance(location, Path):
        return [location]
    path = local_path(location)
    if path is None:
        return remote_files(location) if "*" in location or location.endswith("/") else [location]
    is_folder_of_files = has_scheme(location) and path.endswith("/")
    if not is_folder_of_files and ("*" not in path or os.path.exists(path)):  # noqa: PTH110 - takes any text
        return [Path(path)]
    folder = Path(path if is_folder_of_files else _folder_of(path))
    if files := _local_files(f"{glob.escape(path)}**" if is_folder_of_files else path):
        return [Items((failure,)) if (failure := outside(file, folder)) else file for file in files]
    raise no_match(location)


def _folder_of(pattern: str) -> str:
    """Return the folder before the first wildcard of a pattern; files below it are untrusted."""
    folder = pattern
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)  # noqa: PTH120 - takes any text
    return folder


def _local_files(pattern: str) -> list[Path]:
    """List the WARC, WACZ, Parquet and JSON Lines files that match a pattern, in the order of their names."""
    try:
        names = sorted(_names(pattern))
    except (OSError, ValueError):
        return []
    return [Path(name) for name in names if is_found_by(pattern, name) and os.path.isfile(name)]  # noqa: PTH113


def _names(pattern: str) -> set[str]:
    """Return the paths that match a pattern; ** stands for folders of any depth, without following links.

    Two links to the folder that contains them would make more paths than can be walked.
    """
    segments = pattern.split("/")
    if "**" not in segments:
        return set(glob.glob(pattern))  # noqa: PTH207 - keeps names as they are written
    wildcard_index = segments.index("**")
    base, below = "/".join(segments[:wildcard_index]), "/".join(segments[wildcard_index + 1 :]) or "*"
    starts = glob.glob(base) if base else ["/" if pattern.startswith("/") else ""]  # noqa: PTH207
    names: set[str] = set()
    for start in starts:
        for folder, folders, _ in os.walk(start or os.curdir):
            folders[:] = [name for name in folders if not name.startswith(".")]
            within = folder if start else folder.removeprefix(os.curdir).removeprefix("/")
            names |= _names(os.path.join(glob.escape(within), below))  # noqa: PTH118 - as above
    return names


def _listed(file: str) -> list[str]:
    """Read the locations that a file lists, relative to the current folder."""
    stripped = map(str.strip, io.StringIO(_text(file), newline=None))
    locations = (line for line in stripped if line and not line.startswith(_COMMENT_MARK))
    lines = list(islice(locations, _MOST_LISTED + 1))
    if len(lines) > _MOST_LISTED:
        raise SourceError(f"The list {shown(file)} names more than {_MOST_LISTED:,} sources: split it.")
    if not lines:
        raise SourceError(f"The list {shown(file)} is empty: it must name one source a line.")
    path = local_path(file)
    if path is None:
        return _in_remote_folder(file, lines)
    folder = Path(path).parent
    return [line if has_scheme(line) else _beside(folder, line) for line in lines]


def _text(file: str) -> str:
    """Read the content of a list, which may be remote and may be compressed."""
    with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
        path = local_path(file)
        if path is None:
            copy = Path(folder, f"list{Path(without_query(file)).suffix}")
            fetch_needed(file, copy, _LARGEST_LIST)
        try:
            with open_compressed(Path(path) if path is not None else copy) as content:
                return read_at_most(content, _LARGEST_LIST).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"The list {shown(file)} is no text in UTF-8: {error.reason}.") from error
        except (OSError, ValueError, *DECOMPRESSION_ERRORS) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SourceError(f"The list {shown(file)} cannot be read: {reason}.") from error


def _beside(folder: Path, line: str) -> str:
    """Resolve a path against the folder of its list if it exists there."""
    beside = str(folder / line)
    leads_there = os.path.exists(beside) or ("*" in line and _local_files(beside))  # noqa: PTH110
    return beside if leads_there else line


def _in_remote_folder(file: str, lines: list[str]) -> list[str]:
    """Resolve the lines of a remote list that have no scheme against the folder they are relative to.

    This is the nearest folder above the list that contains the first of them: the lists of Common Crawl
    are far below the folder that their lines are relative to.
    """
    own = [line for line in lines if leads_to_this_machine(line)]
    if own:
        raise SourceError(
            f"The list {shown(file)} names {shown(own[0])}, but a list from elsewhere may not lead to "
            "files of this machine: copy it, and name the copy."
        )
    lines = [line if has_scheme(line) else line.lstrip("/") for line in lines]
    plain = [line for line in lines if not (has_scheme(line) or "*" in line or line.endswith("/"))]
    folders = folders_above(file)
    if plain:
        folders = [folder for folder in folders if not isinstance(look_up(f"{folder}/{plain[0]}"), Failure)]
    if not folders:
        raise SourceError(
            f"The list {shown(file)} names {plain[0]}, which is in no folder above it: "
            "write such lines with their whole addresses."
        )
    return [line if has_scheme(line) else f"{folders[0]}/{line}" for line in lines]


_log = logging.getLogger(__name__)


def read_pages(*sources: str | Path, on_failure: Callable[[Failure], object] | None = None) -> Iterator[Page]:
    """Stream the pages of folders, WARC, WACZ, Parquet and JSON Lines files, one source after the other.

    Pages that cannot be read are reported to `on_failure`, by default as a warning in the log, and reading
    continues. A source that does not exist raises `SourceError` at once. A text may also stand for many
    sources, as on the command line: see `open_sources`.
    """
    report = on_failure or _log_failure
    return _pages(open_sources(sources), report)


def _pages(sources: list[PageSource], on_failure: Callable[[Failure], object]) -> Iterator[Page]:
    for item in read_sources(sources):
        if isinstance(item, Page):
            yield item
        elif isinstance(item, Failure):
            on_failure(item)


def _log_failure(failure: Failure) -> None:
    _log.warning("%s: %s (%s)", failure.url, failure.reason, failure.detail)
