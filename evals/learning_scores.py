"""How right extracted values are: strict and first-value scores, causes of errors, confidence.

F1 is taken for each attribute of each site; an attribute's is the mean over the
sites of its vertical, a vertical's the mean over its attributes, and the total
the mean over verticals.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Score = Literal["strict", "top1"]

CONFIDENT = 0.9
_BIN_EDGES = (0.0, 0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)


class Cause(StrEnum):
    """Why a page is wrong."""

    NOTHING = "nothing found though there is a value"
    SPURIOUS = "found where there is none"
    TOO_FEW = "too few of several values"
    TOO_MANY = "too many values"
    WRONG = "wrong value"
    BROKEN = "true value is not on the page"


class Answer(NamedTuple):
    """The values of an attribute on a page: true ones, and found ones with their confidence, if told.

    `is_possible` is false where a true value is no text of the page.
    """

    url: str
    truth: tuple[str, ...]
    found: tuple[str, ...]
    confidence: tuple[float, ...]
    is_possible: bool

    @property
    def is_right(self) -> bool:
        """All true values were found and no others; or there are none and none were found."""
        return set(self.found) == set(self.truth)

    @property
    def is_first_right(self) -> bool:
        """The first found value is a true one."""
        return bool(self.found) and self.found[0] in self.truth

    @property
    def cause(self) -> Cause | None:
        """Why it is not right, if it is not."""
        found, truth = set(self.found), set(self.truth)
        checks = {
            None: found == truth,
            Cause.BROKEN: not self.is_possible,
            Cause.NOTHING: not found,
            Cause.SPURIOUS: not truth,
            Cause.TOO_FEW: found < truth,
            Cause.TOO_MANY: found > truth,
            Cause.WRONG: True,
        }
        return next(cause for cause, holds in checks.items() if holds)


class Row(NamedTuple):
    """An attribute of a site, as a method that asked for so many examples extracts it.

    `annotated` is how many it was given: samples end where a further page would add nothing.
    """

    vertical: str
    site: str
    attribute: str
    method: str
    examples: int
    annotated: int
    answers: tuple[Answer, ...]

    @property
    def wrong(self) -> list[Answer]:
        """The answers that are not right."""
        return [answer for answer in self.answers if not answer.is_right]

    @property
    def strict(self) -> float:
        """F1 where a page is right if exactly the true values were found."""
        return self._f1(lambda answer: bool(answer.found) and answer.is_right)

    @property
    def top1(self) -> float:
        """F1 where a page is right if the first found value is a true one."""
        return self._f1(lambda answer: answer.is_first_right)

    def score(self, score: Score) -> float:
        """One of the two."""
        return self.strict if score == "strict" else self.top1

    def _f1(self, is_correct: Callable[[Answer], bool]) -> float:
        correct = sum(map(is_correct, self.answers))
        with_output = sum(bool(answer.found) for answer in self.answers)
        with_truth = sum(bool(answer.truth) for answer in self.answers)
        # 2PR/(P+R) with P = correct/with_output and R = correct/with_truth
        return 2 * correct / (with_output + with_truth) if correct else 0.0


class Reliability(NamedTuple):
    """Of the values whose confidence is from `low` to `high`: how many there are, how many are true."""

    low: float
    high: float
    values: int
    right: int

    @property
    def share(self) -> float:
        """The share that is true; 0 where there are no values."""
        return self.right / self.values if self.values else 0.0


def by_vertical(rows: Iterable[Row], score: Score) -> dict[str, float]:
    """The score of each vertical: the mean over its attributes of their means over sites."""
    sites: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        sites[row.vertical][row.attribute].append(row.score(score))
    return {vertical: fmean(map(fmean, attributes.values())) for vertical, attributes in sites.items()}


def total(rows: Iterable[Row], score: Score) -> float:
    """The mean over verticals."""
    return fmean(by_vertical(rows, score).values())


def mean_annotated(rows: Iterable[Row]) -> float:
    """How many pages of a site were annotated, on average."""
    return fmean({row.site: row.annotated for row in rows}.values())


def reliability(rows: Iterable[Row]) -> list[Reliability]:
    """How often values of a given confidence are among the true ones."""
    return reliability_of(_values(rows))


def reliability_of(values: Sequence[tuple[float, bool]]) -> list[Reliability]:
    """How often values of a given confidence are right, for pairs of confidence and truth."""
    return [counted(values, low, high) for low, high in pairwise(_BIN_EDGES)]


def confident(rows: Iterable[Row]) -> Reliability:
    """The values that Siteloom is confident of."""
    return counted(_values(rows), CONFIDENT, 1)


def _values(rows: Iterable[Row]) -> list[tuple[float, bool]]:
    """Confidence and truth of each value."""
    return [
        (confidence, value in answer.truth)
        for row in rows
        for answer in row.answers
        if answer.confidence  # only Siteloom tells it
        for value, confidence in zip(answer.found, answer.confidence, strict=True)
    ]


def counted(values: Sequence[tuple[float, bool]], low: float, high: float) -> Reliability:
    """The values of a bin, which has its lower edge; the last bin has both."""
    inside = [
        is_true for confidence, is_true in values if low <= confidence and (confidence < high or high == 1)
    ]
    return Reliability(low, high, len(inside), sum(inside))
