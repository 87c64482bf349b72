"""Values that have changed together with the layout, found by what they were: a price near the old price.

The old value of a changing attribute may not stand on the new page. But where
nearly every page has, at one and the same place, one value of its type that
is near the old one of that very page, this can hardly be anything else.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from siteloom.dom import normalize, tag_path, text_nodes
from siteloom.errors import MissingExtra
from siteloom.typed import Price, Rating, typed_value
from siteloom.wrapper.contract import breach
from siteloom.wrapper.language import shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.monitoring.comparing import Pair
    from siteloom.wrapper.language import AttributeRules

# Reading dates is dear, and so many pages tell enough.
_MOST_PAGES = 60
# Of these pages so many must have such a value at one place, and no other place may have it on half as many.
_NEARLY_ALL = 0.9
_LEAST_PAGES = 5
# Prices seldom double between two visits, and what was updated was not last updated many years ago.
_NEAR_FACTOR = 2
_NEAR_TIME = timedelta(days=2 * 365)


def near_values(rules: AttributeRules, name: str, lost: Sequence[Pair]) -> dict[str, str]:
    """The new value of an attribute by URL, for pages on which its old value is lost; none if in doubt."""
    pages = lost[:_MOST_PAGES]
    if rules.attribute.multi or rules.attribute.type in (None, "text", "url", "image"):
        return {}
    by_place: dict[str, dict[str, str]] = defaultdict(dict)
    for pair in pages:
        for place, texts in _candidates(rules, pair, pair.before[name][0]).items():
            if len(texts) == 1:
                by_place[place][pair.page.page.url] = texts[0]
    ranked = sorted(by_place.values(), key=len, reverse=True)
    if len(pages) < _LEAST_PAGES or not ranked or len(ranked[0]) < _NEARLY_ALL * len(pages):
        return {}
    is_in_doubt = len(ranked) > 1 and 2 * len(ranked[1]) > len(ranked[0])
    return {} if is_in_doubt else ranked[0]


def _candidates(rules: AttributeRules, pair: Pair, old_text: str) -> Mapping[str, list[str]]:
    """The texts of a page that may be the new value, by the tags that lead to them."""
    found: dict[str, list[str]] = defaultdict(list)
    old = _read(rules, old_text)
    known = {text for texts in pair.before.values() for text in texts}
    if old is None:
        return found
    for path, text in _texts(pair):
        if text in known or shape(text) not in rules.shapes:
            continue
        if rules.contract is not None and breach(rules.contract, text):
            continue
        new = _read(rules, text)
        if new is not None and _is_near(old, new):
            found[path].append(text)
    return found


def _texts(pair: Pair) -> Iterator[tuple[str, str]]:
    for node in text_nodes(pair.page.root):
        text = normalize(node.text)
        if any(map(str.isdigit, text)):
            yield tag_path(node.parent), text


def _read(rules: AttributeRules, text: str) -> object | None:
    kind = rules.attribute.type
    try:
        return None if kind is None else typed_value(text, kind, day_first=rules.day_first)
    except MissingExtra:
        return None


def _is_near(old: object, new: object) -> bool:
    match old, new:
        case Price(amount=before, currency=old_currency), Price(amount=after, currency=currency):
            return old_currency == currency and _is_near(before, after)
        case Rating(value=before, best=old_best), Rating(value=after, best=best):
            return old_best == best and _is_near(before, after)
        case Decimal(), Decimal():
            return old > 0 and old <= new * _NEAR_FACTOR and new <= old * _NEAR_FACTOR
        case datetime(), datetime():
            return old.tzinfo == new.tzinfo and abs(new - old) <= _NEAR_TIME
        case date(), date():
            return type(old) is type(new) and abs(new - old) <= _NEAR_TIME
        case _:
            return False
