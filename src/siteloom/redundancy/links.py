"""Many-to-many relations as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Numbers = NDArray[np.signedinteger]


class Links(NamedTuple):
    """For each left thing the right ones it is linked to: those of i are right[starts[i]:starts[i + 1]]."""

    starts: NDArray[np.int64]
    right: Ints

    def of(self, left: int) -> Ints:
        """What one thing is linked to."""
        return self.right[self.starts[left] : self.starts[left + 1]]

    def counts(self) -> NDArray[np.int64]:
        """How many links each left thing has."""
        return np.diff(self.starts)

    def expanded(self, left: Numbers) -> tuple[NDArray[np.int64], Ints]:
        """For each of `left` all its links: where in `left` each stands, and what it is linked to."""
        origin, places = spread(self.starts[left], self.starts[left + 1] - self.starts[left])
        return origin, self.right[places]


def spread(starts: Numbers, counts: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All places of ranges that start somewhere and have so many: which range each is of, and the place."""
    origin = np.repeat(np.arange(len(starts)), counts)
    within = np.arange(len(origin)) - np.repeat(np.cumsum(counts) - counts, counts)
    return origin, starts[origin] + within


def linked(left: Numbers, right: Numbers, lefts: int) -> Links:
    """Links out of pairs, each kept once."""
    pairs = distinct(left.astype(np.int64) << 32 | right.astype(np.int64))
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs >> 32, minlength=lefts))])
    return Links(starts, (pairs & 0xFFFFFFFF).astype(np.int32))


def firsts(ordered: NDArray[np.signedinteger]) -> NDArray[np.bool_]:
    """Which of ordered numbers differ from the one before them."""
    found = np.ones(len(ordered), np.bool_)
    found[1:] = ordered[1:] != ordered[:-1]
    return found


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, in order; for millions of numbers this is many times as fast as `np.unique`."""
    ordered = np.sort(numbers)
    return ordered[firsts(ordered)]
