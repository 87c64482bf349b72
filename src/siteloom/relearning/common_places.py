"""Known values where they are meant, not where they stand by chance.

That the old price of a page stands on its new version may be because another
product has that price now. A template puts what it means at the same place of
many pages, so a place that hardly any other page has in common is chance.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from siteloom.dom import tag_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.monitoring.comparing import Pair

# Of all pages so many must have values at a place, and at least these.
_COMMON_SHARE = 0.1
_LEAST_PAGES = 3


def in_common_places(found: Sequence[Pair], name: str) -> list[Pair]:
    """Those records whose known values of an attribute stand at places that many pages have in common.

    The place of most pages counts first, then that of most of those that do not have it, and so on.
    """
    left = [(pair, _places(pair, name)) for pair in found]
    needed = min(max(_LEAST_PAGES, _COMMON_SHARE * len(found)), len(found))
    common: list[Pair] = []
    while left:
        pages = Counter(place for _, places in left for place in places)
        if not pages or max(pages.values()) < needed:
            break
        best = max(pages, key=lambda place: (pages[place], place))
        common += [pair for pair, places in left if best in places]
        left = [(pair, places) for pair, places in left if best not in places]
    return common


def _places(pair: Pair, name: str) -> set[tuple[str, str, bool]]:
    """Where the values of an attribute all may stand: the tags that lead there, and how they stand there."""
    of_values = [
        {(tag_path(place.element), place.target, place.is_whole) for place in pair.page.places.find(text)}
        for text in pair.before[name]
    ]
    return set.intersection(*of_values) if of_values else set()
