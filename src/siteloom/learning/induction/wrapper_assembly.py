"""Assemble a wrapper with contracts and footprint, report on examples, and rank pages to annotate next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.core.values.dates import order_of_dates
from siteloom.learning.induction.attribute_schema import infer_properties
from siteloom.learning.value_search.text_equality import fold
from siteloom.templates.footprint import footprint
from siteloom.wrappers.value_contract import learned_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from siteloom.core.model import Page, Record
    from siteloom.wrappers.rule_features import AttributeRules
    from siteloom.wrappers.wrapper import Wrapper


_MOST_ODD_UNITS = 5
_DOUBT = 0.02  # a page with less doubt is ordinary


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An example that the wrapper contradicts although it fits the other examples.

    `fits` is the page of an example that supports the contradicting rule.
    """

    attribute: str
    url: str
    expected: tuple[str, ...]
    found: tuple[str, ...]
    fits: str | None


@dataclass(frozen=True, slots=True)
class AttributeReport:
    """The result for one attribute: numbers of rules, examples and matches; the share of filled units."""

    rules: int
    examples: int
    matched: int
    filled: float


@dataclass(frozen=True, slots=True)
class OddPage:
    """A page whose annotation would improve the wrapper, with the reasons."""

    url: str
    doubt: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearningReport:
    """The report on a learned wrapper."""

    attributes: Mapping[str, AttributeReport]
    disagreements: tuple[Disagreement, ...]
    odd_pages: tuple[OddPage, ...]


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The expected values of a unit, and the record that the wrapper finds there."""

    url: str
    expected: Mapping[str, tuple[str, ...]]
    record: Record


def report(
    wrapper: Wrapper, examples: Sequence[UnitResult], unlabelled_records: Sequence[Record]
) -> LearningReport:
    """Compare the records that a wrapper finds with the expected values."""
    disagreements = [
        _disagreement(name, unit_result, examples)
        for unit_result in examples
        for name in unit_result.expected
        if not _is_matched(name, unit_result)
    ]
    attributes = {
        name: AttributeReport(
            rules=len(rules.rules),
            examples=sum(name in unit_result.expected for unit_result in examples),
            matched=sum(
                _is_matched(name, unit_result) for unit_result in examples if name in unit_result.expected
            ),
            filled=rules.filled,
        )
        for name, rules in wrapper.attributes.items()
    }
    odd = sorted(
        (_oddness(wrapper, record) for record in unlabelled_records), key=lambda page: (-page.doubt, page.url)
    )
    pages: dict[str, OddPage] = {}
    for page in odd:
        if page.doubt > _DOUBT:
            pages.setdefault(page.url, page)
    return LearningReport(attributes, tuple(disagreements), tuple(pages.values())[:_MOST_ODD_UNITS])


def _is_matched(name: str, unit_result: UnitResult) -> bool:
    return set(map(fold, unit_result.expected[name])) == set(
        map(fold, unit_result.record.values.get(name, ()))
    )


def _disagreement(name: str, unit_result: UnitResult, examples: Sequence[UnitResult]) -> Disagreement:
    values = unit_result.record.values.get(name, ())
    rules = {origin.rule for origin in unit_result.record.provenance.get(name, ())}
    fits = next(
        (
            example.url
            for example in examples
            if example is not unit_result
            and name in example.expected
            and _is_matched(name, example)
            and rules & {origin.rule for origin in example.record.provenance.get(name, ())}
        ),
        None,
    )
    return Disagreement(
        attribute=name, url=unit_result.url, expected=unit_result.expected[name], found=values, fits=fits
    )


def _oddness(wrapper: Wrapper, record: Record) -> OddPage:
    """Rate how much the annotation of a page would teach, by missing and doubtful values."""
    doubt = 0.0
    reasons = []
    units = "pages" if wrapper.record_rule is None else "records"
    confidence = record.confidence
    for name, rules in wrapper.attributes.items():
        if name not in record.values:
            # A missing value is more surprising if most pages have one.
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


class InductionResult(NamedTuple):
    """A learned wrapper with its report; `urls` are the pages of the session that it applies to."""

    wrapper: Wrapper
    report: LearningReport
    urls: tuple[str, ...]


class _AttributeOutcome(NamedTuple):
    """The rules of an attribute, and what they find."""

    rules: AttributeRules
    is_absent_somewhere: bool
    filled: float
    texts: list[str]


AttributeCache: TypeAlias = "dict[str, tuple[_AttributeOutcome, AttributeRules]]"
"""Finalized rules by attribute, reused as long as the outcome of the rules is the same."""


def finalize(
    draft: Wrapper,
    unit_results: Sequence[UnitResult],
    example_pages: Sequence[Page],
    records_by_page: Sequence[tuple[Page, tuple[Record, ...]]],
    signature: Callable[[Page], bytes | None],
    cache: AttributeCache,
) -> InductionResult:
    """Complete a draft wrapper from the records that it finds on all pages, and report on it.

    `unit_results` are its results on the examples, `records_by_page` its records on the other pages.
    """
    extracted = [record for _, records in records_by_page for record in records]
    attributes = {}
    for name, rules in draft.attributes.items():
        texts = [text for record in extracted for text in record.values.get(name, ())]
        texts += [text for unit in unit_results for text in unit.expected.get(name, ())]
        filled = sum(name in record.values for record in extracted) / len(extracted) if extracted else 1.0
        outcome = _AttributeOutcome(
            rules=rules,
            is_absent_somewhere=any(unit.expected.get(name) == () for unit in unit_results),
            filled=filled,
            texts=texts,
        )
        if name not in cache or cache[name][0] != outcome:
            cache[name] = outcome, _finalize_attribute(outcome)
        attributes[name] = cache[name][1]
    wrapper = replace(draft, attributes=attributes)
    matching_pages = [page for page, records in records_by_page if _is_page_of_wrapper(records, wrapper)]
    pages = [*example_pages, *matching_pages]
    wrapper_footprint = footprint([(page.url, signature(page)) for page in pages])
    wrapper = replace(wrapper, footprint=wrapper_footprint)
    return InductionResult(
        wrapper, report(wrapper, unit_results, extracted), tuple(page.url for page in pages)
    )


def _finalize_attribute(outcome: _AttributeOutcome) -> AttributeRules:
    """Complete the rules of an attribute with properties inferred from the values that they find."""
    rules, is_absent_somewhere, filled, texts = outcome
    attribute = infer_properties(
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


def _is_page_of_wrapper(records: Sequence[Record], wrapper: Wrapper) -> bool:
    """Return whether the wrapper applies to a page, judged by the records that it finds there."""
    if wrapper.record_rule is not None:
        return bool(records)
    (record,) = records
    mandatory = {name for name, rules in wrapper.attributes.items() if rules.attribute.mandatory}
    if mandatory:
        return mandatory <= record.values.keys()
    return 2 * len(record.values) >= len(wrapper.attributes)
