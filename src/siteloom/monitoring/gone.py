"""Pages that are gone, whatever their status said: removed, behind a log-in, or sent to the home page.

They are told by structure alone, so that the language of a site does not
matter: what was known of them is not there, and they tell nothing of their
own, for the same page is served in the place of many.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from siteloom.dom import normalize, text_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from siteloom.dom import Element
    from siteloom.monitoring.comparing import FreshPage, Values

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
