"""Seeded choices that fall alike in every process and on every version of Python."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Dice:
    """A source of choices named by what it is for, so that one page never disturbs another.

    Everything is built on `random()`: of all the methods of `Random` only its
    sequence is promised to stay the same between versions of Python.
    """

    def __init__(self, *purpose: object) -> None:
        self._random = Random("/".join(str(part) for part in purpose)).random  # noqa: S311 - no secrets here

    def chance(self, probability: float) -> bool:
        """True in this share of the throws."""
        return self._random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.between(0, len(options) - 1)]

    def sample(self, options: Sequence[T], count: int) -> tuple[T, ...]:
        """Up to `count` different positions of the options, in random order."""
        rest = list(options)
        size = min(count, len(rest))
        return tuple(rest.pop(self.between(0, len(rest) - 1)) for _ in range(size))
