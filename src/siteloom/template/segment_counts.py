"""On how many pages the text segments of a site stood, as arrays: to be kept, and merged with others."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LivingTime:
    """For how many pages a segment is remembered since it was met last.

    That is `once` if it stood on one page, and comes near to `longest` with the number of its pages, by a
    logistic curve; the paper has the form of the curve, and no numbers.
    """

    once: int = 1_000
    longest: int = 20_000
    rate: float = 0.5

    def __post_init__(self) -> None:
        if self.once < 1 or self.longest < 1:
            raise UsageError(
                "The living time of a segment is one page at the least, "
                f"and not {min(self.once, self.longest)}."
            )

    def after(self, pages: int) -> float:
        """The living time of a segment that stood on a number of pages."""
        return self.longest / (1 + (self.longest / self.once - 1) * exp(-self.rate * (pages - 1)))


class SegmentCounts(NamedTuple):
    """What is known of the segments of a number of pages, by their keys, ascending.

    A row with the path 0 is of a path that bears text; others are of segments, at the path that the row
    `paths` names. `counts` are pages. `born` is how many pages had the path before the first one with the
    segment, `last` how many had when it was met last, which was on the page `last_pages`.
    """

    pages: int
    keys: NDArray[np.uint64]
    paths: NDArray[np.uint64]
    counts: NDArray[np.int64]
    born: NDArray[np.int64]
    last: NDArray[np.int64]
    last_pages: NDArray[np.int64]


_NO_KEYS = np.empty(0, np.uint64)
_NO_NUMBERS = np.empty(0, np.int64)

NO_SEGMENTS = SegmentCounts(0, _NO_KEYS, _NO_KEYS, _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


def merged(earlier: SegmentCounts, later: SegmentCounts, living: LivingTime | None) -> SegmentCounts:
    """The counts of some pages and of others that came after them, less what is due to be forgotten.

    It is as if a table had seen the ones and then the others, if it had forgotten nothing in between.
    """
    path_pages = _looked_up(earlier, np.where(later.paths == 0, later.keys, later.paths))
    known = _places(earlier, later.keys)
    is_known = known >= 0
    known = known[is_known]
    counts, last, last_pages = earlier.counts.copy(), earlier.last.copy(), earlier.last_pages.copy()
    counts[known] += later.counts[is_known]
    last[known] = (later.last + path_pages)[is_known]
    last_pages[known] = later.last_pages[is_known] + earlier.pages
    is_new = ~is_known
    keys = np.concatenate([earlier.keys, later.keys[is_new]])
    order = np.argsort(keys, kind="stable")
    is_segment = (later.paths != 0)[is_new]
    all_ = SegmentCounts(
        earlier.pages + later.pages,
        keys[order],
        np.concatenate([earlier.paths, later.paths[is_new]])[order],
        np.concatenate([counts, later.counts[is_new]])[order],
        np.concatenate([earlier.born, later.born[is_new] + path_pages[is_new] * is_segment])[order],
        np.concatenate([last, later.last[is_new] + path_pages[is_new] * is_segment])[order],
        np.concatenate([last_pages, later.last_pages[is_new] + earlier.pages])[order],
    )
    return all_ if living is None else _without_forgotten(all_, living)


def _without_forgotten(counts: SegmentCounts, living: LivingTime) -> SegmentCounts:
    distinct, row = np.unique(counts.counts, return_inverse=True)
    living_times = np.array([living.after(pages) for pages in distinct.tolist()])
    is_kept = counts.pages - counts.last_pages <= living_times[row] if distinct.size else distinct > 0
    return SegmentCounts(
        counts.pages,
        counts.keys[is_kept],
        counts.paths[is_kept],
        counts.counts[is_kept],
        counts.born[is_kept],
        counts.last[is_kept],
        counts.last_pages[is_kept],
    )


def _places(counts: SegmentCounts, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The rows of some keys, -1 where there is none."""
    if not counts.keys.size:
        return np.full(keys.size, -1, np.int64)
    place = np.minimum(np.searchsorted(counts.keys, keys), counts.keys.size - 1)
    return np.where(counts.keys[place] == keys, place, -1)


def _looked_up(counts: SegmentCounts, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The counts of some keys, 0 where there is none."""
    places = _places(counts, keys)
    found = np.zeros(keys.size, np.int64)
    found[places >= 0] = counts.counts[places[places >= 0]]
    return found
