"""Which reader belongs to which file, told by what its name ends in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from siteloom.pages.folder import HTML_SUFFIXES, HtmlFile
from siteloom.pages.jsonl import JsonLines
from siteloom.pages.parquet import Parquet
from siteloom.pages.warc import Warc

if TYPE_CHECKING:
    from pathlib import Path

    from siteloom.config import PagesSettings

FileFormat = Literal["WARC", "JSON Lines", "Parquet", "HTML"]

_JSON_LINES_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")

ARCHIVE_SUFFIXES = (
    ".parquet",
    *(name + packed for name in (".warc", *_JSON_LINES_SUFFIXES) for packed in ("", *_COMPRESSION_SUFFIXES)),
)
"""What the names of files of many pages end in: WARC, Parquet and JSON Lines."""

FILE_SUFFIXES = (*HTML_SUFFIXES, *ARCHIVE_SUFFIXES)
"""What the names of files that are sources end in."""


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


def archive_suffix(file_name: str) -> str:
    """What the name of a file of many pages ends in, in small letters; empty of any other file."""
    return _ending(file_name.lower(), ARCHIVE_SUFFIXES)


def open_file(
    path: Path, settings: PagesSettings, *, with_resources: bool
) -> Warc | JsonLines | Parquet | HtmlFile | None:
    """The reader of a file that is there; None of a file that is no source."""
    match file_format(path.name):
        case "WARC":
            return Warc(path, settings, with_resources)
        case "JSON Lines":
            return JsonLines(path, settings)
        case "Parquet":
            return Parquet.open(path, settings)
        case "HTML":
            return HtmlFile(path, settings)
        case None:
            return None


def _ending(name: str, suffixes: tuple[str, ...]) -> str:
    return next((suffix for suffix in suffixes if name.endswith(suffix)), "")
