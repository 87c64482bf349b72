"""The outcome of repairing one wrapper, and whether it can be accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """The outcome of repairing an attribute.

    It was `kept`, because its rules still work; it is `changing`, because the site itself has other values
    now; it was `repaired`, or not (`unrepaired`); or its values have `vanished` from the pages. Of `tested`
    known values, the new wrapper finds `right` on pages that it was not learned from.
    """

    state: State
    right: int
    tested: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A value on a page: as it was known, as the old wrapper finds it, and as the new wrapper finds it."""

    url: str
    attribute: str
    known: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Relearned:
    """The result of repairing a wrapper.

    If the outcome is `reused`, the rules of `wrapper` are the old ones. If it is `repaired`, everything that
    was broken has new rules. Otherwise it is `needs-annotation`: what could not be repaired is unchanged, and
    `annotate` has the pages to annotate first, with the known values filled in. `confidence` is the estimated
    probability that a value of the least certain repaired attribute is right. `pages` are the URLs that were
    tested: those on which known values still stand. `attributes` has the outcome of each attribute, `values`
    shows what is found on some pages before and after, and `reason` says why something was not repaired.
    """

    outcome: Outcome
    wrapper: Wrapper
    confidence: float
    attributes: Mapping[str, AttributeOutcome]
    values: tuple[ValueDifference, ...] = ()
    annotate: tuple[Example, ...] = ()
    reason: str = ""
    pages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleDifference:
    """The rules of an attribute in words, as the old wrapper and the new one have them."""

    attribute: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrapperDifference:
    """How a repaired wrapper differs from the old one: in rules, and in values on some pages."""

    rules: tuple[RuleDifference, ...] = ()
    values: tuple[ValueDifference, ...] = ()


def repair_row(
    *,
    outcome: Outcome,
    confidence: float,
    reason: str,
    attributes: Mapping[str, AttributeOutcome],
    difference: WrapperDifference,
    annotate: Sequence[Example],
) -> dict[str, Any]:
    """The result of a repair as the store keeps it and as it is written to files."""
    return {
        "outcome": outcome,
        "confidence": round(confidence, 4),
        "reason": reason,
        "attributes": {name: asdict(attribute) for name, attribute in attributes.items()},
        "diff": {
            "rules": [asdict(rules) for rules in difference.rules],
            "values": [asdict(value) for value in difference.values],
        },
        "annotate": [
            {"url": example.page.url, "values": example.values}
            if not example.records
            else {"url": example.page.url, "records": list(example.records)}
            for example in annotate
        ],
    }


def rule_differences(old: Wrapper, new: Wrapper) -> tuple[RuleDifference, ...]:
    """The rules of each attribute whose rules differ, before and after."""
    differences = (
        RuleDifference(
            name, _rules_in_words(old.attributes.get(name)), _rules_in_words(new.attributes.get(name))
        )
        for name in dict.fromkeys((*old.attributes, *new.attributes))
    )
    return tuple(difference for difference in differences if difference.before != difference.after)


def _rules_in_words(rules: AttributeRules | None) -> tuple[str, ...]:
    if rules is None:
        return ()
    return tuple(rule_words(rule, multi=bool(rules.attribute.multi)) for rule in rules.rules)
