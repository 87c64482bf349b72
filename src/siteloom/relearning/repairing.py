"""Reuse and repair: a wrapper for the new version of a site, with no one annotating a page.

What is known of the pages are the records of their last good versions. If the
old wrapper still finds them, it is reused. Else the known values are looked
for on the new versions, as those of examples are, and the rules that are
broken are learned anew from them; on the pages that are held back, the
new rules must find what is known. The old ones stay as an earlier layout, for
a site may serve both for some time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.clustering import footprint, united
from siteloom.dom import parse
from siteloom.errors import ExampleError
from siteloom.learning import learn_wrapper
from siteloom.model import Example, Failure
from siteloom.monitoring.bellwethers import contracts
from siteloom.relearning.field_test import TOLERANCE, KnownPage, Tested, field_test
from siteloom.relearning.outcome import AttributeOutcome, Relearned, ValueDiff
from siteloom.sampling import sample_order
from siteloom.signature import signature
from siteloom.spacing import evenly_spaced
from siteloom.template import page_paths
from siteloom.wrapper.layouts import MOST_EARLIER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.model import Footprint, Page, Record
    from siteloom.monitoring.comparing import Pair, Values
    from siteloom.wrapper import Wrapper

MOST_PAGES = 300
"""More pages than these would tell no more, and each is parsed and searched."""

# With as many examples rules are as good as with more (docs/evaluation/wrappers.md), and some of them may be
# mistaken here, as no person has looked at them.
_MOST_EXAMPLES = 10
_LEAST_EXAMPLES = 3
_LEAST_HELD_BACK = 2
_MOST_RECORDS = 5
_VALUES_SHOWN = 5
_ANNOTATED = 5


def relearn(wrapper: Wrapper, records: Iterable[Record], fresh_pages: Iterable[Page]) -> Relearned:
    """A wrapper for pages as they are now, from the last good records of the same pages.

    The outcome is `reused`, `repaired` or `needs-annotation`.
    """
    pages = _known_pages(records, fresh_pages)
    wrapper = _with_contracts(wrapper, pages)
    tested = field_test(wrapper, pages)
    if not tested.pairs:
        reason = "none of the pages fetched again has a record that is known, or anything of it"
        return Relearned("needs-annotation", wrapper, 0.0, {}, reason=reason)
    broken = [name for name in wrapper.attributes if tested.is_broken(name)]
    vanished = [name for name in wrapper.attributes if name not in broken and tested.has_vanished(name)]
    wrapper = _with_changing(wrapper, [name for name in wrapper.attributes if tested.has_changed(name)])
    wrapper = replace(wrapper, footprint=united([wrapper.footprint, _footprint_of(tested)]))
    repair = _repaired(wrapper, broken, pages, tested) if broken else _Repair(wrapper, tested, {})
    attributes = {
        name: _attribute_outcome(name, broken, vanished, tested, repair) for name in wrapper.attributes
    }
    left = [name for name, found in attributes.items() if found.state in ("unrepaired", "vanished")]
    repaired = [found for found in attributes.values() if found.state == "repaired"]
    return Relearned(
        "needs-annotation" if left else "repaired" if broken else "reused",
        repair.wrapper,
        _confidence(repaired),
        attributes,
        _value_diffs(tested, repair, [*broken, *vanished]),
        tuple(_to_annotate(tested, left)) if left else (),
        "; ".join(f"{name}: {attributes[name].reason}" for name in left),
    )


def _confidence(repaired: Sequence[AttributeOutcome]) -> float:
    """The share of values held back that new rules find, by the rule of succession."""
    if not repaired:
        return 1.0
    return (1 + sum(found.right for found in repaired)) / (2 + sum(found.tested for found in repaired))


def _known_pages(records: Iterable[Record], fresh_pages: Iterable[Page]) -> list[KnownPage]:
    """The newest fresh version of each page of which records are known."""
    known: dict[str, list[Values]] = defaultdict(list)
    for record in records:
        known[record.url].append(record.values)
    fresh = {page.url: page for page in fresh_pages if page.url in known}
    parsed = ((page, parse(page)) for page in evenly_spaced(list(fresh.values()), MOST_PAGES))
    return [KnownPage(page, root, known[page.url]) for page, root in parsed if not isinstance(root, Failure)]


def _with_contracts(wrapper: Wrapper, pages: Iterable[KnownPage]) -> Wrapper:
    """The wrapper, knowing what the values of the last good records are like."""
    learned = contracts(wrapper, (values for page in pages for values in page.known))
    attributes = {
        name: replace(rules, contract=learned.get(name)) for name, rules in wrapper.attributes.items()
    }
    return replace(wrapper, attributes=attributes)


def _with_changing(wrapper: Wrapper, names: Iterable[str]) -> Wrapper:
    """The wrapper, knowing that the values of some attributes do not stay as they are."""
    attributes = dict(wrapper.attributes)
    for name in names:
        rules = attributes[name]
        attributes[name] = replace(rules, attribute=replace(rules.attribute, constant=False))
    return replace(wrapper, attributes=attributes)


def _footprint_of(tested: Tested) -> Footprint:
    pages = {pair.page.page.url: pair.page.page for pair in tested.pairs}
    return footprint([(url, signature(page.html)) for url, page in pages.items()])


class _Repair(NamedTuple):
    """A wrapper with new rules, what it finds on pages that were held back, and why some have none."""

    wrapper: Wrapper
    tested: Tested
    failed: Mapping[str, str]


def _repaired(wrapper: Wrapper, broken: Sequence[str], pages: Sequence[KnownPage], tested: Tested) -> _Repair:
    """The wrapper with new rules for what is broken, as far as they pass the field test."""
    usable = _usable_pages(broken, tested)
    training = _training(usable, broken, is_list=wrapper.record_rule is not None)
    if training is None:
        return _Repair(
            wrapper, tested, dict.fromkeys(broken, f"only {len(usable)} pages still have known values")
        )
    taught = {example.page.url for example in training}
    affected = {pair.page.page.url for name in broken for pair in tested.misplaced(name)}
    others = [page.page for page in pages if page.page.url in affected - taught]
    schema = {name: wrapper.attributes[name].attribute for name in wrapper.attributes}
    named = {
        name for example in training for name in (*example.values, *(n for r in example.records for n in r))
    }
    try:
        learned = learn_wrapper(
            training, others, {name: known for name, known in schema.items() if name in named}
        ).wrapper
    except ExampleError as error:
        return _Repair(wrapper, tested, dict.fromkeys(broken, str(error)))
    held_back = [page for page in pages if page.page.url not in taught]
    candidate = _joined(wrapper, learned, broken)
    failed = _failures(candidate, broken, held_back)
    if failed and wrapper.record_rule is None and len(failed) < len(broken):
        candidate = _joined(wrapper, learned, [name for name in broken if name not in failed])
    elif failed:
        return _Repair(wrapper, tested, failed)
    return _Repair(candidate, field_test(candidate, held_back), failed)


def _usable_pages(broken: Sequence[str], tested: Tested) -> dict[str, list[Pair]]:
    """The records, by page, of which something that is broken stands on the page."""
    usable: dict[str, dict[int, Pair]] = defaultdict(dict)
    for name in broken:
        for pair in tested.misplaced(name):
            usable[pair.page.page.url][id(pair.before)] = pair
    return {url: list(found.values()) for url, found in usable.items()}


def _training(
    usable: Mapping[str, Sequence[Pair]], broken: Sequence[str], *, is_list: bool
) -> list[Example] | None:
    """Examples of some pages, so that as many are held back; None if there are too few pages."""
    examples = [_list_example(found) if is_list else _example(found[0], broken) for found in usable.values()]
    roots = [found[0].page.root for found in usable.values()]
    count = min(_MOST_EXAMPLES, len(examples) - _LEAST_HELD_BACK, max(_LEAST_EXAMPLES, len(examples) // 3))
    if count < (1 if is_list else _LEAST_EXAMPLES):
        return None
    order = [pick.page for pick in sample_order([page_paths(root) for root in roots], len(roots))]
    order.sort(key=lambda number: -len(examples[number].values))
    chosen = order[:count]
    for name in broken:
        having = [number for number in order if examples[number].values.get(name)]
        missing = min(_LEAST_EXAMPLES, len(having) // 2) - len(set(having) & set(chosen))
        chosen += [number for number in having if number not in chosen][: max(0, missing)]
    return [examples[number] for number in chosen]


def _example(pair: Pair, names: Iterable[str]) -> Example:
    """A page with those known values that stand on it."""
    known = {name: pair.before[name] for name in names if pair.before.get(name)}
    on_page = {name: list(texts) for name, texts in known.items() if all(map(pair.page.has, texts))}
    return Example(pair.page.page, on_page)


def _list_example(found: Sequence[Pair]) -> Example:
    records = [_example(pair, pair.before).values for pair in found[:_MOST_RECORDS]]
    return Example(found[0].page.page, records=records)


def _joined(wrapper: Wrapper, learned: Wrapper, names: Iterable[str]) -> Wrapper:
    """The newly learned rules of some attributes, the old ones of the others; the old layout behind them."""
    fresh = {
        name: replace(
            learned.attributes[name],
            contract=wrapper.attributes[name].contract or learned.attributes[name].contract,
            shapes=tuple(dict.fromkeys((*wrapper.attributes[name].shapes, *learned.attributes[name].shapes))),
        )
        for name in names
        if name in learned.attributes
    }
    return replace(
        wrapper,
        attributes={**wrapper.attributes, **fresh},
        labels=wrapper.labels | learned.labels,
        record_rule=learned.record_rule,
        parser=learned.parser,
        earlier=wrapper.layouts[:MOST_EARLIER],
    )


def _failures(candidate: Wrapper, broken: Sequence[str], held_back: Sequence[KnownPage]) -> dict[str, str]:
    """Why new rules are not good enough, by attribute."""
    tested = field_test(candidate, held_back)
    failed: dict[str, str] = {}
    for name in broken:
        right, wrong = tested.right(name), tested.misplaced(name)
        odd = sum(tested.is_odd(pair, name) for pair in right)
        if not candidate.attributes[name].rules:
            failed[name] = "no rule finds its known values"
        elif len(right) < _LEAST_HELD_BACK:
            failed[name] = "too few pages are left to test its new rules on"
        elif len(wrong) > TOLERANCE * (len(right) + len(wrong)):
            failed[name] = f"new rules find {len(right)} of {len(right) + len(wrong)} known values"
        elif odd > 0.3 * len(right):
            failed[name] = f"{odd} of {len(right)} values that new rules find are unlike those known"
    return failed


def _attribute_outcome(
    name: str, broken: Sequence[str], vanished: Sequence[str], tested: Tested, repair: _Repair
) -> AttributeOutcome:
    right = len(repair.tested.right(name))
    among = right + len(repair.tested.misplaced(name))
    if name in repair.failed:
        return AttributeOutcome("unrepaired", right, among, repair.failed[name])
    if name in broken:
        return AttributeOutcome("repaired", right, among)
    if name in vanished:
        gone = len(tested.vanished(name))
        return AttributeOutcome("vanished", right, among, f"{gone} known values are on no page any more")
    if tested.has_changed(name):
        return AttributeOutcome("changing", right, among)
    return AttributeOutcome("kept", right, among)


def _value_diffs(tested: Tested, repair: _Repair, names: Iterable[str]) -> tuple[ValueDiff, ...]:
    """Some values of attributes that were broken, before and after."""
    shown: list[ValueDiff] = []
    for name in names:
        wrong = [pair for pair in tested.pairs if pair.before.get(name) and not pair.is_kept(name)]
        for pair in wrong[:_VALUES_SHOWN]:
            now = repair.wrapper.records(pair.page.root, pair.page.page.url)
            after = next((record.values.get(name, ()) for record in now), ())
            shown.append(ValueDiff(pair.page.page.url, name, tuple(pair.before[name]), pair.now(name), after))
    return tuple(shown)


def _to_annotate(tested: Tested, names: Sequence[str]) -> Iterable[Example]:
    """The pages that a person should look at first, with all that is known and stands on them."""
    wrong = [pair for pair in tested.pairs if any(not pair.is_kept(n) for n in names if pair.before.get(n))]
    order = sample_order([page_paths(pair.page.root) for pair in wrong], _ANNOTATED)
    for pick in order:
        pair = wrong[pick.page]
        yield _example(pair, pair.before)
