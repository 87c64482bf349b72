"""What packs and tables hold compressed, which may be those of someone else's workspace."""

from __future__ import annotations

import zstandard

# Far more than any has, unless a page alone is as large: so much memory can a hostile workspace take.
_LARGEST_CONTENT = 2**31


def decompressed(frame: bytes | memoryview) -> bytes:
    """The content of a frame of zstd; what it says of its length is looked at before there is memory for it.

    A ValueError if it says too much, or if it is no frame.
    """
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= _LARGEST_CONTENT:
            raise ValueError(f"its content has {size:,} bytes")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
