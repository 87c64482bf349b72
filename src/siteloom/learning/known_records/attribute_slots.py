"""Find the positions of attributes on pages whose records are known.

A position is believed if it agrees with the record of its page much more often than with the records of other
pages.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.html.page_text_arrays import ATTRIBUTE, INNER
from siteloom.learning.known_records.page_positions import Position
from siteloom.learning.known_records.record_arrays import is_run_start
from siteloom.learning.known_records.record_page_alignment import Pairs, matched_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from siteloom.learning.known_records.page_positions import Positions
    from siteloom.learning.known_records.record_arrays import SeedAttribute
    from siteloom.learning.known_records.record_page_alignment import MatchedRows, RowIndex, TextMatches

    Flags = NDArray[np.bool_]
    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]
    Floats = NDArray[np.float64]

# The thresholds below separate right positions from wrong ones on twenty real sites: the actual positions,
# and the best positions after all true values are removed from the pages.

LEAST_KAPPA = 0.4
"""Agreement beyond chance from which a position is believed."""

# A lower kappa suffices if all texts there are of the attribute's kind: other editions have other ISBNs.
_LEAST_TYPED_KAPPA = 0.1
_LEAST_TYPED_LIFT = 5.0  # times as often as by chance
_LEAST_TYPED_BITS = 50.0  # four equal ISBNs, or ten equal months

# A lower kappa also suffices if all texts there are among a few known values.
_LEAST_WORDED_KAPPA = 0.25
_LEAST_WORDED_LIFT = 2.0

# Of the dozens of positions tried, some agree on a few pages by chance.
_MOST_LUCK = 1e-5

_LEAST_SUGGESTED_KAPPA = 0.2
_KIND_SHARE = 0.8  # of values, and of texts at the position
_VOCABULARY_SHARE = 0.8
_FEW_VALUES = 0.2  # distinct values per record of categories: types, ratings, cuisines
_MANY_VALUES = 0.5  # distinct values per record of identifying attributes: names, addresses
_LEAST_VARIETY = 0.3  # distinct texts per page for these: a city is on many pages, an address on one

_MOST_SLOTS = 4
_LEAST_PAGES = 3
_LEAST_FURTHER_PAGES = 5
_LEAST_FURTHER_SHARE = 0.05  # of the pages of the first position; thin evidence does more harm than good
_LEAST_FURTHER_KAPPA = 0.6
_POSITIONS_LOOKED_AT = 20
_SHUFFLES = 4

# Single visible texts are preferred to combined or hidden ones.
_PREFERENCE = {INNER: 0.4, ATTRIBUTE: 0.4}


class Slot(NamedTuple):
    """A position of an attribute, with the numbers of pages that have it, agree, and would agree by chance.

    `bits` is the evidence for the records beyond chance.
    """

    position: Position
    pages: int
    agreeing: int
    by_chance: float
    agreeing_pages: Ints
    bits: float
    is_believed: bool

    @property
    def kappa(self) -> float:
        """Agreement beyond chance."""
        return kappa(self.agreeing, self.by_chance, self.pages)


def kappa(agreeing: float, by_chance: float, among: float) -> float:
    """Return the agreement beyond chance: 1 if all agree, 0 if no more than by chance."""
    return (agreeing - by_chance) / max(among - by_chance, 1e-9)


def luck(agreeing: int, by_chance: float, among: int) -> float:
    """Return the Chernoff bound on the probability that so many of the pages agree by chance."""
    share = agreeing / among
    chance = (by_chance + 1 / _SHUFFLES) / among  # none in a few trials does not mean never
    if share <= chance:
        return 1.0
    divergence = share * math.log(share / chance)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - chance))
    return math.exp(-among * divergence)


def shuffled(pairs: Pairs, generator: np.random.Generator) -> Pairs:
    """Move all records of each page together to another page."""
    pages = np.unique(pairs.page)
    target_pages = pages[generator.permutation(len(pages))][np.searchsorted(pages, pairs.page)]
    order = np.argsort(target_pages, kind="stable")
    return Pairs(target_pages[order], pairs.record[order])


def find_slots(
    attribute: SeedAttribute,
    matches: TextMatches,
    pairs: Pairs,
    rows: RowIndex,
    positions: Positions,
    kinds: Ints,
) -> list[Slot]:
    """Return the positions of an attribute: the best one, then others for pages without the earlier ones.

    `kinds` has the number of each text's kind of value. If even the best position is not believed, it is the
    only one.
    """
    generator = np.random.default_rng(0)
    finder = _SlotFinder(
        attribute=attribute,
        matches=matches,
        matched=matched_rows(attribute=attribute, matches=matches, pairs=pairs, rows=rows),
        chance_matched=[
            matched_rows(attribute=attribute, matches=matches, pairs=shuffled(pairs, generator), rows=rows)
            for _ in range(_SHUFFLES)
        ],
        rows=rows,
        positions=positions,
        kinds=kinds,
    )
    has_value = attribute.values_of.counts()[pairs.record] > 0
    pages = np.unique(pairs.page[has_value])
    slots: list[Slot] = []
    while len(slots) < _MOST_SLOTS and len(pages) >= _LEAST_PAGES:
        best = finder.best(pages)
        if best is None or (slots and not _adds(best, slots[0])):
            break
        slots.append(best)
        if not best.is_believed:
            break
        pages = np.setdiff1d(pages, rows.texts.page[positions.rows_at(best.position)])
    return slots


def _adds(slot: Slot, first_slot: Slot) -> bool:
    """Return whether a further position has enough evidence of its own."""
    return (
        slot.is_believed
        and slot.agreeing >= max(_LEAST_FURTHER_PAGES, _LEAST_FURTHER_SHARE * first_slot.agreeing)
        and slot.kappa >= _LEAST_FURTHER_KAPPA
    )


class _SlotFinder:
    def __init__(
        self,
        attribute: SeedAttribute,
        matches: TextMatches,
        matched: MatchedRows,
        chance_matched: Sequence[MatchedRows],
        rows: RowIndex,
        positions: Positions,
        kinds: Ints,
    ) -> None:
        self._texts = rows.texts
        self._matched = matched
        self._chance_matched = chance_matched
        self._positions = positions
        self._kinds = kinds
        records = int((attribute.values_of.counts() > 0).sum())
        self._variety = min(1.0, len(attribute.values) / max(1, records))
        self._kind = attribute.kind(_KIND_SHARE)
        self._is_known_text = np.zeros(len(rows.texts.texts), np.bool_)
        self._is_known_text[matches.text] = True

    def best(self, pages: Ints) -> Slot | None:
        """Return the position with most evidence on these pages, preferring believed positions."""
        is_looked_at = np.zeros(self._texts.pages, np.bool_)
        is_looked_at[pages] = True
        best: tuple[bool, float, Slot] | None = None
        for scheme, (of_row, nodes) in enumerate(zip(*self._positions, strict=True)):
            agreeing, bits = self._pages_at(
                matched=self._matched, of_row=of_row, nodes=nodes, is_looked_at=is_looked_at
            )
            chance_results = [
                self._pages_at(matched=matched, of_row=of_row, nodes=nodes, is_looked_at=is_looked_at)
                for matched in self._chance_matched
            ]
            by_chance = np.mean([pages for pages, _ in chance_results], axis=0)
            gains = bits - np.mean([bits for _, bits in chance_results], axis=0)
            for number in np.argsort(-gains)[:_POSITIONS_LOOKED_AT].tolist():
                if agreeing[number] < _LEAST_PAGES or gains[number] <= 0:
                    continue
                slot = self._slot(
                    position=Position(scheme, number),
                    by_chance=by_chance[number],
                    bits=gains[number],
                    is_looked_at=is_looked_at,
                )
                preference = _PREFERENCE.get(self._form(slot.position), 1.0)
                worth = slot.bits * max(0.0, slot.kappa) * preference
                if best is None or (slot.is_believed, worth) > best[:2]:
                    best = slot.is_believed, worth, slot
        return None if best is None or (best[2].kappa < _LEAST_SUGGESTED_KAPPA and not best[0]) else best[2]

    def _form(self, position: Position) -> int:
        return int(self._texts.form[self._positions.rows_at(position)[0]])

    def _pages_at(
        self, matched: MatchedRows, of_row: Ints, nodes: Floats, is_looked_at: Flags
    ) -> tuple[Longs, Floats]:
        """Count the pages on which each position agrees with the record, and sum up the bits of evidence."""
        page, number = self._texts.page[matched.row], of_row[matched.row]
        selected = np.flatnonzero(is_looked_at[page] & (number >= 0))
        key = number[selected].astype(np.int64) << 32 | page[selected]
        bits = np.maximum(0, matched.bits[selected] - np.log2(nodes[number[selected]]))
        order = np.lexsort((-bits, key))
        best = order[is_run_start(key[order])]
        number = key[best] >> 32
        bits_by_position = np.bincount(number, bits[best], minlength=len(nodes)).astype(np.float64)
        return np.bincount(number, minlength=len(nodes)), bits_by_position

    def _slot(self, position: Position, by_chance: float, bits: float, is_looked_at: Flags) -> Slot:
        rows = self._positions.rows_at(position)
        pages = np.unique(self._texts.page[rows])
        matched = self._matched.row[
            self._positions.of_row[position.scheme][self._matched.row] == position.number
        ]
        agreeing = np.unique(self._texts.page[matched])
        agreeing = agreeing[is_looked_at[agreeing]]
        slot = Slot(
            position=position,
            pages=int(is_looked_at[pages].sum()),
            agreeing=len(agreeing),
            by_chance=float(by_chance),
            agreeing_pages=agreeing,
            bits=float(bits),
            is_believed=False,
        )
        return slot._replace(is_believed=self._is_believed(slot, rows))

    def _is_believed(self, slot: Slot, rows: Longs) -> bool:
        texts = self._texts.text[rows]
        if self._variety >= _MANY_VALUES and len(np.unique(texts)) < _LEAST_VARIETY * len(rows):
            return False
        if luck(slot.agreeing, slot.by_chance, slot.pages) > _MOST_LUCK:
            return False
        if slot.kappa >= LEAST_KAPPA:
            return True
        lift = slot.agreeing / max(slot.by_chance, 1e-9)
        if self._kind is not None and np.mean(self._kinds[texts] == self._kind) >= _KIND_SHARE:
            return (
                slot.kappa >= _LEAST_TYPED_KAPPA
                and lift >= _LEAST_TYPED_LIFT
                and slot.bits >= _LEAST_TYPED_BITS
            )
        return (
            self._variety <= _FEW_VALUES
            and slot.kappa >= _LEAST_WORDED_KAPPA
            and lift >= _LEAST_WORDED_LIFT
            and float(np.mean(self._is_known_text[texts])) >= _VOCABULARY_SHARE
        )
