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

# Of all pages so many must have values at a place, and at least these. Old values of changing attributes
# stand elsewhere by chance more often: one price in ten on the built-in guide, where pages name others' too.
_COMMON_SHARE, _COMMON_SHARE_OF_CHANGING = 0.06, 0.1
_LEAST_PAGES = 3


def in_common_places(found: Sequence[Pair], name: str, *, is_constant: bool) -> list[Pair]:
    """Those records all of whose known values of an attribute stand at places that many pages have in common.

    The place of most values counts first, then that of most of those that do not have it, and so on.
    """
    values = [
        (number, _places(pair, text)) for number, pair in enumerate(found) for text in pair.before[name]
    ]
    share = _COMMON_SHARE if is_constant else _COMMON_SHARE_OF_CHANGING
    needed = min(max(_LEAST_PAGES, share * len(found)), len(found))
    left = values
    while left:
        records = Counter(place for _, place in {(number, place) for number, one in left for place in one})
        if not records or max(records.values()) < needed:
            break
        best = max(records, key=lambda place: (records[place], place))
        left = [(number, places) for number, places in left if best not in places]
    by_chance = {number for number, _ in left}
    return [pair for number, pair in enumerate(found) if number not in by_chance]


def _places(pair: Pair, text: str) -> set[tuple[str, str, bool]]:
    """Where a value stands: the tags that lead there, and how it stands there."""
    return {(tag_path(place.element), place.target, place.is_whole) for place in pair.page.places.find(text)}
