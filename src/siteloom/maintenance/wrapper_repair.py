"""relearn(): reuse an old wrapper, repair it, or ask for annotation; the order of the attempts.

What is known of the pages are the records of their last good versions. If the
old wrapper still finds these values, it is reused. Otherwise the known values
are located on the new versions of the pages, and the broken rules are learned
again from them; on pages that are held back, the new rules must find the
known values. The old rules stay as an earlier layout, because a site may
serve both layouts for some time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from siteloom.core.model import Attribute, Example, Failure, Page, Record
from siteloom.core.sequences import evenly_spaced
from siteloom.html.parser import parse
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.maintenance.attribute_repair import AttributeRepair, footprint_of, repair_attributes
from siteloom.maintenance.moved_values import in_common_places, near_values
from siteloom.maintenance.old_wrapper_fit import FieldTest, KnownPage, field_test, searched
from siteloom.maintenance.page_comparison import LIMITS, newest_pages
from siteloom.maintenance.repair_result import AttributeOutcome, Relearned, ValueDifference
from siteloom.maintenance.watched_pages import constant_attributes, contracts
from siteloom.templates.essential_paths import page_paths
from siteloom.templates.footprint import extend_footprint
from siteloom.templates.sampling import sample_order
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from siteloom.maintenance.page_comparison import Pair, Values

MOST_PAGES = 300
"""More pages than these would not add information, and each is parsed and searched."""

_VALUES_SHOWN = 5
# That a value is right because it is near the old one is a guess that a person should check.
_MOST_BY_NEARNESS = 0.85
_PAGES_TO_ANNOTATE = 5


def relearn(wrapper: Wrapper, records: Iterable[Record], fresh_pages: Iterable[Page]) -> Relearned:
    """A wrapper for pages as they are now, from the last good records of the same pages.

    The outcome is `reused`, `repaired` or `needs-annotation`.
    """
    pages = _known_pages(records, fresh_pages)
    wrapper = _with_contracts(wrapper, pages)
    fresh = searched(wrapper, pages)
    test = field_test(wrapper, pages, fresh)
    if not test.pairs:
        reason = "none of the pages fetched again has a record that is known, or anything of it"
        return Relearned("needs-annotation", wrapper, 0.0, {}, reason=reason)
    pages, by_nearness = _with_near_values(wrapper, pages, test)
    if by_nearness:
        test = field_test(wrapper, pages, fresh)
    pages = _without_chance(wrapper, pages, test)
    test = field_test(wrapper, pages, fresh)
    broken = test.broken()
    vanished = test.all_vanished()
    changing = [name for name in wrapper.attributes if test.has_changed(name) or name in by_nearness]
    wrapper = _with_attributes(wrapper, changing, partial(replace, constant=False))
    wrapper = _with_attributes(wrapper, vanished, partial(replace, mandatory=False))
    tested = footprint_of(pair.page.page for pair in test.pairs)
    reused = replace(wrapper, footprint=extend_footprint(wrapper.footprint, tested))
    repair = repair_attributes(wrapper, broken, pages, test) if broken else AttributeRepair(reused, test, {})
    attributes = {
        name: _attribute_outcome(name, broken, vanished, test, repair) for name in wrapper.attributes
    }
    lost = [name for name, outcome in attributes.items() if outcome.state in ("unrepaired", "vanished")]
    repaired = [outcome for outcome in attributes.values() if outcome.state == "repaired"]
    confidence = min(_confidence(repaired), _MOST_BY_NEARNESS if by_nearness else 1.0)
    return Relearned(
        outcome="needs-annotation" if lost else "repaired" if broken else "reused",
        wrapper=repair.wrapper,
        confidence=confidence if repaired or not lost else 0.0,
        attributes=attributes,
        values=_value_differences(test, repair, pages, dict.fromkeys([*broken, *lost])),
        annotate=tuple(_pages_to_annotate(test, lost)) if lost else (),
        reason="; ".join(f"{name}: {attributes[name].reason}" for name in lost),
        pages=tuple(dict.fromkeys(pair.page.page.url for pair in test.pairs)),
    )


def _confidence(repaired: Sequence[AttributeOutcome]) -> float:
    """The share of held-back values that new rules find, by the rule of succession; of the least certain."""
    return min(((outcome.right + 1) / (outcome.tested + 2) for outcome in repaired), default=1.0)


def _known_pages(records: Iterable[Record], fresh_pages: Iterable[Page]) -> list[KnownPage]:
    """The newest fresh version of each page that has known records."""
    values: dict[str, list[Values]] = defaultdict(list)
    for record in records:
        values[record.url].append(record.values)
    fresh = newest_pages(page for page in fresh_pages if page.url in values)
    parsed = ((page, parse(page, LIMITS)) for page in evenly_spaced(list(fresh.values()), MOST_PAGES))
    return [
        KnownPage(page, root, ValueIndex(root), values[page.url])
        for page, root in parsed
        if not isinstance(root, Failure)
    ]


def _with_contracts(wrapper: Wrapper, pages: Iterable[KnownPage]) -> Wrapper:
    """The wrapper with contracts from the values of the last good records."""
    learned = contracts(wrapper, (values for page in pages for values in page.known))
    attributes = {
        name: replace(rules, contract=learned.get(name)) for name, rules in wrapper.attributes.items()
    }
    return replace(wrapper, attributes=attributes)


def _with_near_values(
    wrapper: Wrapper, pages: Sequence[KnownPage], test: FieldTest
) -> tuple[list[KnownPage], list[str]]:
    """The pages with new values in place of vanished ones, where these can be recognised.

    Also returns the names of these attributes.
    """
    if wrapper.record_rule is not None:
        return list(pages), []
    renewed: dict[str, dict[str, str | None]] = {}
    for name in test.all_vanished():
        vanished = test.vanished(name)
        if values := near_values(wrapper.attributes[name], name, vanished):
            # A vanished value without a recognisable new one is out of date.
            renewed[name] = {pair.page.page.url: values.get(pair.page.page.url) for pair in vanished}
    return [_renewed(page, renewed) for page in pages] if renewed else list(pages), list(renewed)


def _without_chance(wrapper: Wrapper, pages: Sequence[KnownPage], test: FieldTest) -> list[KnownPage]:
    """The pages without known values that stand on them only by chance."""
    by_chance: dict[tuple[str, int], set[str]] = defaultdict(set)
    constant = constant_attributes(wrapper, {})
    for name in wrapper.attributes:
        misplaced = test.misplaced(name)
        common = in_common_places(misplaced, name, is_constant=name in constant)
        for key in {pair.key for pair in misplaced} - {pair.key for pair in common}:
            by_chance[key].add(name)
    return [
        page._replace(
            known=[
                {
                    name: texts
                    for name, texts in values.items()
                    if name not in by_chance.get((page.page.url, number), ())
                }
                for number, values in enumerate(page.known)
            ],
        )
        for page in pages
    ]


def _renewed(page: KnownPage, renewed: Mapping[str, Mapping[str, str | None]]) -> KnownPage:
    """A page with the new values of attributes; values that are out of date are left out."""
    url = page.page.url
    current = {name: texts[url] for name, texts in renewed.items() if url in texts}
    return page._replace(
        known=[
            {
                **{name: texts for name, texts in values.items() if name not in current},
                **{name: (text,) for name, text in current.items() if text is not None},
            }
            for values in page.known
        ]
    )


def _with_attributes(
    wrapper: Wrapper, names: Iterable[str], changed: Callable[[Attribute], Attribute]
) -> Wrapper:
    """The wrapper with other properties of some attributes."""
    attributes = dict(wrapper.attributes)
    for name in names:
        rules = attributes[name]
        attributes[name] = replace(rules, attribute=changed(rules.attribute))
    return replace(wrapper, attributes=attributes)


def _attribute_outcome(
    name: str, broken: Sequence[str], vanished: Sequence[str], test: FieldTest, repair: AttributeRepair
) -> AttributeOutcome:
    correct = len(repair.test.correct(name))
    tested = correct + len(repair.test.misplaced(name))
    if name in repair.failures:
        return AttributeOutcome("unrepaired", correct, tested, repair.failures[name])
    if name in broken:
        return AttributeOutcome("repaired", correct, tested)
    if name in vanished:
        count = len(test.vanished(name))
        return AttributeOutcome("vanished", correct, tested, f"{count} known values are on no page any more")
    if test.has_changed(name):
        return AttributeOutcome("changing", correct, tested)
    if test.is_lost(name):
        reason = "known values are neither found nor on the pages"
        return AttributeOutcome("unrepaired", correct, tested, reason)
    return AttributeOutcome("kept", correct, tested)


def _value_differences(
    test: FieldTest, repair: AttributeRepair, pages: Iterable[KnownPage], names: Iterable[str]
) -> tuple[ValueDifference, ...]:
    """Some values of attributes that were broken, before and after the repair."""
    failing = {
        name: [pair for pair in test.pairs if pair.before.get(name) and not pair.is_unchanged(name)][
            :_VALUES_SHOWN
        ]
        for name in names
    }
    urls = {pair.page.page.url for pairs in failing.values() for pair in pairs}
    repaired = field_test(repair.wrapper, [page for page in pages if page.page.url in urls])
    by_key = {pair.key: pair for pair in repaired.pairs}
    return tuple(
        ValueDifference(
            url=pair.page.page.url,
            attribute=name,
            known=tuple(pair.before[name]),
            before=pair.now(name),
            after=by_key[pair.key].now(name) if pair.key in by_key else (),
        )
        for name, pairs in failing.items()
        for pair in pairs
    )


def _pages_to_annotate(test: FieldTest, names: Sequence[str]) -> Iterable[Example]:
    """The pages that a person should annotate first, with all known values that stand on them."""
    failing: dict[str, list[Pair]] = defaultdict(list)
    for pair in test.pairs:
        if any(not pair.is_unchanged(name) for name in names if pair.before.get(name)):
            failing[pair.page.page.url].append(pair)
    pages = list(failing.values())
    order = sample_order([page_paths(pairs[0].page.root) for pairs in pages], _PAGES_TO_ANNOTATE)
    for pick in order:
        pairs = pages[pick.page]
        page = pairs[0].page.page
        if test.wrapper.record_rule is None:
            yield Example(page, _standing_values(pairs[0]))
        else:
            yield Example(page, records=[_standing_values(pair) for pair in pairs])


def _standing_values(pair: Pair) -> dict[str, list[str]]:
    """The known values of a record that stand on its page."""
    values = {name: list(texts) for name, texts in pair.before.items() if texts}
    return {name: texts for name, texts in values.items() if all(map(pair.page.has, texts))}
