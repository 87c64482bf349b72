"""Signatures: eight bytes that identify the template of a page, computed directly from its HTML.

The probability that two pages agree on a byte is about the share of tag shingles that they have in common.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from siteloom.html.page_scan import PageScan

SIGNATURE_BYTES = 8

# One hash function per byte; any eight different numbers would do.
_SEEDS = np.array([(0x9E3779B97F4A7C15 * n) % 2**64 for n in range(1, SIGNATURE_BYTES + 1)], np.uint64)


def signature(html: bytes) -> bytes | None:
    """Return the signature of a page; None for a page without tags.

    The text between the tags never matters, and neither do scripts, styles, comments and their tags.
    """
    return scan(html).least_bytes


def scan(html: bytes) -> PageScan:
    """Scan a page for its signature, its `least_bytes`, and for what the parser would otherwise search."""
    from siteloom.html.page_scan import scan_page  # noqa: PLC0415 - loads the compiled kernels

    if html.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # The scanner finds no tags in UTF-16.
        html = html.decode("utf-16", "replace").encode("utf-8", "replace")
    return scan_page(html, _SEEDS)


class Signatures:
    """Many signatures, prepared to be compared with one."""

    def __init__(self, signatures: Sequence[bytes]) -> None:
        self._rows = np.frombuffer(b"".join(signatures), np.uint8).reshape(-1, SIGNATURE_BYTES)

    def agreement(self, page_signature: bytes) -> int:
        """Return the number of bytes that the most similar of them has in common with a signature."""
        agreeing = self._rows == np.frombuffer(page_signature, np.uint8)
        return int(agreeing.sum(axis=1).max(initial=0))


def path_signature(paths: NDArray[np.uint64]) -> bytes | None:
    """Return a signature of a page's paths, given as hashes; None if there are none."""
    if not paths.size:
        return None
    return (_mix(min_hashes(paths, _SEEDS)) & np.uint64(0xFF)).astype(np.uint8).tobytes()


def min_hashes(paths: NDArray[np.uint64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the min-hashes of one or more paths: for each seed the smallest hash of any path."""
    hashes: NDArray[np.uint64] = _mix(paths[:, np.newaxis] ^ seeds).min(axis=0)
    return hashes


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix numbers so that every bit depends on every input bit (the finalizer of MurmurHash3)."""
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return numbers ^ (numbers >> np.uint64(33))


@dataclass(frozen=True, slots=True)
class Mask:
    """A signature in which some bytes, the `wildcards`, may have any value."""

    value: bytes
    wildcards: frozenset[int] = frozenset()

    def covers(self, page_signature: bytes) -> bool:
        """Return whether a signature equals the mask wherever that has no wildcard."""
        return all(
            index in self.wildcards or mask_byte == page_byte
            for index, (mask_byte, page_byte) in enumerate(zip(self.value, page_signature, strict=True))
        )

    def __str__(self) -> str:
        """Return two hexadecimal digits per byte, and `**` for a wildcard."""
        return "".join(
            "**" if index in self.wildcards else f"{byte:02x}" for index, byte in enumerate(self.value)
        )

    @classmethod
    def from_text(cls, text: str) -> Mask:
        """Parse the output of `str`."""
        pairs = [text[i : i + 2] for i in range(0, 2 * SIGNATURE_BYTES, 2)]
        wildcards = frozenset(index for index, pair in enumerate(pairs) if pair == "**")
        return cls(bytes(0 if pair == "**" else int(pair, 16) for pair in pairs), wildcards)
