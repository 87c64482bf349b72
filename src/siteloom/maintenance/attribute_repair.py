"""Repair: learn new rules for the broken attributes from known records."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ExampleError
from siteloom.core.model import Example, Footprint, Page
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.maintenance.moved_values import list_example
from siteloom.maintenance.old_wrapper_fit import TOLERANCE, FieldTest, KnownPage, field_test
from siteloom.maintenance.watched_pages import constant_attributes
from siteloom.templates.essential_paths import page_paths
from siteloom.templates.footprint import extend_footprint, footprint
from siteloom.templates.sampling import sample_order
from siteloom.templates.signature import SIGNATURE_BYTES, Signatures, signature
from siteloom.wrappers.page_layouts import MOST_EARLIER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from siteloom.maintenance.page_comparison import Pair
    from siteloom.templates.essential_paths import PathSet
    from siteloom.wrappers.wrapper import Wrapper

# More examples do not make better rules (docs/evaluation/wrappers.md), and some examples may be mistaken
# here, because no person has looked at them.
_MOST_EXAMPLES = 10
_LEAST_EXAMPLES = 3
_EXAMPLES_OF_ATTRIBUTE = 5  # a rare attribute gets up to as many examples, if as many are held back
_LEAST_HELD_BACK = 2
_ROUNDS = 3
_SIMILAR_BYTES = SIGNATURE_BYTES - 2  # a mask has up to two wildcards
_EXAMPLES_PER_ROUND = 5


class AttributeRepair(NamedTuple):
    """A wrapper with new rules, its field test on held-back pages, and why attributes have no new rules."""

    wrapper: Wrapper
    test: FieldTest
    failures: Mapping[str, str]


def repair_attributes(
    wrapper: Wrapper, broken: Sequence[str], pages: Sequence[KnownPage], test: FieldTest
) -> AttributeRepair:
    """The wrapper with new rules for broken attributes, as far as they pass the field test.

    `test` is the field test of the wrapper itself. Pages on which new rules fail show what the examples did
    not show, so another round learns from some of them.
    """
    is_list = wrapper.record_rule is not None
    examples = _examples(_usable_records(broken, test), constant_attributes(wrapper, {}), is_list=is_list)
    training = _training_examples(examples, broken, is_list=is_list)
    if not training:
        reason = f"only {len(examples)} pages still have known values"
        return AttributeRepair(wrapper, test, dict.fromkeys(broken, reason))
    best: AttributeRepair | None = None
    for _ in range(_ROUNDS):
        attempt = _attempt(wrapper, broken, pages, test, training)
        if best is None or len(attempt.failures) < len(best.failures):
            best, best_training = attempt, training
        missed = {pair.page.page.url for name in attempt.failures for pair in attempt.test.misplaced(name)}
        missed_examples = [candidate.example for candidate in examples if candidate.url in missed]
        # The others are held back.
        added = missed_examples[: min(_EXAMPLES_PER_ROUND, (len(missed_examples) + 1) // 2)]
        if not added:
            break
        training = [*training, *added]
    assert best is not None
    failures = best.failures
    if not failures:
        return best
    if is_list or len(failures) == len(broken):
        return AttributeRepair(wrapper, test, failures)
    repairable = [name for name in broken if name not in failures]
    return _attempt(wrapper, repairable, pages, test, best_training)._replace(failures=failures)


def _attempt(
    wrapper: Wrapper,
    broken: Sequence[str],
    pages: Sequence[KnownPage],
    test: FieldTest,
    training: Sequence[Example],
) -> AttributeRepair:
    """New rules from some examples, tested on the pages that are held back."""
    training_urls = {example.page.url for example in training}
    affected_urls = {pair.page.page.url for name in broken for pair in test.misplaced(name)}
    unlabelled = [page.page for page in pages if page.page.url in affected_urls - training_urls]
    names = {name for example in training for record in (example.values, *example.records) for name in record}
    schema = {name: rules.attribute for name, rules in wrapper.attributes.items() if name in names}
    try:
        learned = learn_wrapper(training, unlabelled, schema).wrapper
    except ExampleError as error:
        return AttributeRepair(wrapper, test, dict.fromkeys(broken, str(error)))
    tested_pages = [pair.page.page for pair in test.pairs]
    intact = footprint_of(page for page in tested_pages if page.url not in affected_urls)
    affected = footprint_of(page for page in tested_pages if page.url in affected_urls)
    old_layout = _with_own_signatures(wrapper, intact, list(map(bytes.fromhex, affected.accepted)))
    candidate = replace(
        _combined(wrapper, learned, broken, old_layout),
        footprint=extend_footprint(wrapper.footprint, footprint_of(tested_pages)),
    )
    held_back = [page for page in pages if page.page.url not in training_urls]
    candidate_test = field_test(candidate, held_back)
    repair = AttributeRepair(candidate, candidate_test, _failures(candidate_test, broken))
    if wrapper.record_rule is not None:
        return repair
    return _with_old_rules(wrapper, repair, broken, held_back)


def _with_old_rules(
    wrapper: Wrapper, repair: AttributeRepair, broken: Sequence[str], held_back: Sequence[KnownPage]
) -> AttributeRepair:
    """The old rules beside the new ones, where the new ones fail alone and both together pass the field test.

    A change may touch one attribute everywhere, and another on some pages only. Then no single layout is
    right.
    """
    for are_new_first in (True, False):
        if not repair.failures:
            break
        attributes = dict(repair.wrapper.attributes)
        for name in repair.failures:
            old, new = wrapper.attributes[name].rules, attributes[name].rules
            combined = (*new, *old) if are_new_first else (*old, *new)
            attributes[name] = replace(attributes[name], rules=tuple(dict.fromkeys(combined)))
        candidate = replace(repair.wrapper, attributes=attributes)
        candidate_test = field_test(candidate, held_back)
        failures = _failures(candidate_test, broken)
        if len(failures) < len(repair.failures):
            repair = AttributeRepair(candidate, candidate_test, failures)
    return repair


class _UsableRecord(NamedTuple):
    """A record with the attributes whose known values stand on the page, but are not found."""

    pair: Pair
    names: list[str]

    def values(self) -> dict[str, list[str]]:
        """The known values of these attributes."""
        return {name: list(self.pair.before[name]) for name in self.names}


def _usable_records(broken: Sequence[str], test: FieldTest) -> list[list[_UsableRecord]]:
    """The records of each page from which a broken attribute can be learned."""
    by_page: dict[str, dict[int, _UsableRecord]] = defaultdict(dict)
    for name in broken:
        for pair in test.misplaced(name):
            records = by_page[pair.page.page.url]
            records.setdefault(pair.number, _UsableRecord(pair, [])).names.append(name)
    return [list(records.values()) for records in by_page.values()]


class _UnseenExample(NamedTuple):
    """An example that no person has looked at, and the paths of its page."""

    example: Example
    paths: PathSet

    @property
    def url(self) -> str:
        return self.example.page.url


def _examples(
    usable: Iterable[Sequence[_UsableRecord]], constant: Collection[str], *, is_list: bool
) -> list[_UnseenExample]:
    """An example of each page that can be one."""
    examples: list[_UnseenExample] = []
    for records in usable:
        pair = records[0].pair
        example = (
            list_example([record.pair for record in records], constant)
            if is_list
            else Example(pair.page.page, records[0].values())
        )
        if example is not None:
            examples.append(_UnseenExample(example, page_paths(pair.page.root)))
    return examples


def _training_examples(
    candidates: Sequence[_UnseenExample], broken: Sequence[str], *, is_list: bool
) -> list[Example]:
    """The examples to learn from, so that twice as many are held back; none if there are too few."""
    examples = [candidate.example for candidate in candidates]
    count = min(_MOST_EXAMPLES, len(examples) - _LEAST_HELD_BACK, max(_LEAST_EXAMPLES, len(examples) // 3))
    if count < (1 if is_list else _LEAST_EXAMPLES):
        return []
    order = [
        pick.page for pick in sample_order([candidate.paths for candidate in candidates], len(candidates))
    ]
    with_attribute = {
        name: [number for number in order if examples[number].values.get(name)] for name in broken
    }
    chosen: list[int] = []

    def choose(numbers: Iterable[int], limit: int) -> None:
        """Choose up to `limit` more, unless that were more than half of those with some attribute."""
        for number in numbers:
            if limit <= 0:
                return
            with_number = {number, *chosen}
            is_rare = any(
                number in having and 2 * len(with_number.intersection(having)) > len(having)
                for having in with_attribute.values()
            )
            if number not in chosen and not is_rare:
                chosen.append(number)
                limit -= 1

    choose(order, count)
    for having in with_attribute.values():
        choose(having, _EXAMPLES_OF_ATTRIBUTE - len(set(having) & set(chosen)))
    return [examples[number] for number in chosen]


def _combined(wrapper: Wrapper, learned: Wrapper, names: Iterable[str], old_layout: Wrapper) -> Wrapper:
    """New rules for some attributes, the old ones for the others, and the old layout behind them."""
    learned_rules = {
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
        attributes={**wrapper.attributes, **learned_rules},
        labels=wrapper.labels | learned.labels,
        record_rule=learned.record_rule,
        parser=learned.parser,
        earlier=(old_layout, *wrapper.earlier)[:MOST_EARLIER],
    )


def _with_own_signatures(wrapper: Wrapper, intact: Footprint, affected: Sequence[bytes]) -> Wrapper:
    """The newest layout of a wrapper, with the signatures that distinguish its pages from other layouts'.

    Pages with the same signature in both layouts cannot be distinguished, and count for the next layout.
    """
    newest = wrapper.layouts[0]
    footprint_now = extend_footprint(newest.footprint, intact)
    of_earlier = {text for layout in wrapper.earlier for text in layout.footprint.accepted}
    of_next = Signatures(affected)
    own = tuple(
        text
        for text in footprint_now.accepted
        if text not in of_earlier and of_next.agreement(bytes.fromhex(text)) < _SIMILAR_BYTES
    )
    return replace(newest, footprint=replace(footprint_now, accepted=own))


def _failures(test: FieldTest, broken: Sequence[str]) -> dict[str, str]:
    """Why new rules are not good enough, by attribute."""
    failures: dict[str, str] = {}
    constant = constant_attributes(test.wrapper, {})
    for name in broken:
        correct, missed = test.correct(name), test.misplaced(name)
        odd = sum(test.is_odd(pair, name) for pair in correct)
        added = sum(len(pair.now(name)) > 1 and bool(pair.added(name)) for pair in correct)
        if not test.wrapper.attributes[name].rules:
            failures[name] = "no rule finds its known values"
        elif len(correct) < _LEAST_HELD_BACK:
            failures[name] = "too few pages are left to test its new rules on"
        elif len(missed) > TOLERANCE * (len(correct) + len(missed)):
            failures[name] = f"new rules find {len(correct)} of {len(correct) + len(missed)} known values"
        elif odd > TOLERANCE * len(correct):
            failures[name] = f"{odd} of {len(correct)} values that new rules find are unlike those known"
        elif name in constant and added > TOLERANCE * len(correct):
            failures[name] = (
                f"new rules find other values besides the known ones on {added} of {len(correct)} pages"
            )
    return failures


def footprint_of(pages: Iterable[Page]) -> Footprint:
    """The footprint of pages, each URL once."""
    by_url = {page.url: page for page in pages}
    return footprint([(url, signature(page.html)) for url, page in by_url.items()])
