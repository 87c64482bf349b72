"""What a new wrapper does on its examples and on the other pages, and which page to annotate next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.learning.seen_texts import fold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.model import Record
    from siteloom.wrapper.wrapper import Wrapper

_MOST_ODD_UNITS = 5
_DOUBT = 0.02  # below this a page is like all others


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An example that the wrapper, which fits the others, contradicts.

    `fits` is the page of an example from which the rule was learned that finds
    something else here.
    """

    attribute: str
    url: str
    expected: tuple[str, ...]
    found: tuple[str, ...]
    fits: str | None


@dataclass(frozen=True, slots=True)
class AttributeReport:
    """How an attribute was learned: its rules, how many examples they match, where else they find values."""

    rules: int
    examples: int
    matched: int
    filled: float


@dataclass(frozen=True, slots=True)
class OddPage:
    """A page whose annotation would help, and why."""

    url: str
    doubt: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearningReport:
    """What came of learning."""

    attributes: Mapping[str, AttributeReport]
    disagreements: tuple[Disagreement, ...]
    odd_pages: tuple[OddPage, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A unit with what is known of it, and what the wrapper finds there."""

    url: str
    known: Mapping[str, tuple[str, ...]]
    record: Record


def report(wrapper: Wrapper, examples: Sequence[Judged], others: Sequence[Record]) -> LearningReport:
    """Compare what a wrapper finds with what is known."""
    disagreements = [
        _disagreement(name, judged, examples)
        for judged in examples
        for name in judged.known
        if not _is_matched(name, judged)
    ]
    attributes = {
        name: AttributeReport(
            rules=len(rules.rules),
            examples=sum(name in judged.known for judged in examples),
            matched=sum(_is_matched(name, judged) for judged in examples if name in judged.known),
            filled=rules.filled,
        )
        for name, rules in wrapper.attributes.items()
    }
    odd = sorted((_oddness(wrapper, record) for record in others), key=lambda page: (-page.doubt, page.url))
    pages: dict[str, OddPage] = {}
    for page in odd:
        if page.doubt > _DOUBT:
            pages.setdefault(page.url, page)
    return LearningReport(attributes, tuple(disagreements), tuple(pages.values())[:_MOST_ODD_UNITS])


def _is_matched(name: str, judged: Judged) -> bool:
    return set(map(fold, judged.known[name])) == set(map(fold, judged.record.values.get(name, ())))


def _disagreement(name: str, judged: Judged, examples: Sequence[Judged]) -> Disagreement:
    found = judged.record.values.get(name, ())
    rules = {origin.rule for origin in judged.record.provenance.get(name, ())}
    fits = next(
        (
            other.url
            for other in examples
            if other is not judged
            and name in other.known
            and _is_matched(name, other)
            and rules & {origin.rule for origin in other.record.provenance.get(name, ())}
        ),
        None,
    )
    return Disagreement(name, judged.url, judged.known[name], found, fits)


def _oddness(wrapper: Wrapper, record: Record) -> OddPage:
    """How much would be learned by annotating a page: what is missing or doubtful on it."""
    doubt = 0.0
    reasons = []
    units = "pages" if wrapper.record_rule is None else "records"
    confidence = record.confidence
    for name, rules in wrapper.attributes.items():
        if name not in record.values:
            # That a value is missing where most pages have one is a surprise.
            doubt += rules.filled**2
            if rules.filled > 0.5:
                reasons.append(f"no {name}, which {rules.filled:.0%} of the {units} have")
        else:
            lowest = min(confidence[name])
            doubt += 1 - lowest
            if lowest < 0.9:
                reasons.append(f"{name} has a confidence of only {lowest:.2f}")
    if not reasons and confidence:
        name = min(confidence, key=lambda name: (min(confidence[name]), name))
        reasons.append(f"{name} is the least certain, with a confidence of {min(confidence[name]):.2f}")
    return OddPage(record.url, round(doubt, 3), tuple(reasons))
