"""Find all frequent item sets level by level (Agrawal and Srikant, VLDB 1994).

A page has baskets, one for each known record that agrees with it somewhere. The support of a set is the
number of pages that have a basket with all its items. A set is frequent only if all its subsets are, so few
sets need to be counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

ItemSet = tuple[int, ...]

_BITS = 64
# On a page of long lists all pairs of entries may occur together; all sets of four would take too long.
_MOST_SETS = 200_000


class Baskets(NamedTuple):
    """The baskets of one page: a row for each basket, a column for each of the `items` on the page."""

    items: NDArray[np.int64]
    holds: NDArray[np.bool_]


def frequent_sets(
    pages: Sequence[Baskets], alone: Sequence[int], min_support: int, excluded: NDArray[np.bool_]
) -> list[dict[ItemSet, int]]:
    """Return the sets of 1, 2, … items with at least `min_support`, ascending; no level is empty.

    `alone` is the support of each single item. No set has two items that are `excluded` by each other.
    """
    singles: dict[ItemSet, int] = {
        (item,): support for item, support in enumerate(alone) if support >= min_support
    }
    if not singles:
        return []
    together = _pair_supports(pages, len(alone))
    is_frequent = (together >= min_support) & ~excluded
    frequent = np.array([support >= min_support for support in alone])
    is_frequent &= frequent & frequent[:, np.newaxis]
    first_items, second_items = np.nonzero(np.triu(is_frequent, 1))
    pairs: dict[ItemSet, int] = {
        (item_set, other_item): int(together[item_set, other_item])
        for item_set, other_item in zip(first_items.tolist(), second_items.tolist(), strict=True)
    }
    levels: list[dict[ItemSet, int]] = [singles, pairs]
    bits = _BasketBits(pages, len(alone)) if pairs else None
    while levels[-1] and bits is not None:
        longer: dict[ItemSet, int] = {}
        for candidates, supports in _extend_sets(levels[-1], is_frequent, bits):
            supported = zip(candidates, supports, strict=True)
            longer.update((item_set, support) for item_set, support in supported if support >= min_support)
            if len(longer) > 2 * _MOST_SETS:
                longer = _most_supported(longer)
        levels.append(_most_supported(longer))
    return levels[:-1]


def _most_supported(sets: dict[ItemSet, int]) -> dict[ItemSet, int]:
    """Return up to `_MOST_SETS` sets with the most support, ascending."""
    if len(sets) <= _MOST_SETS:
        return sets
    best_sets = sorted(sets, key=lambda item_set: (-sets[item_set], item_set))[:_MOST_SETS]
    return {item_set: sets[item_set] for item_set in sorted(best_sets)}


def _pair_supports(pages: Sequence[Baskets], items: int) -> NDArray[np.int32]:
    """Return for each pair of items the number of pages that have both in one basket."""
    support = np.zeros((items, items), np.int32)
    for page in pages:
        holds = page.holds.astype(np.float32)  # multiplies much faster than booleans
        support[np.ix_(page.items, page.items)] += (holds.T @ holds) > 0
    return support


def _extend_sets(
    level: Mapping[ItemSet, int], is_frequent: NDArray[np.bool_], bits: _BasketBits
) -> Iterator[tuple[list[ItemSet], list[int]]]:
    """Yield the sets with one more item whose pairs of items are all frequent, and their supports.

    They are built in bulk from pairs of sets that differ in the last item.
    """
    by_beginning: dict[ItemSet, list[int]] = {}
    for item_set in level:
        by_beginning.setdefault(item_set[:-1], []).append(item_set[-1])
    for beginning, ends in by_beginning.items():
        for index, last_item in enumerate(ends):
            following = np.array(ends[index + 1 :], np.int64)
            following = following[is_frequent[last_item, following]]
            if len(following):
                shared_items = (*beginning, last_item)
                yield (
                    [(*shared_items, item_set) for item_set in following.tolist()],
                    bits.supports(shared_items, following),
                )


class _BasketBits:
    """All baskets as bits, a row for each item; the baskets of each page begin at a new word."""

    def __init__(self, pages: Sequence[Baskets], items: int) -> None:
        words = np.array([-(-len(page.holds) // _BITS) for page in pages])
        self._begins = np.cumsum(words) - words
        self._bits = np.zeros((items, words.sum()), np.uint64)
        for page, begin in zip(pages, self._begins.tolist(), strict=True):
            for word, first_basket in enumerate(range(0, len(page.holds), _BITS), begin):
                holds = page.holds[first_basket : first_basket + _BITS]
                bit = np.uint64(1) << np.arange(len(holds), dtype=np.uint64)
                self._bits[page.items, word] = bit @ holds.astype(np.uint64)

    def supports(self, shared_items: ItemSet, following: NDArray[np.int64]) -> list[int]:
        """Count for each following item the pages that have it in one basket with all shared items."""
        common = self._bits[following] & np.bitwise_and.reduce(self._bits[list(shared_items)])
        has_page = np.bitwise_or.reduceat(common, self._begins, axis=1) != 0
        supports: list[int] = np.count_nonzero(has_page, axis=1).tolist()
        return supports
