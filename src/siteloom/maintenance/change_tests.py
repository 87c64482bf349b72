"""The three tests for a changed site: structure changed, value missing, value changed.

The papers call them the shingle test, the null test and the value test. They
run on fresh versions of the watched pages, the bellwethers of a wrapper.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from siteloom.core.model import Change, ChangeTest, Evidence, Failure, Page
from siteloom.core.settings import CHANGE_THRESHOLD
from siteloom.html.parser import parse
from siteloom.maintenance.page_comparison import (
    LIMITS,
    FreshPage,
    Pair,
    Visit,
    gone_pages,
    newest_pages,
    pairs,
)
from siteloom.maintenance.watched_pages import (
    Bellwether,
    Past,
    Watch,
    constant_attributes,
    is_complete,
    learned_past,
    make_bellwether,
)
from siteloom.wrappers.matching import Matcher, NamedWrapper
from siteloom.wrappers.value_contract import Contract, breach

# What earlier visits showed takes the place of the default when they are so many; but no threshold
# is lower than half the default, for a single odd page is no change, nor so high that none could be found.
_ENOUGH_PAST = 50
_DEVIATIONS = 3
_HIGHEST_THRESHOLD = 0.9
# One page alone shows what happened to it, not to its site.
_LEAST_PAGES = 2
_LEAST_PAGES_OF_RULE = 3
# A rule that fails on nearly all pages where it found the value is dead, however few these are.
_DEAD_RULE = 0.8
_MOST_EVIDENCE = 5
# That a site has other values now is one thing; that what a page still shows is not found is another, and
# needs to be seen on fewer pages.
_CERTAIN_SHARE = 1 / 3
# Values that were nearly all different and now are nearly all the same.
_VARIED, _ALL_THE_SAME = 0.3, 0.7


@dataclass(frozen=True, slots=True)
class Checkup:
    """What fresh versions of watched pages have shown, each page by its URL.

    `compared` pages were compared with what they were; `gone` were removed, `unread` could not be parsed,
    `missing` were not fetched. `drifted` pages have another structure than the wrapper knows, but give the
    same values. `watch` is what to compare with the next time: it has what was learned, and the pages on
    which all is well as they are now.
    """

    changes: tuple[Change, ...]
    watch: Watch
    compared: tuple[str, ...]
    gone: tuple[str, ...]
    unread: tuple[str, ...]
    missing: tuple[str, ...]
    drifted: tuple[str, ...]


def monitor(watch: Watch, fresh_pages: Iterable[Page], threshold: float = CHANGE_THRESHOLD) -> list[Change]:
    """The changes that pages fetched again show; none if all is well.

    A failure on more than the share `threshold` of the pages is a change. Pages that are not watched are
    ignored. `siteloom.maintenance.change_tests.check` also returns which pages were removed or have drifted,
    and the watch for the next time.
    """
    return list(check(watch, fresh_pages, threshold).changes)


def check(
    watch: Watch,
    fresh_pages: Iterable[Page],
    threshold: float = CHANGE_THRESHOLD,
    removed: Collection[str] = (),
) -> Checkup:
    """Compare watched pages with their fresh versions.

    A failure on more than the share `threshold` of the pages is a change. `removed` are the URLs of pages
    that their server does not have any more.
    """
    urls = [bellwether.page.url for bellwether in watch.bellwethers]
    watched_urls = frozenset(urls)
    fresh = newest_pages(page for page in fresh_pages if page.url in watched_urls)
    matcher = Matcher([NamedWrapper(watch.name, None, watch.wrapper)])
    looks: list[_Look] = []
    unread = []
    for bellwether in watch.bellwethers:
        if bellwether.page.url in fresh:
            look = _look(watch, matcher, bellwether, fresh[bellwether.page.url])
            if look is None:
                unread.append(bellwether.page.url)
            else:
                looks.append(look)
    gone = gone_pages([look.visit for look in looks])
    gone |= {url for url in urls if url in removed}
    live = [look for look in looks if look.url not in gone]
    live_pairs = [pair for look in live for pair in look.pairs]
    tests = _Tests(watch, live_pairs, threshold)
    failing = {look.url for look in live if any(tests.fails(pair) for pair in look.pairs)}
    uncovered = [look for look in live if not look.is_covered]
    changes = tuple(tests.changes([look for look in uncovered if look.url in failing], len(live)))
    return Checkup(
        changes=changes,
        watch=_updated(watch, live, failing, live_pairs, is_healthy=not changes),
        compared=tuple(look.url for look in live),
        gone=tuple(sorted(gone)),
        unread=tuple(unread),
        missing=tuple(url for url in urls if url not in fresh and url not in gone),
        drifted=tuple(look.url for look in uncovered if look.url not in failing),
    )


class _Look(NamedTuple):
    """A watched page compared with its fresh version; `is_covered` if the wrapper's footprint covers it."""

    visit: Visit
    pairs: Sequence[Pair]
    is_covered: bool

    @property
    def url(self) -> str:
        return self.visit.now.page.url


def _look(watch: Watch, matcher: Matcher, bellwether: Bellwether, page: Page) -> _Look | None:
    wrapper = watch.wrapper
    reading, old_root = wrapper.read(page, limits=LIMITS), parse(bellwether.page, LIMITS)
    if isinstance(reading, Failure) or isinstance(old_root, Failure):
        return None
    now = FreshPage(page, *reading)
    constant = constant_attributes(wrapper, watch.past)
    page_pairs = pairs(bellwether.records, now, constant, is_list=wrapper.record_rule is not None)
    is_intact = is_complete(wrapper, now.records) and not any(
        pair.is_mistaken(name) for pair in page_pairs for name in constant
    )
    # Pages that the footprint never covered say nothing when it still does not cover them.
    is_covered = matcher.match(page).failure is None or matcher.match(bellwether.page).failure is not None
    return _Look(Visit(bellwether.records, old_root, now, is_intact), page_pairs, is_covered)


class _Failing(NamedTuple):
    """An attribute that fails a test: the pairs that fail it, their share, and why each fails."""

    name: str
    pairs: Sequence[Pair]
    share: float
    why: Callable[[Pair], str]


class _Tests:
    """All tests on the records of live pages."""

    def __init__(self, watch: Watch, live_pairs: Sequence[Pair], threshold: float) -> None:
        self._watch = watch
        self._pairs = live_pairs
        self._threshold = threshold
        self._attributes = list(watch.wrapper.attributes)
        self._constant = frozenset(constant_attributes(watch.wrapper, watch.past))
        self._least_pages = min(_LEAST_PAGES, len(watch.bellwethers))
        self._rules = {
            (bellwether.page.url, number): rules
            for bellwether in watch.bellwethers
            for number, rules in enumerate(bellwether.rules)
        }

    def fails(self, pair: Pair) -> bool:
        """Whether something is wrong with a record, whatever the others are like."""
        return any(
            pair.is_lost(name) or self._is_mistaken(pair, name) or self._breach(pair, name)
            for name in self._attributes
        )

    def changes(self, uncovered: Sequence[_Look], live: int) -> Iterator[Change]:
        """What fails on too many pages."""
        if live and len(uncovered) >= self._least_pages and len(uncovered) / live > self._threshold:
            yield self._uncovered_change(uncovered, live)
        if lost := [failing for name in self._attributes if (failing := self._lost(name))]:
            yield self._change("null", lost)
        wrong = [
            failing
            for name in self._attributes
            if (failing := self._mistaken(name) or self._breaching(name) or self._repeating(name))
        ]
        if wrong:
            yield self._change("value", wrong)

    def _is_mistaken(self, pair: Pair, name: str) -> bool:
        return name in self._constant and pair.is_mistaken(name)

    def _breach(self, pair: Pair, name: str) -> str | None:
        """How a new value is unlike all before it."""
        contract: Contract | None = self._watch.contracts.get(name)
        if contract is None or pair.after is None or not pair.now(name):
            return None
        texts = pair.now(name)
        typed = pair.after.typed.get(name) or (None,) * len(texts)
        added = pair.added(name)
        breaches = (
            breach(contract, text, kind) for text, kind in zip(texts, typed, strict=True) if text in added
        )
        return next(filter(None, breaches), None)

    def _lost(self, name: str) -> _Failing | None:
        filled = [pair for pair in self._pairs if pair.before.get(name)]
        past = self._watch.past.get(name, Past())
        threshold = _learned_threshold(past.lost, past.filled, len(filled), self._threshold)
        return self._failing(
            name, filled, lambda pair: pair.is_lost(name), threshold, lambda pair: pair.finding(name)
        )

    def _mistaken(self, name: str) -> _Failing | None:
        if name not in self._constant:
            return None
        compared = [pair for pair in self._pairs if pair.before.get(name) and pair.now(name)]
        past = self._watch.past.get(name, Past())
        threshold = _learned_threshold(past.mistaken, past.compared, len(compared), self._threshold)
        return self._failing(
            name, compared, lambda pair: pair.is_mistaken(name), threshold, lambda pair: pair.finding(name)
        )

    def _breaching(self, name: str) -> _Failing | None:
        filled = [pair for pair in self._pairs if pair.now(name)]
        return self._failing(
            name,
            filled,
            lambda pair: self._breach(pair, name) is not None,
            self._threshold,
            lambda pair: self._breach(pair, name) or "",
        )

    def _repeating(self, name: str) -> _Failing | None:
        """The same value everywhere, where nearly each page had its own."""
        contract = self._watch.contracts.get(name)
        filled = [pair for pair in self._pairs if pair.now(name)]
        if contract is None or contract.commonest > _VARIED or len(filled) < _LEAST_PAGES_OF_RULE:
            return None
        count = Counter(pair.now(name) for pair in filled)
        value, pages = count.most_common(1)[0]
        count_before = Counter(pair.before.get(name) for pair in filled)
        if pages < _ALL_THE_SAME * len(filled) or count_before[value] >= pages:
            return None
        repeating = [pair for pair in filled if pair.now(name) == value]
        return _Failing(name, repeating, pages / len(filled), lambda _: "the same value on nearly all pages")

    def _failing(
        self,
        name: str,
        among: Sequence[Pair],
        does_fail: Callable[[Pair], bool],
        threshold: float,
        why: Callable[[Pair], str],
    ) -> _Failing | None:
        """The pairs that fail, if their share is too large among all or among those of one rule."""
        failing = [pair for pair in among if does_fail(pair)]
        if _page_count(failing) < self._least_pages:
            return None
        misplaced = [pair for pair in failing if pair.still_stands(name)]
        is_certain = _page_count(misplaced) >= _LEAST_PAGES_OF_RULE and len(
            misplaced
        ) > _CERTAIN_SHARE * threshold * len(among)
        if is_certain or len(failing) > threshold * len(among):
            return _Failing(name, failing, len(failing) / len(among), why)
        of_rule: dict[str, list[Pair]] = defaultdict(list)
        for pair in among:
            of_rule[self._rules[pair.key].get(name, "")].append(pair)
        for rule_pairs in of_rule.values():
            dead = [pair for pair in rule_pairs if does_fail(pair)]
            is_enough = _page_count(dead) >= _LEAST_PAGES_OF_RULE and len(rule_pairs) < len(among)
            if is_enough and len(dead) > max(threshold, _DEAD_RULE) * len(rule_pairs):
                return _Failing(name, failing, len(failing) / len(among), why)
        return None

    def _change(self, test: ChangeTest, failing: Sequence[_Failing]) -> Change:
        """All attributes that fail the same test; the share is that of the worst."""
        evidence = [
            Evidence(
                pair.page.page.url,
                attribute.name,
                pair.before.get(attribute.name, ()),
                pair.now(attribute.name),
                attribute.why(pair),
            )
            for attribute in failing
            for pair in attribute.pairs[: max(1, _MOST_EVIDENCE // len(failing))]
        ]
        return Change(
            self._watch.name,
            test,
            tuple(attribute.name for attribute in failing),
            round(max(attribute.share for attribute in failing), 4),
            tuple(evidence),
        )

    def _uncovered_change(self, uncovered: Sequence[_Look], live: int) -> Change:
        broken = [
            name
            for name in self._attributes
            if any(
                pair.is_lost(name) or self._is_mistaken(pair, name) or self._breach(pair, name)
                for look in uncovered
                for pair in look.pairs
            )
        ]
        evidence = [
            Evidence(look.url, "", (), (), "unlike the pages that the wrapper is for")
            for look in uncovered[:_MOST_EVIDENCE]
        ]
        share = round(len(uncovered) / live, 4)
        return Change(self._watch.name, "shingle", tuple(broken), share, tuple(evidence))


def _page_count(failing: Iterable[Pair]) -> int:
    return len({pair.page.page.url for pair in failing})


def _learned_threshold(failed: int, among: int, now: int, default: float) -> float:
    """What is more than chance after what earlier visits have shown."""
    if among < _ENOUGH_PAST or not now:
        return default
    usual = (failed + 1) / (among + 2)  # the rule of succession
    unusual = usual + _DEVIATIONS * math.sqrt(usual * (1 - usual) / now)
    return min(max(unusual, default / 2), _HIGHEST_THRESHOLD)


def _updated(
    watch: Watch,
    live: Sequence[_Look],
    failing: Iterable[str],
    live_pairs: Sequence[Pair],
    *,
    is_healthy: bool,
) -> Watch:
    """The watch for the next time: with pages as they are now, unless something is wrong with them."""
    if not is_healthy:
        return watch
    ill = set(failing)
    # A page that the wrapper does not cover stays as it was: else it would pass for covered the next time.
    fresh: Mapping[str, Bellwether] = {
        look.url: make_bellwether(look.visit.now.page, look.visit.now.records)
        for look in live
        if look.url not in ill and look.is_covered
    }
    return replace(
        watch,
        bellwethers=tuple(fresh.get(bellwether.page.url, bellwether) for bellwether in watch.bellwethers),
        past=learned_past(watch.past, watch.wrapper, live_pairs),
    )
