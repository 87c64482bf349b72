"""What came of relearning a wrapper: values that people and programs can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from siteloom.model import Example
from siteloom.wrapper import Wrapper

Outcome = Literal["reused", "repaired", "needs-annotation"]
State = Literal["kept", "changing", "repaired", "unrepaired", "vanished"]


@dataclass(frozen=True, slots=True)
class AttributeOutcome:
    """What became of an attribute.

    It was `kept`, for its rules still work; it is `changing`, for the site itself has other values now;
    it was `repaired`, or not (`unrepaired`); or its values have `vanished` from the pages. Of `tested` known
    values, `right` are found by the new wrapper on pages that it was not learned from.
    """

    state: State
    right: int
    tested: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ValueDiff:
    """A value on a page: as it was known, as the old wrapper finds it, and as the new one does."""

    url: str
    attribute: str
    known: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Relearned:
    """What came of relearning.

    If the outcome is `reused`, the rules of `wrapper` are the old ones; if it is `repaired`, all that was
    broken has new ones. Else it `needs-annotation`: what could not be repaired is as it was, and `annotate`
    has the pages to look at first, with what is known of them filled in. `confidence` is the estimated
    probability that a value of the least certain repaired attribute is right. `pages` are the URLs that
    were tested: those on which something known still stands. `attributes` says what became of each,
    `values` shows what is found on some pages before and after, and `reason` why something was not repaired.
    """

    outcome: Outcome
    wrapper: Wrapper
    confidence: float
    attributes: Mapping[str, AttributeOutcome]
    values: tuple[ValueDiff, ...] = ()
    annotate: tuple[Example, ...] = ()
    reason: str = ""
    pages: tuple[str, ...] = ()
