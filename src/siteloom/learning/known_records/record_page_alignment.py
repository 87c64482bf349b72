"""Find which record is on which page, by matches that agree with one another across pages.

A match is worth log2 of the number of all records divided by those that are as similar to the text, in bits.
A page shows a record if its matches at the positions of several attributes have, in total, more bits than it
takes to identify one record.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.known_records.page_positions import Position
from siteloom.learning.known_records.record_arrays import distinct, expand_ranges, is_run_start, make_links

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
"""Bits that a page must have beyond those that identify its record: one in eight would by chance."""

_RARE = 30  # a text that is similar to more records identifies none of them
_MOST_RECORDS_OF_PAGE = 20  # the same entity may be known from as many sources
_LEAST_SHARE_OF_BITS = 0.5  # from rare values, for a pair to be considered
_MOST_TEXTS_OF_VALUE = 300  # the most similar ones: a bound on the work for values such as `Italian`
_ATTRIBUTES_TRIED = 8  # the most informative ones, in pairs
_POSITIONS_TRIED = 30  # of an attribute; all pairs of those of two attributes are tried
_GROWN = 12  # best pairs of positions to extend
_GROWN_ALIKE = 3  # of these on the same styled paths
_POSITIONS_ADDED = 10  # positions of each further attribute to try
_MOST_ATTRIBUTES = 6  # suffice to identify a record; tables may have a hundred
_LEAST_GROWTH = 1.01  # of the score, by a further attribute
# Share of the bits that identify a record: a pair this far behind the page's best pair is another record.
_MOST_BEHIND = 0.3
_SAME_ROWS = 0.5  # share of common rows from which two positions count as the same
_AS_WELL = 0.8  # of the bits of the page's best pair
_LEAST_OF_LIST = 3  # records that a page shows at the same styled paths
_TIE = 1e-3  # similarities that differ less are equal: the join computes them in single precision


class TextMatches(NamedTuple):
    """Matches of page texts with the values of one attribute.

    `bits` is the information of a match, `records` the number of records as similar to the text.
    """

    text: Ints
    value: Ints
    similarity: Floats
    bits: Floats
    records: Longs


class Pairs(NamedTuple):
    """Records and the pages that may show them, ordered by page."""

    page: Ints
    record: Ints


class MatchedRows(NamedTuple):
    """For one attribute, the rows of page texts that match values of paired records."""

    pair: Ints
    row: Ints
    similarity: Floats
    bits: Floats


class Alignment(NamedTuple):
    """The accepted pairs, and the score of their evidence.

    `lists` are pages that show several records at the styled paths of their apparent record.
    """

    pairs: Pairs
    score: float
    lists: Ints


class RowIndex:
    """An index of the rows of page texts that may be values, by page and text."""

    def __init__(self, texts: PageTexts, is_open: Flags) -> None:
        self.texts = texts
        self._rows = np.flatnonzero(is_open)
        keys = texts.page[self._rows].astype(np.int64) << 32 | texts.text[self._rows]
        order = np.argsort(keys, kind="stable")
        self._rows = self._rows[order]
        self._keys = keys[order]
        self.pages_of = make_links(texts.text[self._rows], texts.page[self._rows], len(texts.texts))

    def find(self, page: Ints, text: Ints) -> tuple[Longs, Longs]:
        """Return the rows of each page and text: the index in the input of each row, and the rows."""
        keys = page.astype(np.int64) << 32 | text
        start = np.searchsorted(self._keys, keys)
        origin, places = expand_ranges(start, np.searchsorted(self._keys, keys, "right") - start)
        return origin, self._rows[places]


def weigh_matches(attribute: SeedAttribute, matches: ValueMatches, numbers: Ints) -> TextMatches:
    """Compute the bits of matches; `numbers` has the number of each compared text on the pages."""
    order = np.lexsort((-matches.similarity, matches.text))
    text, value = matches.text[order], matches.value[order]
    similarity = matches.similarity[order].astype(np.float64)
    counts = attribute.records_of.counts()[value]
    upto = np.cumsum(counts)
    starts = np.flatnonzero(is_run_start(text))
    records_before = np.repeat(upto[starts] - counts[starts], np.diff(starts, append=len(text)))
    # Ties count for one another: all equally similar records have the rank of the last of them.
    last_indices = np.flatnonzero(
        np.append(is_run_start(text)[1:] | (-np.diff(similarity) > _TIE), [True][: len(text)])
    )
    records = (upto - records_before)[last_indices[np.searchsorted(last_indices, np.arange(len(text)))]]
    record_count = int((attribute.values_of.counts() > 0).sum())
    bits = np.log2(np.maximum(1.0, record_count / np.maximum(1, records))) * similarity**2
    return TextMatches(text=numbers[text], value=value, similarity=similarity, bits=bits, records=records)


def candidate_pairs(
    table: SeedTable, matches: Sequence[TextMatches], rows: RowIndex, most_pages: int | None = None
) -> Pairs:
    """Return the pairs of a record and a page that rare values suggest.

    A text on more than `most_pages` pages, by default a tenth, belongs to the site and not to a record.
    """
    if most_pages is None:
        most_pages = max(10, rows.texts.pages // 10)
    page_counts = rows.pages_of.counts()
    keys: list[Longs] = []
    bits: list[Floats] = []
    for attribute, text_matches in zip(table.attributes, matches, strict=True):
        is_rare = (text_matches.records <= _RARE) & (page_counts[text_matches.text] <= most_pages)
        origin, record = attribute.records_of.expand(text_matches.value[is_rare])
        text, match_bits = text_matches.text[is_rare][origin], text_matches.bits[is_rare][origin]
        origin, page = rows.pages_of.expand(text)
        key = page.astype(np.int64) << 32 | record[origin]
        best = _best_of_each(key, match_bits[origin])
        keys.append(key[best])
        bits.append(match_bits[origin][best])
    key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(inverse, np.concatenate(bits), minlength=len(key))
    is_likely = total >= _LEAST_SHARE_OF_BITS * bits_of_name(table)
    key, total = key[is_likely], total[is_likely]
    order = np.lexsort((-total, key >> 32))
    page = key[order] >> 32
    selected_keys = np.sort(
        key[order][np.arange(len(key)) - np.searchsorted(page, page) < _MOST_RECORDS_OF_PAGE]
    )
    return Pairs((selected_keys >> 32).astype(np.int32), (selected_keys & 0xFFFFFFFF).astype(np.int32))


def bits_of_name(table: SeedTable) -> float:
    """Return the bits that identify one record among all."""
    return math.log2(max(2, table.records))


def possible_pairs(
    table: SeedTable, matches: Sequence[TextMatches], rows: RowIndex
) -> tuple[Pairs, NDArray[np.float64]]:
    """Return the pairs that may be accepted whatever the other pages are, with the maximum bits of each.

    The other pages of a site can only remove evidence: texts of the template, and matches outside the chosen
    positions. So a page without such a pair shows no record on any site.
    """
    pairs = candidate_pairs(table, matches, rows, most_pages=rows.texts.pages)
    bits = np.zeros(len(pairs.page))
    for attribute, text_matches in zip(table.attributes, matches, strict=True):
        matched = matched_rows(
            attribute=attribute,
            matches=text_matches,
            pairs=pairs,
            rows=rows,
            most_texts=len(text_matches.text),
        )
        of_attribute = np.zeros(len(bits))
        np.maximum.at(of_attribute, matched.pair, matched.bits)
        bits += of_attribute
    is_identified = bits - bits_of_name(table) > MARGIN
    return Pairs(pairs.page[is_identified], pairs.record[is_identified]), bits[is_identified]


def matched_rows(
    attribute: SeedAttribute,
    matches: TextMatches,
    pairs: Pairs,
    rows: RowIndex,
    most_texts: int = _MOST_TEXTS_OF_VALUE,
) -> MatchedRows:
    """Return the rows that match the values of records on the pages they are paired with."""
    order = np.lexsort((-matches.similarity, matches.value))
    value = matches.value[order]
    order = order[np.arange(len(value)) - np.searchsorted(value, value) < most_texts]
    texts_of_value = make_links(matches.value[order], np.arange(len(order)), len(attribute.values))
    pair, value = attribute.values_of.expand(pairs.record)
    origin, indices = texts_of_value.expand(value)
    match, pair = order[indices], pair[origin]
    origin, row = rows.find(pairs.page[pair], matches.text[match])
    return MatchedRows(
        pair=pair[origin].astype(np.int32),
        row=row.astype(np.int32),
        similarity=matches.similarity[match][origin],
        bits=matches.bits[match][origin],
    )


class _Candidate(NamedTuple):
    attribute: int
    position: Position
    bits: Floats  # of each pair, from the texts there
    rows: frozenset[int]


def align(
    table: SeedTable,
    pairs: Pairs,
    matched: Sequence[MatchedRows],
    positions: Positions,
    texts: PageTexts,
    core: Collection[str],
) -> Alignment | None:
    """Choose positions of two or more attributes with the most evidence, and return the pairs they identify.

    If core attributes are among these, the pairs share a core value: two restaurants may have the same
    cuisine, prices and hours.
    """
    if not len(pairs.page):
        return None
    search = _Search(
        needed_bits=bits_of_name(table), pairs=pairs, matched=matched, positions=positions, texts=texts
    )
    best_configuration = search.best()
    if best_configuration is None:
        return None
    best, lists = best_configuration
    of_core = [
        candidate.bits > 0 for candidate in best.chosen if table.attributes[candidate.attribute].name in core
    ]
    shares_core = np.any(of_core, axis=0) if of_core else np.ones(len(pairs.page), np.bool_)
    return Alignment(search.accepted(best.bits, shares_core), best.score, lists)


class _Configuration(NamedTuple):
    """Positions of several attributes, with their bits for each pair."""

    chosen: Sequence[_Candidate]
    bits: Floats
    score: float


class _Search:
    def __init__(
        self,
        needed_bits: float,
        pairs: Pairs,
        matched: Sequence[MatchedRows],
        positions: Positions,
        texts: PageTexts,
    ) -> None:
        self._needed_bits = needed_bits
        self._pairs = pairs
        self._matched = matched
        self._texts = texts
        self._page_starts = np.flatnonzero(is_run_start(pairs.page))
        self._candidates = [
            list(self._candidate_positions(number, matched_attribute, positions))
            for number, matched_attribute in enumerate(matched)
        ]

    def _candidate_positions(
        self, attribute: int, matched: MatchedRows, positions: Positions
    ) -> Iterator[_Candidate]:
        """Yield the positions at which an attribute's matches have most bits."""
        ranked: list[tuple[float, Position]] = []
        for scheme, (of_row, nodes) in enumerate(zip(*positions, strict=True)):
            number = of_row[matched.row]
            stands = number >= 0
            number, pair = number[stands], matched.pair[stands]
            # A match with one of many nodes is more likely by chance.
            bits = matched.bits[stands] - np.log2(nodes[number])
            best = _best_of_each(number.astype(np.int64) << 32 | self._pairs.page[pair], bits)
            sums = np.bincount(number[best], np.maximum(0, bits[best]))
            best_numbers = np.argsort(-sums)[:_POSITIONS_TRIED]
            ranked += [
                (sums[position_number], Position(scheme, position_number))
                for position_number in best_numbers[sums[best_numbers] > 0].tolist()
            ]
        ranked.sort(key=lambda position_number: -position_number[0])
        for _, position in ranked[:_POSITIONS_TRIED]:
            at = positions.of_row[position.scheme][matched.row] == position.number
            bits = np.zeros(len(self._pairs.page))
            nodes_of_page = positions.nodes_of_page[position.scheme][position.number]
            np.maximum.at(bits, matched.pair[at], matched.bits[at] - math.log2(nodes_of_page))
            yield _Candidate(
                attribute=attribute, position=position, bits=bits, rows=frozenset(matched.row[at].tolist())
            )

    def best(self) -> tuple[_Configuration, Ints] | None:
        """Return the positions with most evidence, and the pages that are lists by these.

        The best pairs of positions are extended by other attributes as long as these help. Lists beside the
        main record of a page, such as restaurants nearby, may have as much evidence; they are penalised.
        """
        scored_pairs = [
            (self._score(candidate.bits + other_candidate.bits), candidate, other_candidate)
            for candidates, other_candidates in combinations(self._informative_attributes(), 2)
            for candidate in candidates
            for other_candidate in other_candidates
            if not _share_rows(candidate, other_candidate)
        ]
        scored_pairs.sort(key=lambda scored_pair: -scored_pair[0])
        configurations = [
            self._extend([candidate, other_candidate])
            for candidate, other_candidate in self._diverse(scored_pairs)
        ]
        lists = [self._list_pages(result) for result in configurations]
        return max(
            zip(configurations, lists, strict=True),
            key=lambda result: (result[0].score * (1 - self._share_of_lists(*result)), result[0].score),
            default=None,
        )

    def _informative_attributes(self) -> list[list[_Candidate]]:
        """Return the candidates of the most informative attributes."""
        non_empty = [candidates for candidates in self._candidates if candidates]
        return sorted(non_empty, key=lambda candidates: -self._best_bits(candidates[0]))[:_ATTRIBUTES_TRIED]

    def _best_bits(self, candidate: _Candidate) -> float:
        return float(np.maximum.reduceat(candidate.bits, self._page_starts).sum())

    def _diverse(
        self, scored_pairs: Sequence[tuple[float, _Candidate, _Candidate]]
    ) -> Iterator[tuple[_Candidate, _Candidate]]:
        """Yield some of the best pairs of positions, limiting those on the same styled paths."""
        styles: Counter[tuple[int, int, int, int]] = Counter()
        for score, candidate, other_candidate in scored_pairs:
            style = (
                candidate.attribute,
                self._style(candidate),
                other_candidate.attribute,
                self._style(other_candidate),
            )
            if score <= 0 or styles.total() == _GROWN:
                return
            if styles[style] < _GROWN_ALIKE:
                styles[style] += 1
                yield candidate, other_candidate

    def _style(self, candidate: _Candidate) -> int:
        return int(self._texts.styled_path[next(iter(candidate.rows))])

    def _list_pages(self, configuration: _Configuration) -> Ints:
        """Return the pages with several texts that identify records on the styled paths of the positions."""
        texts = self._texts
        bits = np.zeros(len(self._pairs.page))
        for candidate in configuration.chosen:
            matched = self._matched[candidate.attribute]
            is_at_style = texts.styled_path[matched.row] == self._style(candidate)
            of_attribute = np.zeros(len(bits))
            np.maximum.at(of_attribute, matched.pair[is_at_style], matched.bits[is_at_style])
            bits += of_attribute
        # The entries of a list have similar evidence.
        is_entry = self.is_identified(bits) & (bits >= _AS_WELL * self._best_of_page(bits))
        counts = [self._identified_texts(candidate, is_entry) for candidate in configuration.chosen[:2]]
        return np.flatnonzero(np.min(counts, axis=0) >= _LEAST_OF_LIST).astype(np.int32)

    def _identified_texts(self, candidate: _Candidate, is_entry: Flags) -> Longs:
        """Count the distinct texts of each page that identify records, by one attribute."""
        texts, matched = self._texts, self._matched[candidate.attribute]
        rows = matched.row[
            is_entry[matched.pair] & (texts.styled_path[matched.row] == self._style(candidate))
        ]
        once = distinct(texts.page[rows].astype(np.int64) << 32 | texts.text[rows])
        return np.bincount(once >> 32, minlength=texts.pages)

    def _best_of_page(self, bits: Floats) -> Floats:
        """Return for each pair the highest bits of any pair of its page."""
        best = np.maximum.reduceat(bits, self._page_starts)
        return np.repeat(best, np.diff(self._page_starts, append=len(bits)))

    def _share_of_lists(self, configuration: _Configuration, lists: Ints) -> float:
        pages = np.unique(self._pairs.page[self.is_identified(configuration.bits)])
        return float(np.mean(np.isin(pages, lists))) if len(pages) else 0.0

    def _score(self, bits: Floats) -> float:
        """Sum up the bits of pages beyond those that identify their record."""
        beyond = np.maximum.reduceat(bits - self._needed_bits, self._page_starts)
        return float(beyond[beyond > 0].sum())

    def _discounted(self, bits: Floats) -> float:
        """Return the score, discounted where many pages share the same few records."""
        beyond = bits - self._needed_bits
        best = _best_of_each(self._pairs.page.astype(np.int64), beyond)
        best = best[beyond[best] > 0]
        records = self._pairs.record[best]
        return float(beyond[best].sum()) * len(np.unique(records)) / max(1, len(records))

    def _extend(self, chosen: list[_Candidate]) -> _Configuration:
        bits = np.sum([candidate.bits for candidate in chosen], axis=0)
        score = self._discounted(bits)
        while True:
            used_attributes = {candidate.attribute for candidate in chosen}
            further = [
                (self._score(bits + candidate.bits), candidate)
                for candidates in self._candidates
                for candidate in candidates[:_POSITIONS_ADDED]
                if candidate.attribute not in used_attributes
                and not any(_share_rows(candidate, chosen_candidate) for chosen_candidate in chosen)
            ]
            _, candidate = max(further, key=lambda scored: scored[0], default=(0.0, chosen[0]))
            new_score = self._discounted(bits + candidate.bits) if further else 0.0
            if new_score <= score * _LEAST_GROWTH or len(chosen) == _MOST_ATTRIBUTES:
                return _Configuration(chosen, bits, score)
            chosen, bits, score = [*chosen, candidate], bits + candidate.bits, new_score

    def is_identified(self, bits: Floats) -> Flags:
        """Flag the pairs with enough bits."""
        return bits - self._needed_bits > MARGIN

    def accepted(self, bits: Floats, is_likely: Flags) -> Pairs:
        """Return the likely pairs that have enough bits and are not far behind their page's best pair."""
        beyond = bits - self._needed_bits
        best = self._best_of_page(beyond)
        is_accepted = (
            is_likely & self.is_identified(bits) & (beyond > best - _MOST_BEHIND * self._needed_bits)
        )
        return Pairs(self._pairs.page[is_accepted], self._pairs.record[is_accepted])


def _best_of_each(keys: Longs, bits: Floats) -> Longs:
    """Return for each distinct key the index of the highest bits."""
    order = np.lexsort((-bits, keys))
    return order[is_run_start(keys[order])]


def _share_rows(candidate: _Candidate, other_candidate: _Candidate) -> bool:
    """Return whether two positions have mostly the same rows; two attributes cannot share a position."""
    return len(candidate.rows & other_candidate.rows) > _SAME_ROWS * min(
        len(candidate.rows), len(other_candidate.rows)
    )
