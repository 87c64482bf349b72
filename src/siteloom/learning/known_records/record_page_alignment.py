"""Which record is on which page: matches that agree with one another over pages.

A match is worth as many bits as it tells about which record it is: log2 of all
records by those that are as similar to the text. A page shows a record if its
matches at the positions of several attributes together tell more bits than it
takes to name one record among all.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.known_records.page_positions import Position
from siteloom.learning.known_records.record_arrays import distinct, firsts, linked, spread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.learning.known_records.page_positions import Positions
    from siteloom.learning.known_records.record_arrays import SeedAttribute, SeedTable, ValueMatches

    Flags = NDArray[np.bool_]
    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]
    Floats = NDArray[np.float64]

MARGIN = 3.0
"""Bits by which a page must tell more than it takes to name its record: one in eight would by chance."""

_RARE = 30  # a text that so many records or more are similar to names none of them
_MOST_RECORDS_OF_PAGE = 20  # the same entity may be known from as many sources
_LEAST_SHARE_OF_BITS = 0.5  # that rare values must tell for a pair to be looked at
_MOST_TEXTS_OF_VALUE = 300  # the most similar ones: a bound on the work for values such as `Italian`
_ATTRIBUTES_TRIED = 8  # in pairs: those that tell most
_POSITIONS_TRIED = 30  # of an attribute; all pairs of those of two attributes are tried
_GROWN = 12  # of the best pairs of positions
_GROWN_ALIKE = 3  # of these, may be on the same styled paths
_POSITIONS_ADDED = 10  # of each further attribute, are tried
_MOST_ATTRIBUTES = 6  # tell a record if any do; tables may have a hundred
_LEAST_GROWTH = 1.01  # of the score, by a further attribute
_MOST_BEHIND = (
    0.3  # of the bits of a record's name: what tells that much less than the best is another record
)
_SAME_ROWS = 0.5  # of the rows of two positions, which are then the same
_AS_WELL = 0.8  # of the bits of the page's best
_LEAST_OF_LIST = 3  # records that a page shows in the same way
_TIE = 1e-3  # similarities that differ less are equal: the join computes them in single precision


class TextMatches(NamedTuple):
    """Texts of pages and the values of one attribute that they may be.

    `bits` is what a match tells, `records` how many are as similar to the text.
    """

    text: Ints
    value: Ints
    similarity: Floats
    bits: Floats
    records: Longs


class Pairs(NamedTuple):
    """Records and the pages that may show them, in the order of pages."""

    page: Ints
    record: Ints


class Matched(NamedTuple):
    """For one attribute, the rows of page texts where values of paired records stand."""

    pair: Ints
    row: Ints
    similarity: Floats
    bits: Floats


class Alignment(NamedTuple):
    """The pairs that are believed, and how much tells them.

    `lists` are pages that show more records in the way of the one they seem to be about.
    """

    pairs: Pairs
    score: float
    lists: Ints


class Rows:
    """The rows of page texts that may be values, to be found by page and text."""

    def __init__(self, texts: PageTexts, is_open: Flags) -> None:
        self.texts = texts
        self._rows = np.flatnonzero(is_open)
        keys = texts.page[self._rows].astype(np.int64) << 32 | texts.text[self._rows]
        order = np.argsort(keys, kind="stable")
        self._rows = self._rows[order]
        self._keys = keys[order]
        self.pages_of = linked(texts.text[self._rows], texts.page[self._rows], len(texts.texts))

    def found(self, page: Ints, text: Ints) -> tuple[Longs, Longs]:
        """The rows of each page and text: where in the input each stands, and the rows."""
        keys = page.astype(np.int64) << 32 | text
        low = np.searchsorted(self._keys, keys)
        origin, places = spread(low, np.searchsorted(self._keys, keys, "right") - low)
        return origin, self._rows[places]


def told(attribute: SeedAttribute, found: ValueMatches, numbers: Ints) -> TextMatches:
    """What matches tell; `numbers` are those of the texts that were compared among all of the pages."""
    order = np.lexsort((-found.similarity, found.text))
    text, value = found.text[order], found.value[order]
    similarity = found.similarity[order].astype(np.float64)
    counts = attribute.records_of.counts()[value]
    upto = np.cumsum(counts)
    starts = np.flatnonzero(firsts(text))
    before = np.repeat(upto[starts] - counts[starts], np.diff(starts, append=len(text)))
    # Those that are equally similar count for one another: all have the number of the last of them.
    last = np.flatnonzero(np.append(firsts(text)[1:] | (-np.diff(similarity) > _TIE), [True][: len(text)]))
    records = (upto - before)[last[np.searchsorted(last, np.arange(len(text)))]]
    known = int((attribute.values_of.counts() > 0).sum())
    bits = np.log2(np.maximum(1.0, known / np.maximum(1, records))) * similarity**2
    return TextMatches(numbers[text], value, similarity, bits, records)


def candidate_pairs(
    table: SeedTable, matches: Sequence[TextMatches], rows: Rows, most_pages: int | None = None
) -> Pairs:
    """The pairs of record and page that rare values suggest: never all.

    A text on more than `most_pages`, or else on more than a tenth, is of the site and not of a record.
    """
    if most_pages is None:
        most_pages = max(10, rows.texts.pages // 10)
    page_counts = rows.pages_of.counts()
    keys: list[Longs] = []
    bits: list[Floats] = []
    for attribute, found in zip(table.attributes, matches, strict=True):
        is_rare = (found.records <= _RARE) & (page_counts[found.text] <= most_pages)
        origin, record = attribute.records_of.expanded(found.value[is_rare])
        text, tells = found.text[is_rare][origin], found.bits[is_rare][origin]
        origin, page = rows.pages_of.expanded(text)
        key = page.astype(np.int64) << 32 | record[origin]
        best = _best_of_each(key, tells[origin])
        keys.append(key[best])
        bits.append(tells[origin][best])
    key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(inverse, np.concatenate(bits), minlength=len(key))
    likely = total >= _LEAST_SHARE_OF_BITS * bits_of_name(table)
    key, total = key[likely], total[likely]
    order = np.lexsort((-total, key >> 32))
    page = key[order] >> 32
    kept = np.sort(key[order][np.arange(len(key)) - np.searchsorted(page, page) < _MOST_RECORDS_OF_PAGE])
    return Pairs((kept >> 32).astype(np.int32), (kept & 0xFFFFFFFF).astype(np.int32))


def bits_of_name(table: SeedTable) -> float:
    """The bits that it takes to name one record among all."""
    return math.log2(max(2, table.records))


def possible_pairs(
    table: SeedTable, matches: Sequence[TextMatches], rows: Rows
) -> tuple[Pairs, NDArray[np.float64]]:
    """The pairs that may be believed whatever other pages there are, and the most bits that tell each.

    What is known of a whole site only takes from them: texts that belong to its template, and positions
    at which matches do not stand. So a page without such a pair shows no record on any site.
    """
    pairs = candidate_pairs(table, matches, rows, most_pages=rows.texts.pages)
    bits = np.zeros(len(pairs.page))
    for attribute, found in zip(table.attributes, matches, strict=True):
        matched = matched_rows(attribute, found, pairs, rows, most_texts=len(found.text))
        of_attribute = np.zeros(len(bits))
        np.maximum.at(of_attribute, matched.pair, matched.bits)
        bits += of_attribute
    told_enough = bits - bits_of_name(table) > MARGIN
    return Pairs(pairs.page[told_enough], pairs.record[told_enough]), bits[told_enough]


def matched_rows(
    attribute: SeedAttribute,
    found: TextMatches,
    pairs: Pairs,
    rows: Rows,
    most_texts: int = _MOST_TEXTS_OF_VALUE,
) -> Matched:
    """Where the values of the records stand on the pages they are paired with."""
    order = np.lexsort((-found.similarity, found.value))
    value = found.value[order]
    order = order[np.arange(len(value)) - np.searchsorted(value, value) < most_texts]
    texts_of_value = linked(found.value[order], np.arange(len(order)), len(attribute.values))
    pair, value = attribute.values_of.expanded(pairs.record)
    origin, at = texts_of_value.expanded(value)
    match, pair = order[at], pair[origin]
    origin, row = rows.found(pairs.page[pair], found.text[match])
    return Matched(
        pair[origin].astype(np.int32),
        row.astype(np.int32),
        found.similarity[match][origin],
        found.bits[match][origin],
    )


class _Candidate(NamedTuple):
    attribute: int
    position: Position
    bits: Floats  # of each pair, by what stands there
    rows: frozenset[int]


def aligned(
    table: SeedTable,
    pairs: Pairs,
    matched: Sequence[Matched],
    positions: Positions,
    texts: PageTexts,
    core: Collection[str],
) -> Alignment | None:
    """The pairs that are told by the positions, of two attributes at least, at which matches tell most.

    They share a core value, if positions of any are among these: two restaurants may have the same
    cuisine, prices and hours.
    """
    if not len(pairs.page):
        return None
    search = _Search(bits_of_name(table), pairs, matched, positions, texts)
    found = search.best()
    if found is None:
        return None
    best, lists = found
    of_core = [one.bits > 0 for one in best.chosen if table.attributes[one.attribute].name in core]
    shares_core = np.any(of_core, axis=0) if of_core else np.ones(len(pairs.page), np.bool_)
    return Alignment(search.believed(best.bits, shares_core), best.score, lists)


class _Configuration(NamedTuple):
    """Positions of several attributes, with the bits that they tell of each pair."""

    chosen: Sequence[_Candidate]
    bits: Floats
    score: float


class _Search:
    def __init__(
        self,
        needed: float,
        pairs: Pairs,
        matched: Sequence[Matched],
        positions: Positions,
        texts: PageTexts,
    ) -> None:
        self._needed = needed
        self._pairs = pairs
        self._matched = matched
        self._texts = texts
        self._page_starts = np.flatnonzero(firsts(pairs.page))
        self._candidates = [
            list(self._likely(number, found, positions)) for number, found in enumerate(matched)
        ]

    def _likely(self, attribute: int, found: Matched, positions: Positions) -> Iterator[_Candidate]:
        """The positions at which an attribute's matches tell most."""
        ranked: list[tuple[float, Position]] = []
        for way, (of_row, nodes) in enumerate(zip(*positions, strict=True)):
            number = of_row[found.row]
            stands = number >= 0
            number, pair = number[stands], found.pair[stands]
            # One of many nodes is met by chance more easily.
            bits = found.bits[stands] - np.log2(nodes[number])
            best = _best_of_each(number.astype(np.int64) << 32 | self._pairs.page[pair], bits)
            sums = np.bincount(number[best], np.maximum(0, bits[best]))
            most = np.argsort(-sums)[:_POSITIONS_TRIED]
            ranked += [(sums[one], Position(way, one)) for one in most[sums[most] > 0].tolist()]
        ranked.sort(key=lambda one: -one[0])
        for _, position in ranked[:_POSITIONS_TRIED]:
            at = positions.of_row[position.way][found.row] == position.number
            bits = np.zeros(len(self._pairs.page))
            nodes_of_page = positions.nodes_of_page[position.way][position.number]
            np.maximum.at(bits, found.pair[at], found.bits[at] - math.log2(nodes_of_page))
            yield _Candidate(attribute, position, bits, frozenset(found.row[at].tolist()))

    def best(self) -> tuple[_Configuration, Ints] | None:
        """The positions that tell most, and the pages that are lists by them.

        The best of two attributes are grown by others as long as they help. What pages list besides
        what they are about, such as restaurants nearby, may tell as much: then it is not taken.
        """
        twos = [
            (self._score(first.bits + second.bits), first, second)
            for one, other in combinations(self._telling(), 2)
            for first in one
            for second in other
            if not _share_rows(first, second)
        ]
        twos.sort(key=lambda two: -two[0])
        grown = [self._grown([first, second]) for first, second in self._diverse(twos)]
        lists = [self._lists(found) for found in grown]
        return max(
            zip(grown, lists, strict=True),
            key=lambda found: (found[0].score * (1 - self._share_of_lists(*found)), found[0].score),
            default=None,
        )

    def _telling(self) -> list[list[_Candidate]]:
        """The candidates of the attributes that tell most."""
        found = [candidates for candidates in self._candidates if candidates]
        return sorted(found, key=lambda candidates: -self._best_bits(candidates[0]))[:_ATTRIBUTES_TRIED]

    def _best_bits(self, candidate: _Candidate) -> float:
        return float(np.maximum.reduceat(candidate.bits, self._page_starts).sum())

    def _diverse(
        self, twos: Sequence[tuple[float, _Candidate, _Candidate]]
    ) -> Iterator[tuple[_Candidate, _Candidate]]:
        """Some of the best pairs of positions, not all of them entries of the same list."""
        styles: Counter[tuple[int, int, int, int]] = Counter()
        for score, first, second in twos:
            style = (first.attribute, self._style(first), second.attribute, self._style(second))
            if score <= 0 or styles.total() == _GROWN:
                return
            if styles[style] < _GROWN_ALIKE:
                styles[style] += 1
                yield first, second

    def _style(self, candidate: _Candidate) -> int:
        return int(self._texts.styled_path[next(iter(candidate.rows))])

    def _lists(self, found: _Configuration) -> Ints:
        """The pages where several texts are told to be of records, on the styled paths of the positions."""
        texts = self._texts
        bits = np.zeros(len(self._pairs.page))
        for one in found.chosen:
            matched = self._matched[one.attribute]
            at = texts.styled_path[matched.row] == self._style(one)
            of_attribute = np.zeros(len(bits))
            np.maximum.at(of_attribute, matched.pair[at], matched.bits[at])
            bits += of_attribute
        # An entry of a list is told as well as any other.
        is_entry = self.is_told(bits) & (bits >= _AS_WELL * self._best_of_page(bits))
        counts = [self._told_texts(one, is_entry) for one in found.chosen[:2]]
        return np.flatnonzero(np.min(counts, axis=0) >= _LEAST_OF_LIST).astype(np.int32)

    def _told_texts(self, candidate: _Candidate, is_entry: Flags) -> Longs:
        """How many different texts of each page are told to be of records, by one attribute."""
        texts, matched = self._texts, self._matched[candidate.attribute]
        rows = matched.row[
            is_entry[matched.pair] & (texts.styled_path[matched.row] == self._style(candidate))
        ]
        once = distinct(texts.page[rows].astype(np.int64) << 32 | texts.text[rows])
        return np.bincount(once >> 32, minlength=texts.pages)

    def _best_of_page(self, bits: Floats) -> Floats:
        """For each pair the most bits that any of its page has."""
        best = np.maximum.reduceat(bits, self._page_starts)
        return np.repeat(best, np.diff(self._page_starts, append=len(bits)))

    def _share_of_lists(self, found: _Configuration, lists: Ints) -> float:
        pages = np.unique(self._pairs.page[self.is_told(found.bits)])
        return float(np.mean(np.isin(pages, lists))) if len(pages) else 0.0

    def _score(self, bits: Floats) -> float:
        """The bits that pages tell beyond what it takes to name their record."""
        beyond = np.maximum.reduceat(bits - self._needed, self._page_starts)
        return float(beyond[beyond > 0].sum())

    def _discounted(self, bits: Floats) -> float:
        """The same, less where pages are all said to show the same few records."""
        beyond = bits - self._needed
        best = _best_of_each(self._pairs.page.astype(np.int64), beyond)
        best = best[beyond[best] > 0]
        records = self._pairs.record[best]
        return float(beyond[best].sum()) * len(np.unique(records)) / max(1, len(records))

    def _grown(self, chosen: list[_Candidate]) -> _Configuration:
        bits = np.sum([one.bits for one in chosen], axis=0)
        score = self._discounted(bits)
        while True:
            known = {one.attribute for one in chosen}
            further = [
                (self._score(bits + one.bits), one)
                for candidates in self._candidates
                for one in candidates[:_POSITIONS_ADDED]
                if one.attribute not in known and not any(_share_rows(one, other) for other in chosen)
            ]
            _, one = max(further, key=lambda found: found[0], default=(0.0, chosen[0]))
            better = self._discounted(bits + one.bits) if further else 0.0
            if better <= score * _LEAST_GROWTH or len(chosen) == _MOST_ATTRIBUTES:
                return _Configuration(chosen, bits, score)
            chosen, bits, score = [*chosen, one], bits + one.bits, better

    def is_told(self, bits: Floats) -> Flags:
        """Which pairs are told well enough."""
        return bits - self._needed > MARGIN

    def believed(self, bits: Floats, is_likely: Flags) -> Pairs:
        """Of likely pairs, those that are told well enough, and not much worse than their page's best one."""
        beyond = bits - self._needed
        best = self._best_of_page(beyond)
        kept = is_likely & self.is_told(bits) & (beyond > best - _MOST_BEHIND * self._needed)
        return Pairs(self._pairs.page[kept], self._pairs.record[kept])


def _best_of_each(keys: Longs, bits: Floats) -> Longs:
    """For each different key, where the most bits stand."""
    order = np.lexsort((-bits, keys))
    return order[firsts(keys[order])]


def _share_rows(one: _Candidate, other: _Candidate) -> bool:
    """Whether two positions are mostly the same texts: two attributes share no position."""
    return len(one.rows & other.rows) > _SAME_ROWS * min(len(one.rows), len(other.rows))
