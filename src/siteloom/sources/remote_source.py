"""Read pages from remote files: on S3, HDFS, the web, and any other filesystem of fsspec.

A file is copied to a local one when it is read, by the process that needs its pages, which may run on another
machine than the one that found the file.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import MissingExtra, SourceError
from siteloom.core.model import Failure
from siteloom.core.remote_files import (
    MISSING,
    WEB,
    failure_of,
    fetch,
    filesystem_of,
    look_up,
    shown,
    source_error,
    without_query,
)
from siteloom.core.table_files import load_pyarrow
from siteloom.sources.page_source import renamed_items
from siteloom.sources.source_formats import archive_suffix, is_found_by, is_index, open_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.core.settings import PagesSettings
    from siteloom.sources.page_source import SourceItem

# The fields of filesystems that change with the content of a file, without signs and in small letters.
# Not the time of the last access, which changes when a file is read.
_STATE_FIELDS = frozenset(
    {"size", "etag", "contentmd5", "digest", "md5hash", "generation", "created"}
    | {"mtime", "modified", "modify", "lastmodified", "updated"}
)

_UNREADABLE = "unreadable file"


class ListedFile(NamedTuple):
    """A file listed in a remote folder; `state` is None if the folder does not give it."""

    url: str
    state: str | None


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A remote WARC, WACZ, Parquet or JSON Lines file.

    `state` changes when the content of the file does, as far as its filesystem tells. If `insistent`, a file
    that cannot be read now raises an error unless it does not exist, so that the caller can try again later.
    """

    url: str
    settings: PagesSettings
    with_resources: bool = False
    state: str = ""
    insistent: bool = False

    @classmethod
    def open(
        cls, url: str, settings: PagesSettings, *, with_resources: bool = False, state: str | None = None
    ) -> RemoteFile:
        """Check that the file exists, unless its state is known, and that it can be read here."""
        suffix = archive_suffix(without_query(url))
        if not suffix:
            raise _no_source(url)
        if suffix == ".parquet":
            load_pyarrow()
        if state is None:
            info = look_up(url)
            if isinstance(info, Failure):
                raise source_error(info)
            if info.get("type") == "directory":
                raise SourceError(f"{shown(url)} is a folder: end it with / to read the files in it.")
            state = _state(info)
        return cls(url, settings, with_resources, state)

    def read(self) -> Iterator[SourceItem]:
        """Yield all items of the file; a single failure if it cannot be read."""
        with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
            copy = Path(folder, f"pages{archive_suffix(without_query(self.url))}")
            failure = fetch(self.url, copy)
            if failure is not None and self.insistent and failure.reason != MISSING:
                raise SourceError(f"{source_error(failure)} The same command goes on where it was.")
            if failure is not None:
                yield failure
                return
            yield from renamed_items(shown(self.url), self._items(copy), copy)

    def shards(self) -> Sequence[RemoteFile]:
        """The file itself, as it is copied whole."""
        return (self,)

    def _items(self, copy: Path) -> Iterator[SourceItem]:
        try:
            reader = open_file(copy, self.settings, with_resources=self.with_resources)
        except SourceError as error:
            yield Failure(str(copy), _UNREADABLE, str(error))
            return
        assert reader is not None
        yield from reader.read()


def remote_files(location: str) -> list[ListedFile]:
    """List the WARC, WACZ, Parquet and JSON Lines files below an address that ends in /, or of a pattern."""
    is_pattern = "*" in location
    name = without_query(location)
    if location.startswith(WEB) and not (is_pattern and (archive_suffix(name) or is_index(name))):
        raise _no_source(location)  # a folder on a web server is a page like any other
    try:
        filesystem, path = filesystem_of(location)
        infos = filesystem.glob(path, detail=True) if is_pattern else filesystem.find(path, detail=True)
    except FileNotFoundError:
        infos = {}
    except MissingExtra:
        raise
    except Exception as error:
        raise source_error(failure_of(location, error)) from error
    files = [
        ListedFile(
            _address(filesystem, location, path, file), _state(info) if info.get("size") is not None else None
        )
        for file, info in sorted(infos.items())
        if info.get("type") != "directory" and is_found_by(name, without_query(file))
    ]
    if not files:
        raise no_match(location)
    return files


def no_match(location: str) -> SourceError:
    """Return the error for a pattern or folder without any file."""
    where = "matches" if "*" in location else "is in"
    return SourceError(
        f"No WARC, WACZ, Parquet or JSON Lines file {where} {shown(location)}: check it, "
        "and name a folder of HTML files by its path alone."
    )


def _address(filesystem: Any, location: str, path: str, name: str) -> str:
    """Return the address of a file found under a path, with the host of the location, if it has one."""
    start = location.rstrip("/").removesuffix(path.rstrip("/"))
    if start != location.rstrip("/"):
        return start + name
    address: str = filesystem.unstrip_protocol(name)
    return address


def _state(info: Mapping[str, Any]) -> str:
    """Return a text that changes with the content of a file, as far as its filesystem tells."""
    named = {re.sub("[^a-z0-9]", "", key.lower()): value for key, value in info.items()}
    return " ".join(
        f"{name}={named[name]}" for name in sorted(_STATE_FIELDS & named.keys()) if named[name] is not None
    )


def _no_source(url: str) -> SourceError:
    if url.startswith(WEB):
        return SourceError(
            f"{shown(url)} is on the web: siteloom crawl fetches pages, or name a file or folder."
        )
    return SourceError(
        f"Cannot tell what {shown(url)} is: elsewhere, sources are files named .warc, .wacz, .parquet, "
        ".jsonl or .cdxj (.warc, .jsonl and .cdxj also compressed, such as .warc.gz), or a folder of them "
        "that ends in /."
    )
