"""Compare a fresh page with its snapshot; recognise removed pages, log-in walls and redirects home.

They are told by structure alone, so that the language of a site does not
matter: what was known of them is not there, and they tell nothing of their
own, for the same page is served in the place of many.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from siteloom.core.settings import ParseSettings
from siteloom.html.visible_text import normalize, text_nodes
from siteloom.learning.value_search.text_equality import fold
from siteloom.learning.value_search.value_locations import ValueIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from siteloom.core.model import Page, Record
    from siteloom.html.parser import Element


if TYPE_CHECKING:
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
        self, page: Page, root: Element, records: tuple[Record, ...], places: ValueIndex | None = None
    ) -> None:
        """`places` is the index of the tree's texts, where there is one already."""
        self.page = page
        self.root = root
        self.records = records
        self._places = places

    @cached_property
    def places(self) -> ValueIndex:
        """Where texts stand."""
        return ValueIndex(self.root) if self._places is None else self._places

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


# A page that greets a visitor by the name of what it hides has one of the known values, but not most.
_KNOWN_SHARE = 0.5
# What a page in the place of many tells of its own is a fraction of what the pages themselves told: the
# address that was asked for, or the time of day.
_OWN_SHARE = 0.2
# A value that many pages have, such as a city, stands in menus too.
_TELLING_SHARE = 0.2
_FEW, _FEW_SHARE = 2, 0.3


class Visit(NamedTuple):
    """A page that is compared: its tree and values as they were, and how it is now."""

    before: Sequence[Values]
    old_root: Element
    now: FreshPage
    is_intact: bool


def gone_pages(visits: Sequence[Visit]) -> set[str]:
    """The URLs of those pages among some that are gone."""
    telling = telling_values([visit.before for visit in visits])
    suspects = [
        visit
        for visit in visits
        if not visit.is_intact and known_share(visit.now, visit.before, telling) <= _KNOWN_SHARE
    ]
    if len(suspects) <= min(_FEW, _FEW_SHARE * len(visits)):
        # So few raise no alarm either way, and whether they look alike cannot be seen.
        return {visit.now.page.url for visit in suspects}
    urls = [visit.now.page.url for visit in suspects]
    old = _own_characters([visit.old_root for visit in suspects], urls)
    now = _own_characters([visit.now.root for visit in suspects], urls)
    return {
        visit.now.page.url
        for visit, before, after in zip(suspects, old, now, strict=True)
        if after <= _OWN_SHARE * before
    }


def telling_values(known: Sequence[Sequence[Values]]) -> set[str]:
    """The values that tell one page from most others, of what is known of each page; all if none does."""
    count = Counter(text for before in known for text in set(_values(before)))
    telling = {text for text, pages in count.items() if pages <= max(1, _TELLING_SHARE * len(known))}
    return telling or set(count)


def known_share(page: FreshPage, before: Sequence[Values], telling: Collection[str]) -> float:
    """The share of what is known of a page, or of what tells it from others, that stands on it now."""
    known = [text for text in _values(before) if text in telling] or _values(before)
    return sum(map(page.has, known)) / len(known) if known else 0.0


def _values(before: Iterable[Values]) -> list[str]:
    return [text for known in before for texts in known.values() for text in texts]


def _own_characters(roots: Sequence[Element], urls: Sequence[str]) -> list[int]:
    """How many characters of text each page has that none of the others has; its own address is none."""
    texts = [{normalize(node.text) for node in text_nodes(root)} for root in roots]
    pages = Counter(text for found in texts for text in found)
    paths = [urlsplit(url).path for url in urls]
    return [
        sum(len(text) for text in found if pages[text] == 1 and not (len(path) > 1 and path in text))
        for found, path in zip(texts, paths, strict=True)
    ]
