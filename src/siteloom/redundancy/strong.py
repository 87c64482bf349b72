"""How similar two values are once the parts are left out that never match between their two sites.

One site writes "12 Main St, Springfield", another "12 Main Street (between 1st and 4th), Springfield". On
every page the same segments of such values match and the same one does not: a pattern that recurs. A chance
match has a pattern that hardly another pair has, and stays as dissimilar as it is.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.redundancy.folding import folded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.redundancy.weak import WeakIndex

STRONGLY_SIMILAR = 0.9
"""From here on two values are taken to be the same: what the paper found best."""

SUPPORT = 0.1
"""The paper's alpha: the share of a position's pages that must have a pattern for it to recur."""

_SEGMENT_ENDS = re.compile(r"[,;()|\n]+")
_LONGEST = 400  # of a text of any length; what is behind is not compared either
_WORD_MATCH = 0.8
_SHORTEST_SLIP = 4  # of shorter words, one letter makes another word
_SEGMENT_MATCH = 0.5
_LEAST_KEPT = 0.3
"""The share of a seed's value that must match, in weight: a pattern that only keeps "India" tells nothing."""

Bits: TypeAlias = tuple[bool, ...]
Pattern: TypeAlias = tuple[Bits, Bits]


class PartMatch(NamedTuple):
    """Which segments of two values match: as they are, and without repetition.

    `similarity` is that of the segments that match, or 0 if they are too little of the first value.
    """

    pattern: Pattern
    collapsed: Pattern
    similarity: float


def part_matches(values: Sequence[str], texts: Sequence[str], index: WeakIndex) -> list[PartMatch]:
    """How each value and the text beside it match, segment by segment."""
    words = _Words(index)
    patterns: list[Pattern] = []
    kept_values: list[str] = []
    kept_texts: list[str] = []
    for value, text in zip(values, texts, strict=True):
        value_segments, text_segments = _segments(value), _segments(text)
        same = words.matching(_words_of(value_segments), _words_of(text_segments))
        value_bits = words.bits(value_segments, {word for word, _ in same})
        text_bits = words.bits(text_segments, {word for _, word in same})
        patterns.append((value_bits, text_bits))
        kept_values.append(_kept(value_segments, value_bits))
        kept_texts.append(_kept(text_segments, text_bits))
    suffices = index.weights(kept_values) >= _LEAST_KEPT * index.weights(values)
    similarities = index.similarities(kept_values, kept_texts)
    return [
        PartMatch(pattern, _collapsed(pattern), float(similarity) if enough else 0.0)
        for pattern, similarity, enough in zip(patterns, similarities, suffices, strict=True)
    ]


def _collapsed(pattern: Pattern) -> Pattern:
    """A pattern without repetition: values differ in how many segments match in a row."""
    value_bits, text_bits = (tuple(bit for bit, _ in groupby(bits)) for bits in pattern)
    return value_bits, text_bits


def _segments(text: str) -> list[str]:
    return [segment for part in _SEGMENT_ENDS.split(text[:_LONGEST]) if (segment := folded(part))]


def _words_of(segments: list[str]) -> set[str]:
    return {word for segment in segments for word in segment.split()}


class _Words:
    """Words and how they compare, each remembered: the values of a site are made of few."""

    def __init__(self, index: WeakIndex) -> None:
        self._index = index
        self._weights: dict[str, float] = {}
        self._slips: dict[tuple[str, str], bool] = {}

    def matching(self, xs: set[str], ys: set[str]) -> list[tuple[str, str]]:
        """Words of both that are equal, one a slip of the other, or one short for the other."""
        found = [(word, word) for word in xs & ys]
        found += [(x, y) for x in xs - ys for y in ys - xs if x[0] == y[0] and self._match(x, y)]
        return found

    def _match(self, x: str, y: str) -> bool:
        short, long = sorted((x, y), key=len)
        if short.isdigit() or len(short) < 2:
            return False
        if long.startswith(short):
            return True
        if len(short) < _SHORTEST_SLIP or len(long) - len(short) > 2:
            return False
        if (short, long) not in self._slips:
            self._slips[short, long] = self._index.similarity(short, long) >= _WORD_MATCH
        return self._slips[short, long]

    def bits(self, segments: list[str], matching: set[str]) -> Bits:
        """For each segment, whether at least half of it matches, by the weight of its words."""
        return tuple(
            self._weight(segment, matching) >= _SEGMENT_MATCH * self._weight(segment) for segment in segments
        )

    def _weight(self, segment: str, among: set[str] | None = None) -> float:
        total = 0.0
        for word in segment.split():
            if among is None or word in among:
                if word not in self._weights:
                    self._weights[word] = float(self._index.weights([word])[0])
                total += self._weights[word]
        return total


def _kept(segments: list[str], bits: Bits) -> str:
    return " ".join(segment for segment, bit in zip(segments, bits, strict=True) if bit)
