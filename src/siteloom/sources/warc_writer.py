"""Write responses to WARC archives record by record, so that a killed crawl loses at most its last one.

`siteloom.sources.warc` reads back what was written.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING

import zstandard
from fastwarc.warc import HeaderMap, WarcRecord, WarcRecordType

from siteloom.core.errors import OutputError, UsageError
from siteloom.core.model import Validators
from siteloom.sources.page_source import time_from_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import FileIO
    from pathlib import Path

    from siteloom.core.model import Page, Resource

_Headers = list[tuple[str, str]]

# The Internet Archive's prefix for headers that described the transfer and do not apply to the stored body.
_ORIGINAL = "X-Archive-Orig-"

_GZIP_LEVEL = 6  # zlib's own; Python's is 9, which takes far longer for a percent or two
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_WARCINFO = (
    f"software: Siteloom/{version('siteloom')}\r\n"
    "format: WARC File Format 1.1\r\n"
    "conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
)


class WarcWriter:
    """Writes responses one by one; each is passed to the system completely before its call returns."""

    def __init__(self, file: FileIO, name: str, compress: Callable[[bytes], bytes]) -> None:
        self._file = file
        self._name = name
        self._compress = compress
        self._write_info()

    def write_page(self, page: Page) -> None:
        """Write a page as a response with the headers known from the page."""
        etag, last_modified = page.validators or Validators()
        values_by_name = {
            "Content-Type": f"text/html; charset={page.charset}" if page.charset else "text/html",
            "ETag": etag,
            "Last-Modified": last_modified,
        }
        headers = [(name, value) for name, value in values_by_name.items() if value]
        self.write_response(page.url, 200, headers, page.html, page.fetched_at)

    def write_resource(self, resource: Resource) -> None:
        """Write a stylesheet or an image as a response."""
        headers = [("Content-Type", resource.media_type)]
        self.write_response(resource.url, 200, headers, resource.body, resource.fetched_at)

    def write_response(
        self,
        url: str,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        fetched_at: datetime | None = None,
    ) -> None:
        """Write a server's response with its time, by default the current time.

        The body is encoded as its `Content-Encoding` header says, but never in chunks. Headers that do not
        apply to it are kept under another name, as archives do.
        """
        record = WarcRecord()
        record.init_headers(WarcRecordType.response)
        record.headers["WARC-Date"] = _warc_date(fetched_at)
        record.headers["WARC-Target-URI"] = url.encode("utf-8", "replace").decode()
        record.is_http = True
        record.set_bytes_payload(_http_head(status, _truthful(headers, body)) + body)
        self._write(record, hashlib.sha1(body, usedforsecurity=False).digest())

    def _write_info(self) -> None:
        record = WarcRecord()
        record.init_headers(WarcRecordType.warcinfo)
        record.headers["Content-Type"] = "application/warc-fields"
        record.set_bytes_payload(_WARCINFO.encode())
        self._write(record)

    def _write(self, record: WarcRecord, payload_digest: bytes | None = None) -> None:
        content = io.BytesIO()
        record.write(content, checksum_data=True, payload_digest=payload_digest)
        try:
            unwritten = memoryview(self._compress(content.getvalue()))
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError as error:
            raise _cannot_write(self._name, error) from error


@contextmanager
def open_warc(path: Path) -> Iterator[WarcWriter]:
    """Open an archive for writing: `.warc`, or with each record compressed, `.warc.gz` or `.warc.zst`.

    New records are appended to those that the archive already contains.
    """
    compress = _compression(path)
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise _cannot_write(str(path), error) from error
    with file:
        yield WarcWriter(file, str(path), compress)


def _compression(path: Path) -> Callable[[bytes], bytes]:
    """Return the compression of records; every record can be read without those before it."""
    name = path.name.lower()
    if name.endswith(".warc"):
        return bytes
    if name.endswith(".warc.gz"):
        return lambda record: gzip.compress(record, _GZIP_LEVEL, mtime=0)
    if name.endswith(".warc.zst"):
        return zstandard.ZstdCompressor(write_checksum=True).compress
    raise UsageError(
        f"{path} cannot be written: the name of an archive ends in .warc, .warc.gz or .warc.zst."
    )


def _cannot_write(name: str, error: OSError) -> OutputError:
    return OutputError(f"{name} cannot be written: {error.strerror or error}.")


def _warc_date(time: datetime | None) -> str:
    return (time_from_field(time) or datetime.now(UTC)).isoformat().replace("+00:00", "Z")


def _truthful(headers: Iterable[tuple[str, str]], body: bytes) -> _Headers:
    """Rename the headers that do not apply to the body."""
    length = str(len(body))
    kept_headers: _Headers = []
    for name, value in headers:
        if name.lower() == "content-length" and value.strip() == length:
            continue  # it is written last
        is_untrue = name.lower() in ("content-length", "transfer-encoding")
        kept_headers.append((_ORIGINAL + name if is_untrue else name, value))
    return [*kept_headers, ("Content-Length", length)]


def _http_head(status: int, headers: _Headers) -> bytes:
    """Format the status line and the headers; line breaks in values cannot inject headers."""
    lines = HeaderMap()
    lines.status_line = f"HTTP/1.1 {status} {_PHRASES.get(status, '')}"
    for name, value in headers:
        lines.append_bytes(name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
    head = io.BytesIO()
    lines.write(head)
    return head.getvalue()
