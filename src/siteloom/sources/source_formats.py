"""The list of source formats by file suffix. Add a format here."""

from __future__ import annotations

import codecs
import re
from email.message import Message
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.sources.cdx_index import Cdx
from siteloom.sources.html_folder import HTML_SUFFIXES, HtmlFile
from siteloom.sources.json_lines import JsonLines
from siteloom.sources.parquet import Parquet
from siteloom.sources.wacz import SUFFIX as WACZ_SUFFIX
from siteloom.sources.wacz import Wacz
from siteloom.sources.warc import Warc

if TYPE_CHECKING:
    from pathlib import Path

    from siteloom.core.settings import PagesSettings


FileFormat = Literal["WARC", "WACZ", "JSON Lines", "Parquet", "HTML"]

_JSON_LINES_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")

ARCHIVE_SUFFIXES = (
    ".parquet",
    WACZ_SUFFIX,
    *(name + packed for name in (".warc", *_JSON_LINES_SUFFIXES) for packed in ("", *_COMPRESSION_SUFFIXES)),
)
"""Suffixes of files with many pages: WARC, WACZ, Parquet and JSON Lines."""

FILE_SUFFIXES = (*HTML_SUFFIXES, *ARCHIVE_SUFFIXES)
"""Suffixes of all files with pages."""

_INDEX_NAME = re.compile(r"(?:.*\.cdxj?|.*(?<![^/])cdx-\d+)(?:\.(?:gz|zst|bz2|xz))?", re.DOTALL)
"""Names of indexes of WARC files, including those of Common Crawl, such as cdx-00017.gz."""


def file_format(file_name: str) -> FileFormat | None:
    """Return the format of a file by its name; None if it is not a source."""
    name = file_name.lower()
    name_without_compression = name.removesuffix(_ending(name, _COMPRESSION_SUFFIXES))
    if name_without_compression.endswith(".warc"):
        return "WARC"
    if name.endswith(WACZ_SUFFIX):
        return "WACZ"
    if name_without_compression.endswith(_JSON_LINES_SUFFIXES):
        return "JSON Lines"
    if name.endswith(".parquet"):
        return "Parquet"
    return "HTML" if name.endswith(HTML_SUFFIXES) else None


def archive_suffix(file_name: str) -> str:
    """Return the suffix of a file with many pages, in small letters; empty for any other file."""
    return _ending(file_name.lower(), ARCHIVE_SUFFIXES)


def is_index(file_name: str) -> bool:
    """Return whether a file is an index, which contains no pages but their locations."""
    return _INDEX_NAME.fullmatch(file_name.lower()) is not None


def is_found_by(pattern: str, file_name: str) -> bool:
    """Return whether a pattern, or a folder, includes a file.

    An index is included only if the pattern names indexes: its pages are often those of files next to it.
    """
    return bool(archive_suffix(file_name)) or (is_index(pattern) and is_index(file_name))


def open_file(
    path: Path, settings: PagesSettings, *, with_resources: bool
) -> Warc | Wacz | JsonLines | Parquet | HtmlFile | Cdx | None:
    """Open an existing file; None if it is not a source."""
    if is_index(path.name):
        return Cdx(str(path), settings, with_resources)
    match file_format(path.name):
        case "WARC":
            return Warc(path, settings, with_resources)
        case "WACZ":
            return Wacz(path, settings, with_resources)
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


class ContentType(NamedTuple):
    """A media type, empty if missing, and a character encoding, None if missing or unknown."""

    media_type: str
    charset: str | None


def content_type(value: bytes | None) -> ContentType:
    """Parse the value of a Content-Type header, if there is one."""
    if not value:
        return ContentType("", None)
    message = Message()
    message["Content-Type"] = value.decode("latin-1")
    charset = message.get_content_charset()
    try:
        supported = charset if charset and codecs.lookup(charset) else None
    except (LookupError, ValueError):
        supported = None
    return ContentType(message.get_content_type(), supported)
