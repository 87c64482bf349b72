"""Compare a fresh page with its snapshot; recognise removed pages, log-in walls and redirects home.

Removed pages are recognised by structure alone, so that the language of a site
does not matter: their known values are not there, and they have no texts of
their own, because the same page is served in place of many.
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
"""The parse limits of compared pages: any text may be located on them, as on pages that are learned from."""

_WORD = re.compile(r"\w+")
# A value that has at least half of its words in common with the old one was edited, not mistaken.
_EDITED = 0.5
# For each known value so many may be found: lists grow, but not to everything that a menu offers.
_MOST_OTHERS = 3


class FreshPage:
    """A page as it is now: the records that a wrapper finds on it, and the positions of its texts."""

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
        """The positions of the texts."""
        return ValueIndex(self.root) if self._places is None else self._places

    def has(self, text: str) -> bool:
        """Whether a text stands anywhere on the page."""
        return bool(fold(text)) and bool(self.places.find(text))


class Pair(NamedTuple):
    """A record as it was known, and as it is found now; `after` is None if it is not found any more.

    `number` is its position among the known records of its page.
    """

    page: FreshPage
    before: Values
    after: Record | None
    number: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What identifies the known record: the URL of its page, and its number."""
        return self.page.page.url, self.number

    def now(self, attribute: str) -> tuple[str, ...]:
        """The values of an attribute as they are found now."""
        return () if self.after is None else self.after.values.get(attribute, ())

    def is_lost(self, attribute: str) -> bool:
        """Whether there were values, and none are found now."""
        return bool(self.before.get(attribute)) and not self.now(attribute)

    def is_unchanged(self, attribute: str) -> bool:
        """Whether the values found now are those that were known, or half of several, and not many others.

        Of several, those that are missing must not stand on the page any more.
        """
        known_texts = {_comparable(text): text for text in self.before[attribute]}
        now = set(map(_comparable, self.now(attribute)))
        common = len(known_texts.keys() & now)
        if 2 * common < len(known_texts) or _MOST_OTHERS * common < len(now):
            return False
        return not any(self._stands(text) for folded, text in known_texts.items() if folded not in now)

    def added(self, attribute: str) -> list[str]:
        """The values found now that were not known."""
        known_texts = set(map(_comparable, self.before.get(attribute, ())))
        return [text for text in self.now(attribute) if _comparable(text) not in known_texts]

    def is_edited(self, attribute: str) -> bool:
        """Whether the site itself has other values now: the old ones are removed, and the new ones similar.

        Numbers alone are never similar: the phone of another page has the same area code.
        """
        old_words, new_words = (_words(texts) for texts in (self.before[attribute], self.now(attribute)))
        common = old_words & new_words
        has_words = not all(map(str.isdigit, common))
        is_similar = has_words and len(common) >= _EDITED * len(old_words | new_words)
        return is_similar and not self.still_stands(attribute)

    def is_mistaken(self, attribute: str) -> bool:
        """Whether other values are found now than were known."""
        if not self.before.get(attribute) or not self.now(attribute):
            return False
        return not self.is_unchanged(attribute) and not self.is_edited(attribute)

    def still_stands(self, attribute: str) -> bool:
        """Whether the known values are on the page as they were, each as a whole text."""
        known_texts = self.before.get(attribute, ())
        return bool(known_texts) and all(map(self._stands, known_texts))

    def _stands(self, text: str) -> bool:
        return any(place.is_whole for place in self.page.places.find(text))

    def finding(self, attribute: str) -> str:
        """What happened to the old values."""
        for text in self.before.get(attribute, ()):
            if places := self.page.places.find(text):
                return f"{text!r} still stands at {places[0].node}"
        if self.after is not None and (refused := self.after.withheld.get(attribute)):
            return f"{refused[0].text!r} was withheld: {refused[0].reason}"
        return "no longer on the page"


def pairs(
    known_records: Sequence[Values], page: FreshPage, constant: Sequence[str], *, is_list: bool
) -> list[Pair]:
    """The known records of a page, each with the record that is found now.

    Records of a list are identified by the constant attribute that distinguishes most of them; those that the
    page does not have any more are left out. On a page without any record all are lost.
    """
    if not is_list or not page.records:
        record = page.records[0] if page.records else None
        return [Pair(page, values, record, number) for number, values in enumerate(known_records)]
    distinct = {
        name: len({values[name] for values in known_records if values.get(name)}) for name in constant
    }
    if not distinct:
        return []
    key = max(distinct, key=lambda name: distinct[name])
    now = {_key(record.values, key): record for record in reversed(page.records)}
    return [
        Pair(page, values, record, number)
        for number, values in enumerate(known_records)
        if values.get(key) and ((record := now.get(_key(values, key))) or all(map(page.has, values[key])))
    ]


def newest_pages(pages: Iterable[Page]) -> dict[str, Page]:
    """The newest version of each page by its URL; the last one if their times are equal or unknown."""
    newest: dict[str, Page] = {}
    for page in pages:
        newest_page = newest.get(page.url)
        if newest_page is None or not _is_older(page, newest_page):
            newest[page.url] = page
    return newest


def _is_older(page: Page, other_page: Page) -> bool:
    if page.fetched_at is None or other_page.fetched_at is None:
        return False
    return _in_utc(page.fetched_at) < _in_utc(other_page.fetched_at)


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
# The texts of its own that a page in place of many has are a fraction of what the pages themselves had: the
# address that was requested, or the time of day.
_OWN_SHARE = 0.2
# A value that many pages have, such as a city, stands in menus too.
_TELLING_SHARE = 0.2
_MOST_UNCOMPARED, _MOST_UNCOMPARED_SHARE = 2, 0.3


class Visit(NamedTuple):
    """A page that is compared: its tree and values as they were, and how it is now."""

    before: Sequence[Values]
    old_root: Element
    now: FreshPage
    is_intact: bool


def gone_pages(visits: Sequence[Visit]) -> set[str]:
    """The URLs of the pages that were removed."""
    telling = telling_values([visit.before for visit in visits])
    suspects = [
        visit
        for visit in visits
        if not visit.is_intact and known_share(visit.now, visit.before, telling) <= _KNOWN_SHARE
    ]
    if len(suspects) <= min(_MOST_UNCOMPARED, _MOST_UNCOMPARED_SHARE * len(visits)):
        # So few raise no alarm either way, and whether they are similar cannot be decided.
        return {visit.now.page.url for visit in suspects}
    urls = [visit.now.page.url for visit in suspects]
    old = _own_characters([visit.old_root for visit in suspects], urls)
    now = _own_characters([visit.now.root for visit in suspects], urls)
    return {
        visit.now.page.url
        for visit, old_count, new_count in zip(suspects, old, now, strict=True)
        if new_count <= _OWN_SHARE * old_count
    }


def telling_values(records_by_page: Sequence[Sequence[Values]]) -> set[str]:
    """The known values that distinguish a page from most others; all values if none does."""
    count = Counter(text for records in records_by_page for text in set(_values(records)))
    most_pages = max(1, _TELLING_SHARE * len(records_by_page))
    telling = {text for text, pages in count.items() if pages <= most_pages}
    return telling or set(count)


def known_share(page: FreshPage, known_records: Sequence[Values], telling: Collection[str]) -> float:
    """The share of the known values that stand on a page now; of the telling ones if it has any."""
    values = _values(known_records)
    texts = [text for text in values if text in telling] or values
    return sum(map(page.has, texts)) / len(texts) if texts else 0.0


def _values(records: Iterable[Values]) -> list[str]:
    return [text for values in records for texts in values.values() for text in texts]


def _own_characters(roots: Sequence[Element], urls: Sequence[str]) -> list[int]:
    """How many characters of text each page has that no other page has, without its own address."""
    texts_by_page = [{normalize(node.text) for node in text_nodes(root)} for root in roots]
    pages = Counter(text for texts in texts_by_page for text in texts)
    paths = [urlsplit(url).path for url in urls]
    return [
        sum(len(text) for text in texts if pages[text] == 1 and not (len(path) > 1 and path in text))
        for texts, path in zip(texts_by_page, paths, strict=True)
    ]
