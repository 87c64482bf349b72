"""The similarity of a known value and a page text, by q-grams, dates, numbers and per-site patterns.

One site writes "12 Main St, Springfield", another "12 Main Street (between 1st and 4th), Springfield". On
every page the same segments of such values match and the same one does not: the pattern recurs. A chance
match has a pattern of hardly any other pair, so it does not become more similar.

The padded words of a text are split into overlapping grams, and a gram weighs more if fewer values have it.
The similarity is the cosine of the weighted grams.
"""

from __future__ import annotations

import math
import re
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

import numpy as np

from siteloom.learning.known_records.text_normalisation import canonical_key, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


STRONGLY_SIMILAR = 0.9
"""Values with this similarity count as equal: the best threshold in the paper."""

SUPPORT = 0.1
"""The paper's alpha: the share of a position's pages that must have a pattern for it to recur."""

_SEGMENT_ENDS = re.compile(r"[,;()|\n]+")
_LONGEST = 400  # characters of a text that are split into segments
_WORD_MATCH = 0.8
_SHORTEST_SLIP = 4  # in a shorter word, one different letter makes another word
_SEGMENT_MATCH = 0.5
_MIN_MATCHING_SHARE = 0.3
"""The share of a seed's value that must match, in weight: a pattern that only keeps "India" tells nothing."""

Bits: TypeAlias = tuple[bool, ...]
Pattern: TypeAlias = tuple[Bits, Bits]


class PartMatch(NamedTuple):
    """The pattern of matching segments of two values, with and without repetition.

    `similarity` is that of the matching segments, or 0 if these are too small a part of the first value.
    """

    pattern: Pattern
    collapsed: Pattern
    similarity: float


def part_matches(values: Sequence[str], texts: Sequence[str], index: WeakIndex) -> list[PartMatch]:
    """Match each value with the text at the same index, segment by segment."""
    words = _WordMatcher(index)
    patterns: list[Pattern] = []
    matching_values: list[str] = []
    matching_texts: list[str] = []
    for value, text in zip(values, texts, strict=True):
        value_segments, text_segments = _segments(value), _segments(text)
        matching_words = words.matching(_words_of(value_segments), _words_of(text_segments))
        value_bits = words.bits(value_segments, {word for word, _ in matching_words})
        text_bits = words.bits(text_segments, {word for _, word in matching_words})
        patterns.append((value_bits, text_bits))
        matching_values.append(_join_matching(value_segments, value_bits))
        matching_texts.append(_join_matching(text_segments, text_bits))
    are_sufficient = index.weights(matching_values) >= _MIN_MATCHING_SHARE * index.weights(values)
    similarities = index.similarities(matching_values, matching_texts)
    return [
        PartMatch(pattern, _collapsed(pattern), float(similarity) if is_sufficient else 0.0)
        for pattern, similarity, is_sufficient in zip(patterns, similarities, are_sufficient, strict=True)
    ]


def _collapsed(pattern: Pattern) -> Pattern:
    """Return a pattern without repetition: values differ in how many segments match in a row."""
    value_bits, text_bits = (tuple(bit for bit, _ in groupby(bits)) for bits in pattern)
    return value_bits, text_bits


def _segments(text: str) -> list[str]:
    return [segment for piece in _SEGMENT_ENDS.split(text[:_LONGEST]) if (segment := folded(piece))]


def _words_of(segments: list[str]) -> set[str]:
    return {word for segment in segments for word in segment.split()}


class _WordMatcher:
    """Compares words and caches the results: the values of a site consist of few distinct words."""

    def __init__(self, index: WeakIndex) -> None:
        self._index = index
        self._weights: dict[str, float] = {}
        self._slips: dict[tuple[str, str], bool] = {}

    def matching(self, xs: set[str], ys: set[str]) -> list[tuple[str, str]]:
        """Return pairs of words that are equal, differ by a typo, or abbreviate one another."""
        pairs = [(word, word) for word in xs & ys]
        pairs += [(x, y) for x in xs - ys for y in ys - xs if x[0] == y[0] and self._match(x, y)]
        return pairs

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
        """Return for each segment whether at least half of it matches, by the weight of its words."""
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


def _join_matching(segments: list[str], bits: Bits) -> str:
    return " ".join(segment for segment, bit in zip(segments, bits, strict=True) if bit)


SAME_MONTH = 0.8
SAME_YEAR = 0.6
"""The similarity of two dates that agree where one of them is less precise."""

_ENDING = re.compile(r"\.\w{2,5}$")
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_YEAR = re.compile(r"[12]\d{3}")


def value_similarity(seed_value: str, text: str, index: WeakIndex) -> float:
    """Return the similarity of a seed's value and a text, from 0 to 1.

    Values of a kind with keys (see `canonical_key`) are equal or not similar at all: two phones may share
    nine digits of ten. Other texts are compared by their words, in any order.
    """
    if (folded_value := folded(seed_value)) and folded_value == folded(text):
        return 1.0
    seed_key = canonical_key(seed_value)
    text_key = canonical_key(text) if seed_key is not None else None
    if seed_key is not None and text_key is not None:
        key_similarity = _key_similarity(seed_key, text_key)
        if key_similarity is not None:
            return key_similarity
    return index.similarity(seed_value, text)


def _key_similarity(x: str, y: str) -> float | None:
    """Return the similarity of the values of two keys; None if their kinds cannot be compared."""
    if x == y:
        return 1.0
    (x_kind, x_value), (y_kind, y_value) = x.split(":", 1), y.split(":", 1)
    kinds = {x_kind, y_kind}
    if kinds == {"date"}:
        return _date_similarity(x_value, y_value)
    if kinds == {"date", "number"}:
        year = x_value if x_kind == "number" else y_value
        return _date_similarity(x_value, y_value) if _YEAR.fullmatch(year) else None
    if kinds == {"number", "price"}:  # a table of prices need not name their currency
        return float(x_value == y_value)
    return 0.0 if len(kinds) == 1 else None


def _date_similarity(x: str, y: str) -> float:
    """Compare dates as `2008-05-01`, `2008-05` or `2008`: a less precise one agrees if it is a prefix."""
    shorter, longer = sorted((x, y), key=len)
    if not f"{longer}-".startswith(f"{shorter}-"):
        return 0.0
    return SAME_YEAR if len(shorter) == len("2008") else SAME_MONTH


def file_words(address: str) -> str:
    """Return the words in the URL of an image: the name of its file, folded."""
    try:
        name = unquote(urlsplit(address.strip()).path).rsplit("/", 1)[-1]
    except ValueError:  # http://[ and the like
        return ""
    return folded(_CAMEL_CASE.sub(" ", _ENDING.sub("", name)))


LONGEST = 160
"""Characters of a text that are compared. Values are short; a longer text is prose, and its beginning
suffices to distinguish it. Prose shares some grams with every value, and would take most of the time."""

WEAKLY_SIMILAR = 0.5
"""Values with this similarity may be equal: the threshold of the paper."""


class JoinResult(NamedTuple):
    """Pairs of a text and a value, by their numbers, sorted by text and then by value."""

    text: NDArray[np.int32]
    value: NDArray[np.int32]
    similarity: NDArray[np.float32]


class WeakIndex:
    """An index of values by the grams of their words; values with equal folded forms count as one."""

    def __init__(self, values: Sequence[str], gram_size: int = 3) -> None:
        from siteloom.learning.known_records import similarity_join  # noqa: PLC0415 - loads numba

        if not 1 <= gram_size <= similarity_join.LONGEST_GRAM:
            raise ValueError(f"grams have 1 to {similarity_join.LONGEST_GRAM} characters, not {gram_size}")
        self._joining = similarity_join
        self._gram_size = gram_size
        self._groups = _TextGroups(values)
        codes, starts = _codes(self._groups.distinct)
        number = max(len(self._groups.distinct), 1)
        self._table, texts, occurrences = similarity_join.count_grams(codes, starts, gram_size)
        # A gram that no value has counts as rare as one that a single value has.
        self._unseen_idf = math.log(1 + number)
        self._idf: NDArray[np.float64] = np.log1p(number / np.maximum(texts, 1))
        self._posting_starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(occurrences)))
        norms, repeated = similarity_join.norms_of(
            codes, starts, gram_size, self._table, self._idf, self._unseen_idf
        )
        self._order = np.argsort(norms, kind="stable")
        self._norms, self._repeated = norms[self._order], repeated[self._order]
        self._postings, self._residuals = similarity_join.fill_postings(
            codes, starts, gram_size, self._table, self._idf, self._posting_starts, self._order
        )

    def similarity(self, x: str, y: str) -> float:
        """Return the similarity of two texts, from 0 to 1; it is 0 for a text without letters and digits."""
        return float(self.similarities([x], [y])[0])

    def similarities(self, xs: Sequence[str], ys: Sequence[str]) -> NDArray[np.float64]:
        """Return the similarity of each pair of texts at the same index."""
        result: NDArray[np.float64] = self._joining.similarities(
            *_codes(map(_compared_form, xs)), *_codes(map(_compared_form, ys)), self._gram_size,
            self._table, self._idf, self._unseen_idf,
        )  # fmt: skip
        return result

    def weights(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the weight of each text, its squared norm, to which its words contribute additively."""
        norms, _ = self._joining.norms_of(
            *_codes(map(_compared_form, texts)), self._gram_size, self._table, self._idf, self._unseen_idf
        )
        result: NDArray[np.float64] = norms**2
        return result

    def join(self, texts: Sequence[str], threshold: float = WEAKLY_SIMILAR) -> JoinResult:
        """Return all pairs of a text and a value with at least this similarity."""
        if not 0 < threshold <= 1:
            raise ValueError(f"a threshold of similarity lies above 0 and up to 1, not at {threshold}")
        groups = _TextGroups(texts)
        text, value, similarity = self._joining.join(
            *_codes(groups.distinct), self._gram_size, self._table, self._idf, self._unseen_idf,
            self._posting_starts, self._postings, self._residuals, self._norms, self._repeated, threshold,
        )  # fmt: skip
        pairs, value = self._groups.members(self._order[value])
        text, similarity = text[pairs], similarity[pairs]
        pairs, text = groups.members(text)
        value, similarity = value[pairs], similarity[pairs]
        order = np.lexsort((value, text))
        return JoinResult(text[order], value[order], similarity[order])


class _TextGroups:
    """Groups of texts with equal folded forms, which are `distinct`."""

    def __init__(self, texts: Iterable[str]) -> None:
        numbers: dict[str, int] = {}
        group_of = np.fromiter(
            (numbers.setdefault(_compared_form(text), len(numbers)) for text in texts), np.int32
        )
        self.distinct = list(numbers)
        self._sizes = np.bincount(group_of, minlength=len(numbers))
        self._order = np.argsort(group_of, kind="stable").astype(np.int32)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def members(self, groups: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the members of some groups: for each text the index in `groups`, and its number."""
        sizes = self._sizes[groups]
        group_index = np.repeat(np.arange(groups.size), sizes)
        offset = np.arange(group_index.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return group_index, self._order[self._starts[groups][group_index] + offset]


def _compared_form(text: str) -> str:
    """Return the compared beginning of a text, folded; signs and blanks that folding drops may double it."""
    return folded(text[: 2 * LONGEST])[:LONGEST]


def _codes(texts: Iterable[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the code points of all texts in one array, and the start of each, with the end of the last."""
    listed = list(texts)
    starts = np.zeros(len(listed) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, listed), np.int64, len(listed)), out=starts[1:])
    return np.frombuffer("".join(listed).encode("utf-32-le"), np.uint32), starts
