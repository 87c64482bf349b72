"""From rules to a wrapper with contract and footprint; the report on its examples, and which page to
annotate next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.core.values.dates import order_of_dates
from siteloom.learning.induction.attribute_schema import inferred
from siteloom.learning.value_search.text_equality import fold
from siteloom.templates.footprint import footprint
from siteloom.wrappers.value_contract import learned_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from siteloom.core.model import Page, Record
    from siteloom.wrappers.rule_features import AttributeRules
    from siteloom.wrappers.wrapper import Wrapper


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


class Learned(NamedTuple):
    """A wrapper and what came of learning it; `urls` are those of the pages seen that it is for."""

    wrapper: Wrapper
    report: LearningReport
    urls: tuple[str, ...]


class _Seen(NamedTuple):
    """An attribute's rules, and what they do."""

    rules: AttributeRules
    is_absent_somewhere: bool
    filled: float
    texts: list[str]


Settled: TypeAlias = "dict[str, tuple[_Seen, AttributeRules]]"
"""How attributes were finished before: as long as their rules do the same, nothing is read out of it anew."""


def finished(
    draft: Wrapper,
    judged: Sequence[Judged],
    example_pages: Sequence[Page],
    found_on: Sequence[tuple[Page, tuple[Record, ...]]],
    signature: Callable[[Page], bytes | None],
    settled: Settled,
) -> Learned:
    """The wrapper with what it does on all pages, seen as it will be used.

    `judged` is what it finds in the examples, and `found_on` what on the other pages.
    """
    extracted = [record for _, found in found_on for record in found]
    attributes = {}
    for name, rules in draft.attributes.items():
        texts = [text for record in extracted for text in record.values.get(name, ())]
        texts += [text for one in judged for text in one.known.get(name, ())]
        filled = sum(name in record.values for record in extracted) / len(extracted) if extracted else 1.0
        seen = _Seen(rules, any(one.known.get(name) == () for one in judged), filled, texts)
        if name not in settled or settled[name][0] != seen:
            settled[name] = seen, _settled(seen)
        attributes[name] = settled[name][1]
    wrapper = replace(draft, attributes=attributes)
    alike = [page for page, found in found_on if _does_belong(found, wrapper)]
    pages = [*example_pages, *alike]
    found_footprint = footprint([(page.url, signature(page)) for page in pages])
    wrapper = replace(wrapper, footprint=found_footprint)
    return Learned(wrapper, report(wrapper, judged, extracted), tuple(page.url for page in pages))


def _settled(seen: _Seen) -> AttributeRules:
    """The rules of an attribute, with what is read out of the values that they find."""
    rules, is_absent_somewhere, filled, texts = seen
    attribute = inferred(
        rules.attribute,
        is_multi=bool(rules.attribute.multi),
        is_absent_somewhere=is_absent_somewhere,
        filled=filled,
        texts=texts,
        sources={rule.target for rule in rules.rules},
    )
    day_first = order_of_dates(texts) if attribute.type == "date" else None
    return replace(
        rules,
        attribute=attribute,
        filled=round(filled, 4),
        day_first=day_first,
        contract=learned_contract(texts, attribute.type),
    )


def _does_belong(found: Sequence[Record], wrapper: Wrapper) -> bool:
    """Whether a page is one of those that the wrapper is for, by the records that it finds there."""
    if wrapper.record_rule is not None:
        return bool(found)
    (record,) = found
    mandatory = {name for name, rules in wrapper.attributes.items() if rules.attribute.mandatory}
    if mandatory:
        return mandatory <= record.values.keys()
    return 2 * len(record.values) >= len(wrapper.attributes)
