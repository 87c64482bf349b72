"""How similar two values are once the parts are left out that never match between their two sites.

One site writes "12 Main St, Springfield", another "12 Main Street (between 1st and 4th), Springfield". On
every page the same segments of such values match and the same one does not: a pattern that recurs. A chance
match has a pattern that hardly another pair has, and stays as dissimilar as it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
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


class WeakPair(NamedTuple):
    """A seed's value and a weakly similar text at one position of a page.

    `source` is where the seed is from; leaves of the text that stand apart on the page are best given as
    lines of it.
    """

    value: str
    text: str
    page: int
    source: str


class _Matched(NamedTuple):
    """The segments of both values, and which of them match."""

    value_segments: list[str]
    text_segments: list[str]
    pattern: Pattern


def strong_similarities(pairs: Sequence[WeakPair], index: WeakIndex, alpha: float = SUPPORT) -> list[float]:
    """The strong similarity of each pair of one attribute and position, never less than the weak one."""
    words = _Words(index)
    matched = [_matched(pair, words) for pair in pairs]
    patterns = [match.pattern for match in matched]
    recurring = _recurring(pairs, patterns, alpha)
    recurring_collapsed = _recurring(pairs, list(map(_collapsed, patterns)), alpha)
    kept_values = [_kept(match.value_segments, match.pattern[0]) for match in matched]
    kept_texts = [_kept(match.text_segments, match.pattern[1]) for match in matched]
    values = [pair.value for pair in pairs]
    whole = index.similarities(values, [pair.text for pair in pairs])
    parts = index.similarities(kept_values, kept_texts)
    suffices = index.weights(kept_values) >= _LEAST_KEPT * index.weights(values)
    return [
        max(float(whole[number]), float(parts[number]))
        if suffices[number] and (recurring[number] or recurring_collapsed[number])
        else float(whole[number])
        for number in range(len(pairs))
    ]


def _recurring(pairs: Sequence[WeakPair], patterns: Sequence[Pattern], alpha: float) -> list[bool]:
    """Whether each pair's pattern is found on enough pages of those that have pairs with its source.

    Pages are counted, not pairs: one page may be similar to a hundred seeds in the same wrong way.
    """
    pages: dict[str, set[int]] = defaultdict(set)
    pages_of: dict[tuple[str, Pattern], set[int]] = defaultdict(set)
    for pair, pattern in zip(pairs, patterns, strict=True):
        pages[pair.source].add(pair.page)
        pages_of[pair.source, pattern].add(pair.page)
    return [
        len(pages_of[pair.source, pattern]) >= alpha * len(pages[pair.source])
        for pair, pattern in zip(pairs, patterns, strict=True)
    ]


def _collapsed(pattern: Pattern) -> Pattern:
    """A pattern without repetition: values differ in how many segments match in a row."""
    value_bits, text_bits = (tuple(bit for bit, _ in groupby(bits)) for bits in pattern)
    return value_bits, text_bits


def _matched(pair: WeakPair, words: _Words) -> _Matched:
    value_segments, text_segments = _segments(pair.value), _segments(pair.text)
    same = words.matching(_words_of(value_segments), _words_of(text_segments))
    value_bits = words.bits(value_segments, {value for value, _ in same})
    text_bits = words.bits(text_segments, {text for _, text in same})
    return _Matched(value_segments, text_segments, (value_bits, text_bits))


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
