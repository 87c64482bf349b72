"""The papers' field test: which old wrappers still fit, tested on fresh pages against known values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import TooMuchFound
from siteloom.core.model import Failure
from siteloom.core.settings import CHANGE_THRESHOLD
from siteloom.html.time_limit import within
from siteloom.maintenance.page_comparison import LIMITS, FreshPage, known_share, pairs, telling_values
from siteloom.maintenance.watched_pages import constant_attributes
from siteloom.templates.signature import Mask
from siteloom.wrappers.value_contract import breach

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.core.model import Cluster, Page
    from siteloom.html.parser import Element
    from siteloom.learning.value_search.value_locations import ValueIndex
    from siteloom.maintenance.page_comparison import Pair, Values
    from siteloom.wrappers.matching import NamedWrapper
    from siteloom.wrappers.wrapper import Wrapper


def reuse_candidates(cluster: Cluster, wrappers: Sequence[NamedWrapper]) -> list[NamedWrapper]:
    """The wrappers that pass the shingle test for a cluster, in the order in which to field-test them.

    The wrappers that have the mask of the cluster itself come first, then those that cover all its pages.
    Among equals, the wrapper whose mask has the most pages comes first.
    """
    ranked = []
    for number, named in enumerate(wrappers):
        masks = dict(named.wrapper.footprint.masks)
        if cluster.mask in masks:
            ranked.append((0, -masks[cluster.mask], number, named))
        elif _covers_all(named, cluster):
            ranked.append((1, -max(masks.values(), default=0), number, named))
    return [named for *_, named in sorted(ranked, key=lambda ranks: ranks[:3])]


def _covers_all(named: NamedWrapper, cluster: Cluster) -> bool:
    footprint = named.wrapper.footprint
    masks = [Mask.from_text(text) for text, _ in footprint.masks]
    accepted = set(footprint.accepted)
    return all(
        text in accepted or any(mask.covers(bytes.fromhex(text)) for mask in masks)
        for text in cluster.accepted
    )


TOLERANCE = 0.05
"""The share of known values that may be missed: records have errors, and pages change meanwhile."""

# Above this share of its values, an attribute does not merely fluctuate. The settings say when a site counts
# as changed, not how a wrapper is tested, so this is the default threshold whatever they are.
_CHANGED_SHARE = CHANGE_THRESHOLD
# A redesign may come with new prices and without some fields, but not without most.
_LEAST_KNOWN_SHARE = 1 / 3
_LEAST_RECORDS = 2


class KnownPage(NamedTuple):
    """A page as it is now, the positions of its texts, and the values of its records as they were."""

    page: Page
    root: Element
    places: ValueIndex
    known: Sequence[Values]


class FieldTest(NamedTuple):
    """The field test of a wrapper: the known records of pages, with what the wrapper finds."""

    wrapper: Wrapper
    pairs: Sequence[Pair]

    def correct(self, name: str) -> list[Pair]:
        """The records whose known values are found, or other values that the site has put in their place."""
        return [pair for pair in self._filled(name) if pair.now(name) and not pair.is_mistaken(name)]

    def misplaced(self, name: str) -> list[Pair]:
        """The records whose known values stand on the page, but are not found.

        A changing attribute must have lost its value for that: its old one may be on the page by chance.
        """
        return [
            pair
            for pair in self._filled(name)
            if self._is_failing(pair, name) and all(map(pair.page.has, pair.before[name]))
        ]

    def vanished(self, name: str) -> list[Pair]:
        """The records for which nothing is found, and whose known values do not stand on the page."""
        return [
            pair
            for pair in self._filled(name)
            if pair.is_lost(name) and not all(map(pair.page.has, pair.before[name]))
        ]

    def replaced(self, name: str) -> list[Pair]:
        """The records for which other values are found, and whose known values do not stand on the page."""
        return [
            pair
            for pair in self._filled(name)
            if pair.is_mistaken(name) and not all(map(pair.page.has, pair.before[name]))
        ]

    def is_broken(self, name: str) -> bool:
        """Whether the rules of an attribute do not find values that stand on the pages.

        If most of the values that are not found do not stand there, the others may stand there by chance.
        """
        misplaced = len(self.misplaced(name))
        absent = len(self.vanished(name)) + len(self.replaced(name))
        is_above_tolerance = misplaced > TOLERANCE * (misplaced + len(self.correct(name)))
        return misplaced >= max(_LEAST_RECORDS, absent) and is_above_tolerance

    def is_lost(self, name: str) -> bool:
        """Whether many known values are not found for any reason, or are found with odd values.

        Neither new rules nor new values explain this.
        """
        replaced = self.replaced(name) if name in self._constant else []
        failing = len(self.misplaced(name)) + len(self.vanished(name)) + len(replaced)
        # Odd values beside the known ones count as well.
        odd = sum(self.is_odd(pair, name) for pair in self._filled(name)) if name in self._constant else 0
        filled = len(self._filled(name))
        return (failing >= _LEAST_RECORDS and failing > _CHANGED_SHARE * filled) or (
            odd >= _LEAST_RECORDS and odd > TOLERANCE * filled
        )

    def broken(self) -> list[str]:
        """The attributes whose rules are broken."""
        return [name for name in self.wrapper.attributes if self.is_broken(name)]

    def all_vanished(self) -> list[str]:
        """The attributes whose values are not on the pages any more, or not where others are broken."""
        broken = self.broken()
        affected = {pair.page.page.url for name in broken for pair in self.misplaced(name)}
        of_affected = FieldTest(self.wrapper, [pair for pair in self.pairs if pair.page.page.url in affected])
        return [
            name
            for name in self.wrapper.attributes
            if name not in broken and (self.has_vanished(name) or of_affected.has_vanished(name))
        ]

    def has_vanished(self, name: str) -> bool:
        """Whether the values of an attribute are not on the pages any more."""
        gone = len(self.vanished(name))
        return gone >= _LEAST_RECORDS and gone > _CHANGED_SHARE * len(self._filled(name))

    def has_changed(self, name: str) -> bool:
        """Whether an attribute that was taken to be constant has new values that are like the old ones."""
        replaced = self.replaced(name)
        if len(replaced) < _LEAST_RECORDS or len(replaced) <= _CHANGED_SHARE * len(self._filled(name)):
            return False
        return name in self._constant and sum(
            self.is_odd(pair, name) for pair in replaced
        ) <= TOLERANCE * len(replaced)

    def is_odd(self, pair: Pair, name: str) -> bool:
        """Whether a value is unlike those that were learned from."""
        contract = self.wrapper.attributes[name].contract
        return contract is not None and any(breach(contract, text) for text in pair.added(name))

    @property
    def _constant(self) -> Sequence[str]:
        return constant_attributes(self.wrapper, {})

    def _filled(self, name: str) -> list[Pair]:
        return [pair for pair in self.pairs if pair.before.get(name)]

    def _is_failing(self, pair: Pair, name: str) -> bool:
        return pair.is_lost(name) or (name in self._constant and pair.is_mistaken(name))


def searched(wrapper: Wrapper, pages: Iterable[KnownPage]) -> list[FreshPage | None]:
    """The pages with what a wrapper finds on them; None for those past a limit."""
    return [_searched(wrapper, page) for page in pages]


def _searched(wrapper: Wrapper, page: KnownPage) -> FreshPage | None:
    try:
        find = partial(wrapper.records_of, page.page, page.root, LIMITS)
        records = within(LIMITS.max_seconds, page.page.url, find)
    except TooMuchFound:
        return None
    return None if isinstance(records, Failure) else FreshPage(page.page, page.root, records, page.places)


def field_test(
    wrapper: Wrapper, pages: Sequence[KnownPage], fresh: Sequence[FreshPage | None] | None = None
) -> FieldTest:
    """Compare what a wrapper finds on pages with the known values of the pages.

    Pages on which few known values stand are left out: they were removed, or are about something else. Pages
    that exceed a limit are left out, too. `fresh` is the result of `searched`, for callers that repeat the
    test with other known values.
    """
    constant = constant_attributes(wrapper, {})
    telling = telling_values([page.known for page in pages])
    tested_pairs: list[Pair] = []
    for page, now in zip(pages, searched(wrapper, pages) if fresh is None else fresh, strict=True):
        if now is None:
            continue
        if known_share(now, page.known, telling) >= _LEAST_KNOWN_SHARE:
            tested_pairs += pairs(page.known, now, constant, is_list=wrapper.record_rule is not None)
    return FieldTest(wrapper, tested_pairs)
