"""WARC archives made by hand, so that every byte of them is known."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from typing import NamedTuple

import zstandard

DATE = "2024-01-02T03:04:05Z"
OK = "HTTP/1.1 200 OK"


def http(body: bytes, *headers: str, status: str = OK, media_type: str = "text/html") -> bytes:
    """An HTTP response as it came over the wire."""
    lines = [status, f"Content-Type: {media_type}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def record(url: str, block: bytes, *, kind: str = "response", date: str = DATE) -> bytes:
    """One record."""
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{0}>\r\n"
        f"WARC-Date: {date}\r\nWARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def page_record(url: str, html: bytes, *headers: str) -> bytes:
    """A page that answered with status 200."""
    return record(url, http(html, *headers))


def warcinfo() -> bytes:
    """The record that archives begin with."""
    return record("", b"software: none\r\n", kind="warcinfo")


class Archive(NamedTuple):
    """A file's bytes, and where it can be cut off and still be a whole, shorter archive."""

    content: bytes
    ends: tuple[range, ...]  # for each record, the lengths at which it and no part of the next is there


Pack = Callable[[Sequence[bytes]], Archive]


def plain(records: Sequence[bytes]) -> Archive:
    ends = _ends(records)
    # The blank lines behind a record's content hold nothing, so they may be missing.
    return Archive(b"".join(records), tuple(range(end - 4, end + 1) for end in ends))


def gzip_members(records: Sequence[bytes]) -> Archive:
    return _one_by_one([gzip.compress(record, mtime=0) for record in records])


def one_gzip_member(records: Sequence[bytes]) -> Archive:
    return _all_in_one(gzip.compress(b"".join(records), mtime=0), len(records))


def zstd_frames(records: Sequence[bytes]) -> Archive:
    return _one_by_one([zstandard.ZstdCompressor().compress(record) for record in records])


def zstd_frames_of_unknown_size(records: Sequence[bytes]) -> Archive:
    compressor = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    return _one_by_one([compressor.compress(record) for record in records])


def one_zstd_frame(records: Sequence[bytes]) -> Archive:
    return _all_in_one(zstandard.ZstdCompressor().compress(b"".join(records)), len(records))


KINDS: dict[str, tuple[str, Pack]] = {
    "plain": ("a.warc", plain),
    "gzip members": ("a.warc.gz", gzip_members),
    "one gzip member": ("a.warc.gz", one_gzip_member),
    "zstd frames": ("a.warc.zst", zstd_frames),
    "zstd frames of unknown size": ("a.warc.zst", zstd_frames_of_unknown_size),
    "one zstd frame": ("a.warc.zst", one_zstd_frame),
}


def _ends(parts: Sequence[bytes]) -> list[int]:
    return [sum(map(len, parts[: number + 1])) for number in range(len(parts))]


def _one_by_one(parts: Sequence[bytes]) -> Archive:
    return Archive(b"".join(parts), tuple(range(end, end + 1) for end in _ends(parts)))


def _all_in_one(content: bytes, records: int) -> Archive:
    nowhere = range(0)
    return Archive(content, (*[nowhere] * (records - 1), range(len(content), len(content) + 1)))
