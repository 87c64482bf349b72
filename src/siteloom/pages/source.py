"""What a source of pages is, and how one is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from siteloom.config import PagesSettings
from siteloom.errors import SourceError
from siteloom.filesystems import has_scheme, local_path, without_query
from siteloom.model import Failure, Page, Resource, Skipped
from siteloom.pages.cdx import Cdx
from siteloom.pages.folder import Folder, HtmlFile
from siteloom.pages.formats import is_index, open_file
from siteloom.pages.jsonl import JsonLines
from siteloom.pages.parquet import Parquet
from siteloom.pages.remote import RemoteFile
from siteloom.pages.wacz import Wacz
from siteloom.pages.warc import Warc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SourceItem: TypeAlias = Page | Resource | Failure | Skipped


class PageSource(Protocol):
    """Anything that pages are read from: a file, a folder, a workspace."""

    def read(self) -> Iterator[SourceItem]:
        """All that is in the source, from the start each time it is called."""
        ...

    def shards(self) -> Sequence[PageSource]:
        """The same items in parts that can be read apart, in order; each part pickles."""
        ...


@dataclass(frozen=True, slots=True)
class Items:
    """A source of what is at hand already."""

    items: Sequence[SourceItem]

    def read(self) -> Iterator[SourceItem]:
        """The items."""
        return iter(self.items)

    def shards(self) -> tuple[Items]:
        """All in one: they are few."""
        return (self,)


def open_source(
    location: str | Path, settings: PagesSettings = PagesSettings(), *, with_resources: bool = False
) -> PageSource:
    """The source at a path, told by what it is and what its name ends in.

    A text with a scheme, such as `s3://bucket/crawl.warc.gz`, is a file elsewhere; a `Path` never is.
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
    """The file or folder that a source is, if it is one of this machine."""
    if isinstance(source, Cdx):
        path = local_path(source.location)
        return Path(path) if path is not None else None
    return source.path if isinstance(source, Folder | HtmlFile | JsonLines | Parquet | Wacz | Warc) else None


def read_sources(sources: Iterable[PageSource]) -> Iterator[SourceItem]:
    """All that is in several sources, one after the other."""
    for source in sources:
        yield from source.read()
