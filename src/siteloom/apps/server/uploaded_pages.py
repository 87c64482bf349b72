"""The files of an upload as sources of pages, for the job that imports them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobInput
from siteloom.apps.server.upload_folder import find_upload
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Failure, Page
from siteloom.sources.html_folder import INDEX_FILE
from siteloom.sources.open_sources import open_source
from siteloom.sources.source_formats import file_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from siteloom.core.settings import PagesSettings, Settings
    from siteloom.sources.page_source import PageSource, SourceItem
    from siteloom.store.store import Store

_FILES_NAMED = 5


@contextmanager
def uploaded_pages(
    store: Store, settings: Settings, arguments: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """The sources and names of an upload, which is removed once its pages are imported."""
    upload = find_upload(store.folder.absolute(), arguments["upload"])
    sources = sources_of(upload.files, settings.pages, with_resources=bool(arguments.get("resources")))
    url: str | None = arguments.get("url")
    if url is not None:
        sources = [_PageAtUrl(_only_source(sources), url)]
    names = sorted(str(file.relative_to(upload.files)) for file in _files(upload.files))
    yield {"sources": tuple(sources), "names": tuple(names[:_FILES_NAMED])}
    upload.remove()


def sources_of(folder: Path, settings: PagesSettings, *, with_resources: bool) -> list[PageSource]:
    """The sources in the folder of an upload: folders with an index, and all other files.

    Addresses and failures name files as if the folder were the root of the disk: where it really is concerns
    nobody, and differs from one upload to the next.
    """
    indexed = [file.parent for file in _files(folder) if file.name == INDEX_FILE]
    whole = [place for place in indexed if not any(outer in place.parents for outer in indexed)]
    single = [
        file
        for file in _files(folder)
        if file_format(file.name) is not None and not any(place in file.parents for place in whole)
    ]
    # A folder with an index may have archives beside its pages, which it does not read itself.
    beside = [
        file for place in whole for file in _files(place) if file_format(file.name) not in (None, "HTML")
    ]
    try:
        return [
            _UploadedSource(open_source(place, settings, with_resources=with_resources), folder)
            for place in (*whole, *beside, *single)
        ]
    except SourceError as error:
        raise SourceError(_as_root(folder, str(error))) from error


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _only_source(sources: Sequence[PageSource]) -> PageSource:
    if len(sources) != 1:
        raise UsageError("Only a single page can be given an address: upload one HTML file.")
    return sources[0]


@dataclass(frozen=True, slots=True)
class _UploadedSource:
    """A source in the folder of an upload, whose paths are shown as if that were the root of the disk."""

    source: PageSource
    folder: Path

    def read(self) -> Iterator[SourceItem]:
        """The items of the source with paths below the folder."""
        for item in self.source.read():
            if isinstance(item, Failure):
                yield replace(item, url=self._shown(item.url), detail=self._shown(item.detail))
            else:
                yield replace(item, url=self._shown(item.url))

    def shards(self) -> Sequence[_UploadedSource]:
        """The shards of the source."""
        return [_UploadedSource(shard, self.folder) for shard in self.source.shards()]

    def _shown(self, text: str) -> str:
        return _as_root(self.folder, text)


def _as_root(folder: Path, text: str) -> str:
    """A text in which a folder is the root of the disk, in paths and in URLs of files."""
    return text.replace(f"{folder.as_uri()}/", "file:///").replace(f"{folder}/", "/")


@dataclass(frozen=True, slots=True)
class _PageAtUrl:
    """A source of a single page whose URL the sender has given."""

    source: PageSource
    url: str

    def read(self) -> Iterator[SourceItem]:
        """The page at its URL; a second page would pass for another version of it, so it is refused."""
        pages = 0
        for item in self.source.read():
            pages += isinstance(item, Page)
            if pages > 1:
                raise UsageError("Only a single page can be given an address: upload one HTML file.")
            yield replace(item, url=self.url) if isinstance(item, Page) else item

    def shards(self) -> Sequence[_PageAtUrl]:
        """The source as one shard."""
        return (self,)


UPLOADED_PAGES = JobInput(
    {
        "upload": Argument("text", is_needed=True),
        "name": Argument("text"),
        "url": Argument("url"),
        "resources": Argument("flag"),
    },
    uploaded_pages,
)
"""The upload that a job imports, what to call it, the URL of its only page, and whether to keep images."""
