"""Which reader belongs to which source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from siteloom.config import PagesSettings
from siteloom.errors import SourceError
from siteloom.model import Failure, Page, Resource, Skipped
from siteloom.pages.folder import HTML_SUFFIXES, Folder, HtmlFile
from siteloom.pages.jsonl import JsonLines
from siteloom.pages.parquet import Parquet
from siteloom.pages.warc import Warc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SourceItem: TypeAlias = Page | Resource | Failure | Skipped
FileFormat = Literal["WARC", "JSON Lines", "Parquet", "HTML"]

_JSON_LINES_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")

FILE_SUFFIXES = (
    *HTML_SUFFIXES,
    ".parquet",
    *(name + packed for name in (".warc", *_JSON_LINES_SUFFIXES) for packed in ("", *_COMPRESSION_SUFFIXES)),
)
"""What the names of files that are sources end in."""


class PageSource(Protocol):
    """Anything that pages are read from: a file, a folder, a workspace."""

    def read(self) -> Iterator[SourceItem]:
        """All that is in the source, from the start each time it is called."""
        ...

    def shards(self) -> Sequence[PageSource]:
        """The same items in parts that can be read apart, in order; each part pickles."""
        ...


def open_source(
    location: str | Path, settings: PagesSettings = PagesSettings(), *, with_resources: bool = False
) -> PageSource:
    """The source at a path, told by what it is and what its name ends in."""
    path = Path(location)
    try:
        is_folder = path.is_dir()
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise SourceError(f"{location!s} cannot be opened: {error}.") from error
    if not exists and str(location).startswith(("http://", "https://")):
        raise SourceError(f"{location!s} is on the web: save it first, and name the file or folder.")
    if not exists:
        raise SourceError(f"There is no file or folder {location!s}: check the path.")
    if is_folder:
        return Folder.open(path, settings)

    match file_format(path.name):
        case "WARC":
            return Warc(path, settings, with_resources)
        case "JSON Lines":
            return JsonLines(path, settings)
        case "Parquet":
            return Parquet.open(path, settings)
        case "HTML":
            return HtmlFile(path, settings)
    raise SourceError(
        f"Cannot tell what {location!s} is: a source is a folder of HTML files, or a file named "
        ".html, .warc, .parquet or .jsonl (.warc and .jsonl also compressed, such as .warc.gz)."
    )


def file_format(file_name: str) -> FileFormat | None:
    """What pages in a file are written in, as its name tells; None of a file that is no source."""
    name = file_name.lower()
    bare_name = name.removesuffix(_ending(name, _COMPRESSION_SUFFIXES))
    if bare_name.endswith(".warc"):
        return "WARC"
    if bare_name.endswith(_JSON_LINES_SUFFIXES):
        return "JSON Lines"
    if name.endswith(".parquet"):
        return "Parquet"
    return "HTML" if name.endswith(HTML_SUFFIXES) else None


def read_sources(sources: Iterable[PageSource]) -> Iterator[SourceItem]:
    """All that is in several sources, one after the other."""
    for source in sources:
        yield from source.read()


def _ending(name: str, suffixes: tuple[str, ...]) -> str:
    return next((suffix for suffix in suffixes if name.endswith(suffix)), "")
