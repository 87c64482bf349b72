"""Open files that may be compressed, as their suffix says."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import IO, TYPE_CHECKING, Any, cast

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DECOMPRESSION_ERRORS = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, zstandard.ZstdError)
"""The errors of reading a damaged compressed file, besides OSError."""


# The default limit of the zstd library; xz -9 needs half of it.
_MOST_MEMORY = 1 << 27


def is_compressed(path: Path) -> bool:
    """Return whether `open_compressed` would decompress a file."""
    return path.suffix.lower() in (".gz", ".bz2", ".xz", ".zst")


def open_compressed(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, decompressed if its name ends in .gz, .bz2, .xz or .zst."""
    match path.suffix.lower():
        case ".gz":
            if path.stat().st_size == 0:  # Python would read it as a valid empty file
                raise EOFError("the file is empty")
            return cast("IO[bytes]", gzip.open(path, "rb"))
        case ".bz2":
            return bz2.open(path, "rb")
        case ".xz":
            return io.BufferedReader(_Frames(path, _xz_frame, padding=b"\0"))
        case ".zst":
            return io.BufferedReader(_Frames(path, _zstd_frame))
        case _:
            return path.open("rb")


def _xz_frame() -> Any:
    return lzma.LZMADecompressor(memlimit=_MOST_MEMORY)


def _zstd_frame() -> Any:
    return zstandard.ZstdDecompressor(max_window_size=_MOST_MEMORY).decompressobj()


class _Frames(io.RawIOBase):
    """The content of a file of compressed frames, with `padding` between them.

    The zstd library's own reader ends silently at the end of a truncated file, and Python's for xz allocates
    as much memory as a file requests.
    """

    # A zstd block of four bytes can expand to 128 KiB, so this bounds the memory that a hostile file can use
    # to 8 MB; larger pieces would not be faster.
    _BYTES_AT_A_TIME = 256

    def __init__(self, path: Path, frame: Callable[[], Any], padding: bytes = b"") -> None:
        self._file = path.open("rb")
        self._new_frame = frame
        self._padding = padding
        self._frame = frame()
        self._read_on = b""  # the start of the next frame
        self._content = memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._content:
            compressed = self._read_on or self._file.read(self._BYTES_AT_A_TIME)
            if not compressed:
                if not self._frame.eof:
                    raise EOFError("the file ends in the middle of a compressed frame")
                return 0
            if self._frame.eof:
                compressed = compressed.lstrip(self._padding) if self._padding else compressed
                if not compressed:
                    self._read_on = b""
                    continue
                self._frame = self._new_frame()
            self._content = memoryview(self._frame.decompress(compressed))
            self._read_on = self._frame.unused_data
        size = min(len(buffer), len(self._content))
        buffer[:size] = self._content[:size]
        self._content = self._content[size:]
        return size
