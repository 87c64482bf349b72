"""Scan the bytes of a page in one pass before it is parsed: min-hashes of its tag shingles, and properties
that the parser must be guarded against.

All arithmetic is on 64-bit integers, so the result is the same in every process, on every machine and in
every version of Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.compiled import njit
from siteloom.html.tag_scanner import (
    ENDS_ATTRIBUTE,
    ENDS_VALUE,
    SLASH,
    SPACE,
    hash_of,
    name_hash,
    next_tag,
    next_with,
    next_without,
    position_after,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A shingle is this many tags in a row: what implementations of Vertex use.
WINDOW = 10

# Tags that say nothing about a page's layout, and vary with its content.
_IGNORED = np.array([name_hash(name) for name in ("script", "style", "meta", "link")])
_INPUT = name_hash("input")
_TYPE = name_hash("type")
_HIDDEN = name_hash("hidden")
_BODY = name_hash("body")
_HTML = name_hash("html")

_ROLLING_BASE = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio in 64 bits: odd, with well-mixed bits
_OLDEST_FACTOR = np.uint64(pow(0x9E3779B97F4A7C15, WINDOW, 2**64))
_LARGEST = np.uint64(0xFFFFFFFFFFFFFFFF)


class PageScan(NamedTuple):
    """The result of a scan.

    `least_bytes` has for each seed one byte of the least hash of any shingle; it is None for a page without
    tags. `most_attributes` is the largest number of attributes of a tag. A page that `may_end_early` has more
    than white space after its first `</body>` or `</html>`.
    """

    least_bytes: bytes | None
    most_attributes: int
    may_end_early: bool


def scan_page(html: bytes, seeds: NDArray[np.uint64]) -> PageScan:
    """Scan the bytes of a page."""
    least_hashes = np.full(seeds.size, _LARGEST, np.uint64)
    least_bytes = np.empty(seeds.size, np.uint8)
    tags, most_attributes, may_end_early = _scan_page(
        np.frombuffer(html, np.uint8), seeds, least_hashes, least_bytes
    )
    return PageScan(least_bytes.tobytes() if tags else None, most_attributes, may_end_early)


@njit(cache=True)
def mix(x):  # type: ignore[no-untyped-def]
    """Return a number whose every bit depends on every bit of `x` (the finalizer of MurmurHash3)."""
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@njit(cache=True)
def _is_hidden(data, start, end):  # type: ignore[no-untyped-def]
    """Return whether an input is hidden: such inputs carry state, not layout.

    Its attributes extend from `start` to the tag's end. Of several types the first counts.
    """
    i = next_without(data, SPACE | SLASH, start)
    while i < end - 1:
        name_start = i
        i = next_with(data, ENDS_ATTRIBUTE, i + 1)  # a first `=` belongs to the name
        is_type = hash_of(data, name_start, i) == _TYPE
        i = next_without(data, SPACE, i)
        value_start = value_end = i
        if data[i] == 61:
            value_start = next_without(data, SPACE, i + 1)
            quote = data[value_start]
            if quote == 34 or quote == 39:
                value_start += 1
                i = position_after(data, quote, value_start)
                value_end = i - 1
            else:
                i = value_end = next_with(data, ENDS_VALUE, value_start)
        if is_type:
            return hash_of(data, value_start, value_end) == _HIDDEN
        i = next_without(data, SPACE | SLASH, i)
    return False


@njit(cache=True)
def _lower(least_hashes, shingle, seeds):  # type: ignore[no-untyped-def]
    for i in range(seeds.size):
        value = mix(shingle ^ seeds[i])
        if value < least_hashes[i]:
            least_hashes[i] = value


@njit(cache=True)
def _scan_page(data, seeds, least_hashes, least_bytes):  # type: ignore[no-untyped-def]
    window = np.zeros(WINDOW, np.uint64)
    rolling = np.uint64(0)
    slot = 0
    tags = 0
    most_attributes = 0
    is_behind_end = False
    may_end_early = False
    position = 0
    while True:
        search_start = position
        start, end, name, is_end, attributes, position = next_tag(data, search_start)
        is_document_end = start >= 0 and is_end and (name == _BODY or name == _HTML)  # noqa: SIM109 - compiled
        if is_behind_end and not may_end_early:
            next_text = next_without(data, SPACE, search_start)
            may_end_early = next_text < data.size if start < 0 else next_text < start or not is_document_end
        if start < 0:
            break
        most_attributes = max(most_attributes, attributes)
        is_behind_end |= is_document_end
        is_ignored = name == _INPUT and not is_end and _is_hidden(data, start + len("<input"), end)
        for ignored in _IGNORED:
            is_ignored |= name == ignored
        if is_ignored:
            continue
        tag = mix(name + np.uint64(is_end))
        rolling = rolling * _ROLLING_BASE + tag - window[slot] * _OLDEST_FACTOR
        window[slot] = tag
        slot = slot + 1 if slot + 1 < WINDOW else 0
        tags += 1
        if tags >= WINDOW:
            _lower(least_hashes, mix(rolling), seeds)
    if 0 < tags < WINDOW:  # too short for a shingle: the whole sequence is one
        _lower(least_hashes, mix(rolling), seeds)
    for i in range(seeds.size):
        # The least of many hashes is a small number, so it is mixed again before a byte of it is taken.
        least_bytes[i] = mix(least_hashes[i]) & np.uint64(0xFF)
    return tags, most_attributes, may_end_early
