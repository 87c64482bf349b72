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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ExampleError
from siteloom.core.model import Attribute, Example, Failure, Footprint, Page, Record
from siteloom.core.sequences import evenly_spaced
from siteloom.html.parser import parse
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.maintenance.moved_values import in_common_places, list_example, near_values
from siteloom.maintenance.old_wrapper_fit import TOLERANCE, KnownPage, Tested, field_test, searched
from siteloom.maintenance.page_comparison import LIMITS, newest_pages
from siteloom.maintenance.repair_result import AttributeOutcome, Relearned, ValueDiff
from siteloom.maintenance.watched_pages import constant_attributes, contracts
from siteloom.templates.essential_paths import page_paths
from siteloom.templates.footprint import extend_footprint, footprint
from siteloom.templates.sampling import sample_order
from siteloom.templates.signature import SIGNATURE_BYTES, Signatures, signature
from siteloom.wrappers.page_layouts import MOST_EARLIER
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from siteloom.maintenance.page_comparison import Pair, Values
    from siteloom.templates.essential_paths import PathSet

MOST_PAGES = 300
"""More pages than these would tell no more, and each is parsed and searched."""

# With as many examples rules are as good as with more (docs/evaluation/wrappers.md), and some of them may be
# mistaken here, as no person has looked at them.
_MOST_EXAMPLES = 10
_LEAST_EXAMPLES = 3
_EXAMPLES_OF_ATTRIBUTE = 5  # if so many are held back, for it may be rare
_LEAST_HELD_BACK = 2
_ROUNDS = 3
_ALIKE_BYTES = SIGNATURE_BYTES - 2  # a mask has up to two wildcards
_MORE_EXAMPLES = 5
_VALUES_SHOWN = 5
# That a value is the right one because it is near the old one is a guess that a person should see.
_MOST_BY_NEARNESS = 0.85
_ANNOTATED = 5


def relearn(wrapper: Wrapper, records: Iterable[Record], fresh_pages: Iterable[Page]) -> Relearned:
    """A wrapper for pages as they are now, from the last good records of the same pages.

    The outcome is `reused`, `repaired` or `needs-annotation`.
    """
    pages = _known_pages(records, fresh_pages)
    wrapper = _with_contracts(wrapper, pages)
    fresh = searched(wrapper, pages)
    tested = field_test(wrapper, pages, fresh)
    if not tested.pairs:
        reason = "none of the pages fetched again has a record that is known, or anything of it"
        return Relearned("needs-annotation", wrapper, 0.0, {}, reason=reason)
    pages, by_nearness = _with_near_values(wrapper, pages, tested)
    if by_nearness:
        tested = field_test(wrapper, pages, fresh)
    pages = _without_chance(wrapper, pages, tested)
    tested = field_test(wrapper, pages, fresh)
    broken = tested.broken()
    vanished = tested.all_vanished()
    changing = [name for name in wrapper.attributes if tested.has_changed(name) or name in by_nearness]
    wrapper = _with_attributes(wrapper, changing, partial(replace, constant=False))
    wrapper = _with_attributes(wrapper, vanished, partial(replace, mandatory=False))
    seen = _footprint_of(pair.page.page for pair in tested.pairs)
    reused = replace(wrapper, footprint=extend_footprint(wrapper.footprint, seen))
    repair = _repaired(wrapper, broken, pages, tested) if broken else _Repair(reused, tested, {})
    attributes = {
        name: _attribute_outcome(name, broken, vanished, tested, repair) for name in wrapper.attributes
    }
    left = [name for name, found in attributes.items() if found.state in ("unrepaired", "vanished")]
    repaired = [found for found in attributes.values() if found.state == "repaired"]
    return Relearned(
        "needs-annotation" if left else "repaired" if broken else "reused",
        repair.wrapper,
        min(_confidence(repaired), _MOST_BY_NEARNESS if by_nearness else 1.0)
        if repaired or not left
        else 0.0,
        attributes,
        _value_diffs(tested, repair, pages, dict.fromkeys([*broken, *left])),
        tuple(_to_annotate(tested, left)) if left else (),
        "; ".join(f"{name}: {attributes[name].reason}" for name in left),
        tuple(dict.fromkeys(pair.page.page.url for pair in tested.pairs)),
    )


def _confidence(repaired: Sequence[AttributeOutcome]) -> float:
    """The share of values held back that new rules find, by the rule of succession; of the least certain."""
    return min(((found.right + 1) / (found.tested + 2) for found in repaired), default=1.0)


def _known_pages(records: Iterable[Record], fresh_pages: Iterable[Page]) -> list[KnownPage]:
    """The newest fresh version of each page of which records are known."""
    known: dict[str, list[Values]] = defaultdict(list)
    for record in records:
        known[record.url].append(record.values)
    fresh = newest_pages(page for page in fresh_pages if page.url in known)
    parsed = ((page, parse(page, LIMITS)) for page in evenly_spaced(list(fresh.values()), MOST_PAGES))
    return [
        KnownPage(page, root, ValueIndex(root), known[page.url])
        for page, root in parsed
        if not isinstance(root, Failure)
    ]


def _with_contracts(wrapper: Wrapper, pages: Iterable[KnownPage]) -> Wrapper:
    """The wrapper, knowing what the values of the last good records are like."""
    learned = contracts(wrapper, (values for page in pages for values in page.known))
    attributes = {
        name: replace(rules, contract=learned.get(name)) for name, rules in wrapper.attributes.items()
    }
    return replace(wrapper, attributes=attributes)


def _with_near_values(
    wrapper: Wrapper, pages: Sequence[KnownPage], tested: Tested
) -> tuple[list[KnownPage], list[str]]:
    """The pages with new values in the place of those that have vanished, where these can be told.

    Also the names of these attributes.
    """
    if wrapper.record_rule is not None:
        return list(pages), []
    found: dict[str, dict[str, str | None]] = {}
    for name in tested.all_vanished():
        lost = tested.vanished(name)
        if values := near_values(wrapper.attributes[name], name, lost):
            # What is lost, and has no new value that can be told, is out of date.
            found[name] = {pair.page.page.url: values.get(pair.page.page.url) for pair in lost}
    return [_renewed(page, found) for page in pages] if found else list(pages), list(found)


def _without_chance(wrapper: Wrapper, pages: Sequence[KnownPage], tested: Tested) -> list[KnownPage]:
    """The pages without known values that stand on them only by chance."""
    by_chance: dict[int, set[str]] = defaultdict(set)
    constant = constant_attributes(wrapper, {})
    for name in wrapper.attributes:
        misplaced = tested.misplaced(name)
        meant = {id(pair.before) for pair in in_common_places(misplaced, name, is_constant=name in constant)}
        for pair in misplaced:
            if id(pair.before) not in meant:
                by_chance[id(pair.before)].add(name)
    return [
        page._replace(
            known=[
                {name: texts for name, texts in values.items() if name not in by_chance[id(values)]}
                for values in page.known
            ],
        )
        for page in pages
    ]


def _renewed(page: KnownPage, found: Mapping[str, Mapping[str, str | None]]) -> KnownPage:
    """A page with the new values of attributes; what is out of date is left out."""
    url = page.page.url
    fresh = {name: new[url] for name, new in found.items() if url in new}
    known = [
        {
            **{name: texts for name, texts in values.items() if name not in fresh},
            **{name: (text,) for name, text in fresh.items() if text is not None},
        }
        for values in page.known
    ]
    return page._replace(known=known)


def _with_attributes(
    wrapper: Wrapper, names: Iterable[str], changed: Callable[[Attribute], Attribute]
) -> Wrapper:
    """The wrapper, knowing something else of some attributes."""
    attributes = dict(wrapper.attributes)
    for name in names:
        rules = attributes[name]
        attributes[name] = replace(rules, attribute=changed(rules.attribute))
    return replace(wrapper, attributes=attributes)


def _footprint_of(pages: Iterable[Page]) -> Footprint:
    by_url = {page.url: page for page in pages}
    return footprint([(url, signature(page.html)) for url, page in by_url.items()])


class _Repair(NamedTuple):
    """A wrapper with new rules, what it finds on pages that were held back, and why some have none."""

    wrapper: Wrapper
    tested: Tested
    failed: Mapping[str, str]


def _repaired(wrapper: Wrapper, broken: Sequence[str], pages: Sequence[KnownPage], tested: Tested) -> _Repair:
    """The wrapper with new rules for what is broken, as far as they pass the field test.

    Pages on which new rules fail show what the examples did not, so these are learned from in another round.
    """
    usable = _usable_pages(broken, tested)
    constant = constant_attributes(wrapper, {})
    examples = _examples(usable, constant, is_list=wrapper.record_rule is not None)
    training = _training(examples, broken, is_list=wrapper.record_rule is not None)
    if not training:
        return _Repair(
            wrapper, tested, dict.fromkeys(broken, f"only {len(examples)} pages still have known values")
        )
    best: _Repair | None = None
    for _ in range(_ROUNDS):
        attempt = _attempt(wrapper, broken, pages, tested, training)
        if best is None or len(attempt.failed) < len(best.failed):
            best, taught = attempt, training
        missed = {pair.page.page.url for name in attempt.failed for pair in attempt.tested.misplaced(name)}
        usable_missed = [one.example for one in examples if one.example.page.url in missed]
        more = usable_missed[: min(_MORE_EXAMPLES, (len(usable_missed) + 1) // 2)]  # the others are held back
        if not more:
            break
        training = [*training, *more]
    assert best is not None
    failed = best.failed
    if not failed:
        return best
    if wrapper.record_rule is not None or len(failed) == len(broken):
        return _Repair(wrapper, tested, failed)
    mended = [name for name in broken if name not in failed]
    return _attempt(wrapper, mended, pages, tested, taught)._replace(failed=failed)


def _attempt(
    wrapper: Wrapper,
    broken: Sequence[str],
    pages: Sequence[KnownPage],
    tested: Tested,
    training: Sequence[Example],
) -> _Repair:
    """New rules from some examples, tried on the pages that are held back."""
    taught = {example.page.url for example in training}
    affected = {pair.page.page.url for name in broken for pair in tested.misplaced(name)}
    others = [page.page for page in pages if page.page.url in affected - taught]
    names = {name for example in training for record in (example.values, *example.records) for name in record}
    schema = {name: rules.attribute for name, rules in wrapper.attributes.items() if name in names}
    try:
        learned = learn_wrapper(training, others, schema).wrapper
    except ExampleError as error:
        return _Repair(wrapper, tested, dict.fromkeys(broken, str(error)))
    seen = [pair.page.page for pair in tested.pairs]
    before = _with_own_signatures(
        wrapper,
        _footprint_of(page for page in seen if page.url not in affected),
        [bytes.fromhex(one) for one in _footprint_of(page for page in seen if page.url in affected).accepted],
    )
    candidate = replace(
        _joined(wrapper, learned, broken, before),
        footprint=extend_footprint(wrapper.footprint, _footprint_of(seen)),
    )
    held_back = [page for page in pages if page.page.url not in taught]
    found = field_test(candidate, held_back)
    repair = _Repair(candidate, found, _failures(found, broken))
    return repair if wrapper.record_rule is not None else _with_old_rules(wrapper, repair, broken, held_back)


def _with_old_rules(
    wrapper: Wrapper, repair: _Repair, broken: Sequence[str], held_back: Sequence[KnownPage]
) -> _Repair:
    """The old rules beside the new ones, where these alone fail and both together pass the field test.

    A change may touch one attribute everywhere, and another on some pages only. Then no one layout is right.
    """
    for are_new_first in (True, False):
        if not repair.failed:
            break
        attributes = dict(repair.wrapper.attributes)
        for name in repair.failed:
            old, new = wrapper.attributes[name].rules, attributes[name].rules
            both = (*new, *old) if are_new_first else (*old, *new)
            attributes[name] = replace(attributes[name], rules=tuple(dict.fromkeys(both)))
        candidate = replace(repair.wrapper, attributes=attributes)
        found = field_test(candidate, held_back)
        failed = _failures(found, broken)
        if len(failed) < len(repair.failed):
            repair = _Repair(candidate, found, failed)
    return repair


class _Usable(NamedTuple):
    """A record with the attributes whose known values stand on the page, but are not found."""

    pair: Pair
    names: list[str]

    def values(self) -> dict[str, list[str]]:
        """Those known values."""
        return {name: list(self.pair.before[name]) for name in self.names}


def _usable_pages(broken: Sequence[str], tested: Tested) -> list[list[_Usable]]:
    """The records of each page from which something that is broken can be learned."""
    usable: dict[str, dict[int, _Usable]] = defaultdict(dict)
    for name in broken:
        for pair in tested.misplaced(name):
            of_page = usable[pair.page.page.url]
            of_page.setdefault(id(pair.before), _Usable(pair, [])).names.append(name)
    return [list(found.values()) for found in usable.values()]


class _Known(NamedTuple):
    """An example that no person has looked at, and the paths of its page."""

    example: Example
    paths: PathSet


def _examples(
    usable: Iterable[Sequence[_Usable]], constant: Collection[str], *, is_list: bool
) -> list[_Known]:
    """An example of each page that can be one."""
    examples: list[_Known] = []
    for found in usable:
        pair = found[0].pair
        example = (
            list_example([one.pair for one in found], constant)
            if is_list
            else Example(pair.page.page, found[0].values())
        )
        if example is not None:
            examples.append(_Known(example, page_paths(pair.page.root)))
    return examples


def _training(known: Sequence[_Known], broken: Sequence[str], *, is_list: bool) -> list[Example]:
    """The examples to learn from, so that twice as many are held back; none if there are too few."""
    examples = [one.example for one in known]
    count = min(_MOST_EXAMPLES, len(examples) - _LEAST_HELD_BACK, max(_LEAST_EXAMPLES, len(examples) // 3))
    if count < (1 if is_list else _LEAST_EXAMPLES):
        return []
    order = [pick.page for pick in sample_order([one.paths for one in known], len(known))]
    having = {name: [number for number in order if examples[number].values.get(name)] for name in broken}
    chosen: list[int] = []

    def take(numbers: Iterable[int], most: int) -> None:
        """Choose up to so many more, unless that would be more than half of what has some attribute."""
        for number in numbers:
            if most <= 0:
                return
            taken = {number, *chosen}
            is_rare = any(
                number in found and 2 * len(taken.intersection(found)) > len(found)
                for found in having.values()
            )
            if number not in chosen and not is_rare:
                chosen.append(number)
                most -= 1

    take(order, count)
    for found in having.values():
        take(found, _EXAMPLES_OF_ATTRIBUTE - len(set(found) & set(chosen)))
    return [examples[number] for number in chosen]


def _joined(wrapper: Wrapper, learned: Wrapper, names: Iterable[str], before: Wrapper) -> Wrapper:
    """New rules for some attributes, the old ones for the others, and behind them the layout before."""
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
        earlier=(before, *wrapper.earlier)[:MOST_EARLIER],
    )


def _with_own_signatures(wrapper: Wrapper, intact: Footprint, affected: Sequence[bytes]) -> Wrapper:
    """The newest layout of a wrapper, with signatures that tell its pages from those of other layouts.

    Pages that look the same in both layouts cannot be told so, and count for the one that follows.
    """
    newest = wrapper.layouts[0]
    footprint = extend_footprint(newest.footprint, intact)
    others = {found for layout in wrapper.earlier for found in layout.footprint.accepted}
    following = Signatures(affected)
    own = tuple(
        found
        for found in footprint.accepted
        if found not in others and following.agreement(bytes.fromhex(found)) < _ALIKE_BYTES
    )
    return replace(newest, footprint=replace(footprint, accepted=own))


def _failures(tested: Tested, broken: Sequence[str]) -> dict[str, str]:
    """Why new rules are not good enough, by attribute."""
    failed: dict[str, str] = {}
    constant = constant_attributes(tested.wrapper, {})
    for name in broken:
        right, wrong = tested.right(name), tested.misplaced(name)
        odd = sum(tested.is_odd(pair, name) for pair in right)
        more = sum(len(pair.now(name)) > 1 and bool(pair.added(name)) for pair in right)
        if not tested.wrapper.attributes[name].rules:
            failed[name] = "no rule finds its known values"
        elif len(right) < _LEAST_HELD_BACK:
            failed[name] = "too few pages are left to test its new rules on"
        elif len(wrong) > TOLERANCE * (len(right) + len(wrong)):
            failed[name] = f"new rules find {len(right)} of {len(right) + len(wrong)} known values"
        elif odd > TOLERANCE * len(right):
            failed[name] = f"{odd} of {len(right)} values that new rules find are unlike those known"
        elif name in constant and more > TOLERANCE * len(right):
            failed[name] = (
                f"new rules find other values besides the known ones on {more} of {len(right)} pages"
            )
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
    if tested.is_lost(name):
        return AttributeOutcome("unrepaired", right, among, "known values are neither found nor on the pages")
    return AttributeOutcome("kept", right, among)


def _value_diffs(
    tested: Tested, repair: _Repair, pages: Iterable[KnownPage], names: Iterable[str]
) -> tuple[ValueDiff, ...]:
    """Some values of attributes that were broken, before and after."""
    wrong = {
        name: [pair for pair in tested.pairs if pair.before.get(name) and not pair.is_kept(name)][
            :_VALUES_SHOWN
        ]
        for name in names
    }
    urls = {pair.page.page.url for found in wrong.values() for pair in found}
    now = field_test(repair.wrapper, [page for page in pages if page.page.url in urls])
    after = {id(pair.before): pair for pair in now.pairs}
    return tuple(
        ValueDiff(
            pair.page.page.url,
            name,
            tuple(pair.before[name]),
            pair.now(name),
            after[id(pair.before)].now(name) if id(pair.before) in after else (),
        )
        for name, found in wrong.items()
        for pair in found
    )


def _to_annotate(tested: Tested, names: Sequence[str]) -> Iterable[Example]:
    """The pages that a person should look at first, with all that is known and stands on them."""
    wrong: dict[str, list[Pair]] = defaultdict(list)
    for pair in tested.pairs:
        if any(not pair.is_kept(name) for name in names if pair.before.get(name)):
            wrong[pair.page.page.url].append(pair)
    found = list(wrong.values())
    order = sample_order([page_paths(of_page[0].page.root) for of_page in found], _ANNOTATED)
    for pick in order:
        of_page = found[pick.page]
        page = of_page[0].page.page
        if tested.wrapper.record_rule is None:
            yield Example(page, _on_page(of_page[0]))
        else:
            yield Example(page, records=[_on_page(pair) for pair in of_page])


def _on_page(pair: Pair) -> dict[str, list[str]]:
    known = {name: list(texts) for name, texts in pair.before.items() if texts}
    return {name: texts for name, texts in known.items() if all(map(pair.page.has, texts))}
