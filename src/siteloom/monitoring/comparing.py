"""A page that was fetched again, held against what is known of it."""

from __future__ import annotations

import re
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from siteloom.config import ParseSettings
from siteloom.learning.places import PlaceIndex
from siteloom.learning.seen_texts import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from siteloom.dom import Element
    from siteloom.model import Page, Record

    Values = Mapping[str, tuple[str, ...]]

LIMITS = ParseSettings().learned
"""Those of the pages that are compared, for it may be asked where on them any text stands."""

_WORD = re.compile(r"\w+")
# What has at least half of its words in common with what was there before was edited, not mistaken.
_EDITED = 0.5
# For each value that was known so many may be found: lists grow, but not to all that a menu offers.
_MOST_OTHERS = 3


class FreshPage:
    """A page as it is now: what a wrapper finds on it, and where any text stands on it."""

    def __init__(
        self, page: Page, root: Element, records: tuple[Record, ...], places: PlaceIndex | None = None
    ) -> None:
        """`places` is the index of the tree's texts, where there is one already."""
        self.page = page
        self.root = root
        self.records = records
        self._places = places

    @cached_property
    def places(self) -> PlaceIndex:
        """Where texts stand."""
        return PlaceIndex(self.root) if self._places is None else self._places

    def has(self, text: str) -> bool:
        """Whether a text stands anywhere on the page."""
        return bool(fold(text)) and bool(self.places.find(text))


class Pair(NamedTuple):
    """A record as it was known, and as it is found now; `after` is None if a list has it no more."""

    page: FreshPage
    before: Values
    after: Record | None

    def now(self, attribute: str) -> tuple[str, ...]:
        """The values of an attribute as they are found now."""
        return () if self.after is None else self.after.values.get(attribute, ())

    def is_lost(self, attribute: str) -> bool:
        """Whether there were values, and none are found now."""
        return bool(self.before.get(attribute)) and not self.now(attribute)

    def is_kept(self, attribute: str) -> bool:
        """Whether the values found now are those that were known, or half of several, and not many others.

        Of several, those that are missing must not stand on the page any more.
        """
        known = {_comparable(text): text for text in self.before[attribute]}
        now = set(map(_comparable, self.now(attribute)))
        kept = len(known.keys() & now)
        if 2 * kept < len(known) or _MOST_OTHERS * kept < len(now):
            return False
        return not any(self._stands(text) for folded, text in known.items() if folded not in now)

    def added(self, attribute: str) -> list[str]:
        """The values found now that were not known."""
        known = set(map(_comparable, self.before.get(attribute, ())))
        return [text for text in self.now(attribute) if _comparable(text) not in known]

    def is_edited(self, attribute: str) -> bool:
        """Whether the site itself has other values now: the old are gone, and the new are much like them.

        Numbers alone are never alike: the phone of another page has the same area code.
        """
        known, now = (_words(texts) for texts in (self.before[attribute], self.now(attribute)))
        has_words = not all(map(str.isdigit, known & now))
        is_alike = has_words and len(known & now) >= _EDITED * len(known | now)
        return is_alike and not self.still_stands(attribute)

    def is_mistaken(self, attribute: str) -> bool:
        """Whether other values are found now than were known."""
        if not self.before.get(attribute) or not self.now(attribute):
            return False
        return not self.is_kept(attribute) and not self.is_edited(attribute)

    def still_stands(self, attribute: str) -> bool:
        """Whether the known values are on the page as they were, each a text or a thing of its own."""
        known = self.before.get(attribute, ())
        return bool(known) and all(map(self._stands, known))

    def _stands(self, text: str) -> bool:
        return any(place.is_whole for place in self.page.places.find(text))

    def finding(self, attribute: str) -> str:
        """What came of the old values."""
        for text in self.before.get(attribute, ()):
            if places := self.page.places.find(text):
                return f"{text!r} still stands at {places[0].node}"
        if self.after is not None and (refused := self.after.withheld.get(attribute)):
            return f"{refused[0].text!r} was withheld: {refused[0].reason}"
        return "no longer on the page"


def pairs(before: Sequence[Values], page: FreshPage, constant: Sequence[str], *, is_list: bool) -> list[Pair]:
    """What was known of a page with what is found now, record by record.

    Records of a list are told by the constant attribute that tells most of them apart; those that
    the page does not have any more are left out. On a page without any record all are lost.
    """
    if not is_list:
        after = page.records[0] if page.records else None
        return [Pair(page, known, after) for known in before]
    if not page.records:
        return [Pair(page, known, None) for known in before]
    distinct = {name: len({known[name] for known in before if known.get(name)}) for name in constant}
    if not distinct:
        return []
    key = max(distinct, key=lambda name: distinct[name])
    now = {_key(record.values, key): record for record in reversed(page.records)}
    return [
        Pair(page, known, after)
        for known in before
        if known.get(key) and ((after := now.get(_key(known, key))) or all(map(page.has, known[key])))
    ]


def newest_pages(pages: Iterable[Page]) -> dict[str, Page]:
    """The newest version of each page by its URL; the last one if they are equally old, or no one knows."""
    newest: dict[str, Page] = {}
    for page in pages:
        known = newest.get(page.url)
        if known is None or not _is_older(page, known):
            newest[page.url] = page
    return newest


def _is_older(page: Page, other: Page) -> bool:
    if page.fetched_at is None or other.fetched_at is None:
        return False
    return _in_utc(page.fetched_at) < _in_utc(other.fetched_at)


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _key(values: Values, name: str) -> tuple[str, ...]:
    return tuple(map(_comparable, values.get(name, ())))


def _comparable(text: str) -> str:
    return fold(text).casefold()


def _words(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(_comparable(text))}
