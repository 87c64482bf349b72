"""From rules to a wrapper, by what they do on all pages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.clustering import footprint
from siteloom.learning.report import report
from siteloom.learning.schema import inferred
from siteloom.typed import order_of_dates
from siteloom.wrapper.contract import learned_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from siteloom.learning.report import Judged, LearningReport
    from siteloom.model import Page, Record
    from siteloom.wrapper.language import AttributeRules
    from siteloom.wrapper.wrapper import Wrapper


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
