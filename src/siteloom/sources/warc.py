"""Read pages from WARC archives: plain, gzip or zstd (also with a dictionary).

HTML responses with status 200 become pages. A damaged record is a failure, and reading continues at the next
record that can be found.
"""

from __future__ import annotations

import base64
import hashlib
import io
import mmap
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple, cast

from fastwarc.stream_io import BrotliReader, ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecordType

from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.urls import URL_TOO_LARGE, oversized_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fastwarc.warc import WarcRecord

    from siteloom.core.settings import PagesSettings

TOO_LARGE = "page too large"
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"
_WARC_MAGIC = b"WARC/"
_SNIFFED_BYTES = 4
_INFLATED_AT_A_TIME = 65_536

# Some seconds of work for a worker, even where the archive is compressed well.
_SHARD_BYTES = 32_000_000

# Bytes of a zstd dictionary, which the reader decompresses as a whole; crawlers use at most one million.
_LARGEST_DICTIONARY = 10_000_000

# The most bytes that deflate stores uncompressed in one block. Up to this length, the members of an archive
# that is itself the content of a record may look like those of the archive around it.
_MOST_STORED_BYTES = 65_535

# Records with documents in other forms than a response, which are reported because a reader may miss them.
_RECORDS_WITH_CONTENT = (WarcRecordType.resource, WarcRecordType.revisit, WarcRecordType.conversion)

# The digests that crawlers write, with how many bytes each has.
_DIGESTS = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}

_CHUNK_HEADER = re.compile(rb"([0-9a-fA-F]{1,8}) [ \t]*+ (?: ; [^\r\n]*+ )?+ \r\n", re.VERBOSE)
_RECORD_HEADER = re.compile(rb"(?: [^\n]*+ \n )+? \r?\n", re.VERBOSE)
_CONTENT_LENGTH = re.compile(rb"\ncontent-length:[ \t]*+(\d{1,18})", re.IGNORECASE)
_RECORD_GAP = re.compile(rb"(?: \r?\n )++ (?=WARC/)", re.VERBOSE)


class _RecordRange(NamedTuple):
    """The records that begin in a range of bytes; without `end`, it extends to the end of the archive."""

    start: int
    end: int | None


_WHOLE_ARCHIVE = _RecordRange(0, None)


@dataclass(frozen=True, slots=True)
class Warc:
    """A WARC file; with `with_resources`, stylesheets and images are read too."""

    path: Path
    settings: PagesSettings
    with_resources: bool = False
    range_: _RecordRange = _WHOLE_ARCHIVE

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """Yield the pages in the order of the archive."""
        try:
            if self.path.stat().st_size == 0:
                yield Failure(str(self.path), "empty file")
                return
            with (
                self.path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as archive,
            ):
                yield from self._read(archive)
        except (OSError, ValueError) as error:  # ValueError if the file was truncated after it was split
            yield Failure(str(self.path), "unreadable file", str(error))

    def shards(self) -> Sequence[Warc]:
        """Split the archive into ranges; zstd and a single gzip member can only be read from the start."""
        if self.range_ != _WHOLE_ARCHIVE:
            return (self,)
        try:
            if self.path.stat().st_size <= _SHARD_BYTES:
                return (self,)
            with (
                self.path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as archive,
            ):
                starts = [0, *_shard_starts(archive)]
        except OSError:  # reported when the file is read
            return (self,)
        ranges = map(_RecordRange, starts, [*starts[1:], None])
        return [replace(self, range_=range_) for range_ in ranges]

    def _read(self, archive: mmap.mmap) -> Iterator[Page | Resource | Failure | Skipped]:
        start, end = self.range_
        is_plain = _is_plain(archive)
        # The reader verifies the checksum of each gzip member: digests would add nothing, and take half as
        # much time again.
        checks_digests = not _is_gzip(archive)
        place = str(self.path)
        in_damage = False  # a damaged stretch is reported as one failure
        has_records = False
        while start >= 0 and (end is None or start < end):
            last_record = start
            try:
                for record in _records(archive, start):
                    if end is not None and record.stream_pos >= end:
                        return
                    last_record = record.stream_pos
                    place = _target(record) or f"{self.path}, byte {last_record}"
                    has_records = True
                    if is_plain and not _is_as_long_as_it_says(archive, last_record):
                        in_damage = False
                        raise OSError("its content is not as long as it says")  # noqa: TRY301 - as the reader does
                    item = self.item_of(record, place, checks_digest=checks_digests)
                    in_damage = isinstance(item, Failure) and item.reason not in (TOO_LARGE, URL_TOO_LARGE)
                    if item is not None:
                        yield item
                    place = f"{self.path}, behind byte {last_record}"
            except OSError as error:
                if not in_damage:
                    yield Failure(place, "damaged record", str(error))
                in_damage = True
                start = _next_record(archive, last_record + 1)
            else:
                start, ends_whole = _position_after_reader(archive, start, last_record)
                if start >= 0 or end is not None or in_damage:
                    continue
                if not has_records:
                    yield Failure(str(self.path), "no archive", "there is no whole WARC record in it")
                elif not ends_whole:
                    yield Failure(str(self.path), "truncated archive", "its last record is cut off")

    def item_of(
        self, record: WarcRecord, place: str, *, checks_digest: bool
    ) -> Page | Resource | Failure | Skipped | None:
        """Convert a record; None if it is not a response."""
        if record.record_type in _RECORDS_WITH_CONTENT:
            return Skipped(place, f"{record.headers.get('WARC-Type')} record")
        if record.record_type != WarcRecordType.response:
            return None
        url = _target(record)
        if not url:
            return Failure(place, "no URL", "the record names no target")
        status = record.http_headers.status_code if record.http_headers else None
        if status is None:
            return Failure(url, "damaged record", "the HTTP header cannot be read")
        if status != 200:
            return Skipped(url, f"status {status}")
        media_type = (record.http_content_type or "").lower()
        is_html = media_type in HTML_TYPES
        is_collected_resource = self.with_resources and (
            media_type == "text/css" or media_type.startswith("image/")
        )
        if not is_html and not is_collected_resource:
            return Skipped(url, f"not HTML but {media_type or 'of unknown type'}")
        if failure := oversized_url(url):
            return failure

        limit = self.settings.max_bytes
        if record.content_length > limit:
            return Failure(url, TOO_LARGE, f"{record.content_length:,} bytes; at most {limit:,} are taken")
        raw = record.reader.read()
        if len(raw) < record.content_length:
            return Failure(url, "truncated record", f"{len(raw):,} of {record.content_length:,} bytes")
        try:
            body = _decoded(raw, record, limit)
        except (OSError, ValueError, zlib.error) as error:
            return Failure(url, "undecodable body", str(error))
        if body is None:
            return Failure(url, TOO_LARGE, f"over {limit:,} bytes when decompressed")
        if checks_digest and not _is_as_digested(record, raw, body):
            return Failure(url, "damaged record", "its content is not that of its WARC-Payload-Digest")
        if is_html:
            return Page(url, body, record.record_date, record.http_charset)
        return Resource(url, body, media_type, record.record_date)


def _decoded(raw: bytes, record: WarcRecord, limit: int) -> bytes | None:
    """Return the body without its transfer and content encodings, or None if it is over the limit.

    Crawlers often write the decoded body under the original headers, so an encoding that the bytes do not
    show is assumed to be decoded already.
    """
    body = raw
    if _header(record, "Transfer-Encoding") == "chunked" and _CHUNK_HEADER.match(body):
        body = _joined_chunks(body)
    for encoding in reversed(_header(record, "Content-Encoding").split(",")):
        match encoding.strip():
            case "gzip" | "x-gzip" if body.startswith(_GZIP_MAGIC):
                body = _inflated(body, limit + 1, zlib.MAX_WBITS | 16)
            case "deflate" if not body.lstrip().startswith(b"<"):
                # Servers send deflate with zlib's header, as the standard requires, or without it.
                has_header = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
                body = _inflated(body, limit + 1, zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
            case "br" if not body.lstrip().startswith(b"<"):
                body = BrotliReader(io.BytesIO(body)).read(limit + 1)
            case "zstd" if body.startswith(_ZSTD_MAGIC):
                body = ZstdReader(io.BytesIO(body)).read(limit + 1)
    return body if len(body) <= limit else None


def _is_as_digested(record: WarcRecord, raw: bytes, body: bytes) -> bool:
    """Return whether a body matches the digest of its record, if that has a supported one.

    Crawlers compute the digest of the body as sent, without chunks (as the standard says), or decoded; all of
    these count. A body truncated by the crawler may have the digest of the complete one.
    """
    algorithm, _, text = (record.headers.get("WARC-Payload-Digest") or "").strip().partition(":")
    size = _DIGESTS.get(algorithm.lower().replace("-", ""))
    if size is None or record.headers.get("WARC-Truncated"):
        return True
    expected = _digest(text.strip(), size)
    if expected is None:
        return True

    def is_it(content: bytes) -> bool:
        return (
            hashlib.new(algorithm.lower().replace("-", ""), content, usedforsecurity=False).digest()
            == expected
        )

    if is_it(raw):
        return True
    is_chunked = _header(record, "Transfer-Encoding") == "chunked" and _CHUNK_HEADER.match(raw) is not None
    return (is_chunked and is_it(_joined_chunks(raw))) or (body is not raw and is_it(body))


def _digest(text: str, size: int) -> bytes | None:
    """Return the bytes of a digest written in base 32, as most are, or in base 16; None for any other."""
    for decode in (bytes.fromhex, _from_base32):
        with suppress(ValueError):
            if len(digest := decode(text)) == size:
                return digest
    return None


def _from_base32(text: str) -> bytes:
    unpadded = text.rstrip("=")
    return base64.b32decode(unpadded + "=" * (-len(unpadded) % 8), casefold=True)


def _target(record: WarcRecord) -> str:
    return (record.headers.get("WARC-Target-URI") or "").strip("<> ")


def _header(record: WarcRecord, name: str) -> str:
    return (record.http_headers.get(name) or "").strip().lower()


def _joined_chunks(body: bytes) -> bytes:
    joined = bytearray()
    position = 0
    while header := _CHUNK_HEADER.match(body, position):
        size = int(header[1], 16)
        if size == 0:
            return bytes(joined)
        position = header.end() + size
        joined += body[header.end() : position]
        if body[position : position + 2] != b"\r\n":
            break
        position += 2
    raise ValueError(f"a chunk is damaged or cut off at byte {position:,}")


def _inflated(body: bytes, limit: int, window: int) -> bytes:
    """Decompress the first `limit` bytes of a body; raises ValueError if it is truncated."""
    decompressor = zlib.decompressobj(window)
    content = decompressor.decompress(body, limit)
    if not decompressor.eof and len(content) < limit:
        raise ValueError("the compressed body is cut off")
    return content


def _records(archive: mmap.mmap, start: int) -> Iterator[WarcRecord]:
    archive.seek(start)
    # mmap's seek returns nothing before Python 3.13, which the reader ignores.
    return records_from(cast("BinaryIO", archive))


def records_from(archive: IO[bytes]) -> Iterator[WarcRecord]:
    """Yield the records from the current position; OSError if one is damaged or a dictionary too large."""
    start = archive.tell()
    head = archive.read(8)
    if head.startswith(_DICTIONARY_MAGIC):
        size = int.from_bytes(head[4:], "little")
        content = archive.read(min(size, _LARGEST_DICTIONARY))
        if content.startswith(_ZSTD_MAGIC):
            content = ZstdReader(io.BytesIO(content)).read(_LARGEST_DICTIONARY + 1)
        if max(size, len(content)) > _LARGEST_DICTIONARY:
            raise OSError(f"its dictionary has more than {_LARGEST_DICTIONARY:,} bytes")
    archive.seek(start)
    return iter(ArchiveIterator(archive, parse_http=True, auto_decode="none"))


def _is_plain(archive: mmap.mmap) -> bool:
    return archive[:_SNIFFED_BYTES] == _WARC_MAGIC[:_SNIFFED_BYTES]


def _is_gzip(archive: mmap.mmap) -> bool:
    return archive[: len(_GZIP_MAGIC)] == _GZIP_MAGIC


def _next_record(archive: mmap.mmap, start: int) -> int:
    """Return where the next record may begin at or after `start`, or -1."""
    if _is_gzip(archive):
        return archive.find(_GZIP_MAGIC, start)
    if _is_plain(archive):
        line = archive.find(b"\n" + _WARC_MAGIC, start)
        return line + 1 if line >= 0 else -1
    return archive.find(_ZSTD_MAGIC, start)


def _position_after_reader(archive: mmap.mmap, start: int, last_record: int) -> tuple[int, bool]:
    """Return where an archive continues after the position at which the reader stopped, or -1; and whether it
    ends with a complete record.

    `start` is where the reader began, and `last_record` the last record it returned. It silently ignores a
    truncated gzip member or plain record; it stops at an empty gzip member; and a record that claims to be
    longer than its member can make it skip to the end. It reports errors of zstd.
    """
    if _is_plain(archive):
        return -1, _plain_record_whole(archive, last_record)
    if not _is_gzip(archive):
        return -1, True
    # Records that share a member do not begin at its start.
    is_member = archive[last_record : last_record + len(_GZIP_MAGIC)] == _GZIP_MAGIC
    end: int | None = last_record if is_member else start
    while end is not None and end <= last_record and end < len(archive):
        try:
            end = _member_end(archive, end)
        except zlib.error:
            return -1, True  # padding after the last member, not a truncated member
    if end is None:
        return -1, False
    return (end if end < len(archive) else -1), True


def _plain_record_whole(archive: mmap.mmap, start: int) -> bool:
    """Return whether a record's content is complete, with nothing but padding after it."""
    end = _plain_record_end(archive, start)
    return end is not None and end <= len(archive) and not archive[end:].strip(b"\r\n \0")


def _is_as_long_as_it_says(archive: mmap.mmap, start: int) -> bool:
    """Return whether a line ends or another record begins where a plain record should end.

    Otherwise lost or added bytes would make the next record part of this one.
    """
    end = _plain_record_end(archive, start)
    if end is None or end >= len(archive):
        return True  # truncated, which is reported elsewhere
    is_line_end = b"\r\n".startswith(archive[end : end + 2]) or archive[end : end + 1] == b"\n"
    return is_line_end or archive[end : end + len(_WARC_MAGIC)] == _WARC_MAGIC


def _plain_record_end(archive: mmap.mmap | bytes, start: int) -> int | None:
    """Return where the content of a record should end by its header."""
    header = _RECORD_HEADER.match(archive, start)
    length = _CONTENT_LENGTH.search(header[0]) if header else None
    return header.end() + int(length[1]) if header and length else None


def _member_end(archive: mmap.mmap, start: int) -> int | None:
    """Return where a gzip member ends; None if it is truncated."""
    end = None
    for _, end in _inflated_member(archive, start):  # noqa: B007 - the last one counts
        pass
    return end


def _inflated_member(archive: mmap.mmap, start: int) -> Iterator[tuple[bytes, int | None]]:
    """Yield the content of a gzip member in pieces, the last one with the end of the member."""
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
    for position in range(start, len(archive), _INFLATED_AT_A_TIME):
        chunk = archive[position : position + _INFLATED_AT_A_TIME]
        content = decompressor.decompress(chunk)
        if decompressor.eof:
            yield content, position + len(chunk) - len(decompressor.unused_data)
            return
        yield content, None


def _shard_starts(archive: mmap.mmap) -> Iterator[int]:
    """Yield where shards after the first begin.

    The reader reaches each of these positions whatever precedes it, and finds a complete record there, so
    starting there gives the same records.
    """
    if _is_gzip(archive):
        return _gzip_shard_starts(archive)
    if _is_plain(archive):
        return _plain_shard_starts(archive)
    return iter(())


def _plain_shard_starts(archive: mmap.mmap) -> Iterator[int]:
    """Follow the records from one to the next, as long as each declares its length."""
    shard = record = 0
    while (following := _following_record(archive, record)) is not None:
        if record - shard >= _SHARD_BYTES and _is_read_at(archive, record):
            yield record
            shard = record
        record = following


def _following_record(archive: mmap.mmap, start: int) -> int | None:
    """Return where the record directly after the one at `start` begins."""
    end = _plain_record_end(archive, start)
    gap = _RECORD_GAP.match(archive, end) if end is not None else None
    return gap.end() if gap else None


def _gzip_shard_starts(archive: mmap.mmap) -> Iterator[int]:
    """Yield positions after a run of members too long to be inside the content of a record."""
    position = _SHARD_BYTES
    while (first_member := archive.find(_GZIP_MAGIC, position)) >= 0:
        member = first_member
        while (end := _one_record_end(archive, member)) and member - first_member <= _MOST_STORED_BYTES:
            member = end
        if end and _is_read_at(archive, member):
            yield member
            position = member + _SHARD_BYTES
        else:
            position = member + 1


def _one_record_end(archive: mmap.mmap, start: int) -> int | None:
    """Return where the gzip member at `start` ends, if it contains exactly one complete record."""
    size = record_end = 0
    try:
        for content, end in _inflated_member(archive, start):
            if not size:
                record_end = (content.startswith(_WARC_MAGIC) and _plain_record_end(content, 0)) or 0
            if content[max(0, record_end - size) :].strip(b"\r\n"):
                return None  # no record, or something after it
            size += len(content)
            if end is not None:
                return end if 0 < record_end <= size else None
    except zlib.error:
        pass
    return None


def _is_read_at(archive: mmap.mmap, start: int) -> bool:
    """Return whether the reader finds a record at a position."""
    try:
        record = next(_records(archive, start), None)
    except OSError:
        return False
    return record is not None and record.stream_pos == start
