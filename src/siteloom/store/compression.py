"""Decompress content of packs and tables, which may come from an untrusted workspace."""

from __future__ import annotations

import zstandard

# Far more than any content, unless a single page is as large; it bounds the memory a hostile workspace can
# take.
_LARGEST_CONTENT = 2**31


def decompressed(frame: bytes | memoryview) -> bytes:
    """Decompress a zstd frame after checking the length that it declares, before any memory is allocated.

    Raises ValueError if it is too large or not a frame.
    """
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= _LARGEST_CONTENT:
            raise ValueError(f"its content has {size:,} bytes")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
