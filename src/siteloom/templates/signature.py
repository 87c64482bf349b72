"""Signatures: eight bytes that tell which template a page was made from, straight from its HTML.

Two pages agree on a byte with about the probability of the share of tag
shingles that they have in common.
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

# One hash function a byte; any eight different numbers would do.
_SEEDS = np.array([(0x9E3779B97F4A7C15 * n) % 2**64 for n in range(1, SIGNATURE_BYTES + 1)], np.uint64)


def signature(html: bytes) -> bytes | None:
    """The signature of a page; None for a page without tags.

    The text between the tags never matters, and neither do scripts, styles,
    comments and the tags that go with them.
    """
    return scan(html).least_bytes


def scan(html: bytes) -> PageScan:
    """The signature of a page as its `least_bytes`, and what the parser would have to look for else."""
    from siteloom.html.page_scan import scan_page  # noqa: PLC0415 - loads the compiled kernels

    if html.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # Two bytes a letter: no tag is seen.
        html = html.decode("utf-16", "replace").encode("utf-8", "replace")
    return scan_page(html, _SEEDS)


class Signatures:
    """Many signatures, made ready for being compared with one."""

    def __init__(self, signatures: Sequence[bytes]) -> None:
        self._rows = np.frombuffer(b"".join(signatures), np.uint8).reshape(-1, SIGNATURE_BYTES)

    def agreement(self, found: bytes) -> int:
        """How many bytes the nearest of them has in common with a signature."""
        agreeing = self._rows == np.frombuffer(found, np.uint8)
        return int(agreeing.sum(axis=1).max(initial=0))


def path_signature(paths: NDArray[np.uint64]) -> bytes | None:
    """A signature made in the same way from a page's paths, given as hashes; None if there are none."""
    if not paths.size:
        return None
    return (_mixed(least_hashes(paths, _SEEDS)) & np.uint64(0xFF)).astype(np.uint8).tobytes()


def least_hashes(paths: NDArray[np.uint64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The min-hashes of paths, of which there must be some: for each seed the least hash of any."""
    least: NDArray[np.uint64] = _mixed(paths[:, np.newaxis] ^ seeds).min(axis=0)
    return least


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose every bit depends on every bit of the old ones (the finalizer of MurmurHash3)."""
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return numbers ^ (numbers >> np.uint64(33))


@dataclass(frozen=True, slots=True)
class Mask:
    """A signature in which some bytes, `wildcards`, may be anything."""

    value: bytes
    wildcards: frozenset[int] = frozenset()

    def covers(self, page_signature: bytes) -> bool:
        """Whether a signature equals the mask wherever it has no wildcard."""
        return all(
            place in self.wildcards or mine == other
            for place, (mine, other) in enumerate(zip(self.value, page_signature, strict=True))
        )

    def __str__(self) -> str:
        """Two hexadecimal digits a byte, `**` for a wildcard."""
        return "".join(
            "**" if place in self.wildcards else f"{byte:02x}" for place, byte in enumerate(self.value)
        )

    @classmethod
    def from_text(cls, text: str) -> Mask:
        """The mask that `str` wrote."""
        pairs = [text[i : i + 2] for i in range(0, 2 * SIGNATURE_BYTES, 2)]
        wildcards = frozenset(place for place, pair in enumerate(pairs) if pair == "**")
        return cls(bytes(0 if pair == "**" else int(pair, 16) for pair in pairs), wildcards)
