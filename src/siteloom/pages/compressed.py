"""Files that may be compressed, told by their suffix."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from typing import IO, TYPE_CHECKING, cast

import zstandard

if TYPE_CHECKING:
    from pathlib import Path

DECOMPRESSION_ERRORS = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, zstandard.ZstdError)
"""What reading a damaged compressed file raises, besides OSError."""


def open_compressed(path: Path) -> IO[bytes]:
    """A file's content as bytes: as it is, or decompressed if it ends in .gz, .bz2, .xz or .zst."""
    match path.suffix.lower():
        case ".gz":
            return cast("IO[bytes]", gzip.open(path, "rb"))
        case ".bz2":
            return bz2.open(path, "rb")
        case ".xz":
            return lzma.open(path, "rb")
        case ".zst":
            reader = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True)
            return cast("IO[bytes]", reader)
        case _:
            return path.open("rb")
