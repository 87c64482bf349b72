"""The outcome of repairing one wrapper, and whether it can be accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from siteloom.core.model import Example
from siteloom.wrappers.explanation import rule_words
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from siteloom.wrappers.rule_features import AttributeRules


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


def relearned_row(old: Wrapper, found: Relearned) -> dict[str, Any]:
    """The outcome, what became of each attribute, and the difference: rules and values before and after."""
    return {
        "outcome": found.outcome,
        "confidence": round(found.confidence, 4),
        "reason": found.reason,
        "attributes": {name: asdict(one) for name, one in found.attributes.items()},
        "diff": {
            "rules": rule_diff(old, found.wrapper),
            "values": [asdict(one) for one in found.values],
        },
        "annotate": [
            {"url": one.page.url, "values": one.values}
            if not one.records
            else {"url": one.page.url, "records": list(one.records)}
            for one in found.annotate
        ],
    }


def rule_diff(old: Wrapper, new: Wrapper) -> list[dict[str, Any]]:
    """The rules of each attribute whose rules differ, before and after, in words."""
    names = dict.fromkeys((*old.attributes, *new.attributes))
    before = {name: _words(old.attributes.get(name)) for name in names}
    after = {name: _words(new.attributes.get(name)) for name in names}
    return [
        {"attribute": name, "before": before[name], "after": after[name]}
        for name in names
        if before[name] != after[name]
    ]


def _words(rules: AttributeRules | None) -> list[str]:
    if rules is None:
        return []
    return [rule_words(rule, multi=bool(rules.attribute.multi)) for rule in rules.rules]
