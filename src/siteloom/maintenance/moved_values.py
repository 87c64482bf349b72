"""Find known values again on fresh pages, also when they changed slightly or stand in a list.

The old value of a changing attribute may not stand on the new page. But where
nearly every page has, at one and the same place, one value of its type that
is near the old one of that very page, this can hardly be anything else.

That the old price of a page stands on its new version may be because another
product has that price now. A template puts what it means at the same place of
many pages, so a place that hardly any other page has in common is chance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from siteloom.core.errors import ExampleError, MissingExtra
from siteloom.core.model import Example
from siteloom.core.values import typed_value
from siteloom.core.values.value_types import Price, Rating
from siteloom.html.node_paths import tag_path
from siteloom.html.visible_text import normalize, text_nodes
from siteloom.learning.repeated_structure.record_rules import find_records
from siteloom.wrappers.rule_features import shape
from siteloom.wrappers.value_contract import breach

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from siteloom.html.parser import Element
    from siteloom.maintenance.page_comparison import FreshPage, Pair, Values
    from siteloom.wrappers.rule_features import AttributeRules


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
    by_path: dict[str, list[str]] = defaultdict(list)
    old = _read(rules, old_text)
    known_texts = {text for texts in pair.before.values() for text in texts}
    if old is None:
        return by_path
    for path, text in _texts(pair):
        if text in known_texts or shape(text) not in rules.shapes:
            continue
        if rules.contract is not None and breach(rules.contract, text):
            continue
        new = _read(rules, text)
        if new is not None and _is_near(old, new):
            by_path[path].append(text)
    return by_path


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


# Of all pages so many must have values at a place, and at least these. Old values of changing attributes
# stand elsewhere by chance more often: one price in ten on the built-in guide, where pages name others' too.
_COMMON_SHARE, _COMMON_SHARE_OF_CHANGING = 0.06, 0.1
_LEAST_PAGES_OF_A_PLACE = 3


def in_common_places(misplaced: Sequence[Pair], name: str, *, is_constant: bool) -> list[Pair]:
    """Those records all of whose known values of an attribute stand at places that many pages have in common.

    The place of most values counts first, then that of most of those that do not have it, and so on.
    """
    values = [
        (number, _places(pair, text)) for number, pair in enumerate(misplaced) for text in pair.before[name]
    ]
    share = _COMMON_SHARE if is_constant else _COMMON_SHARE_OF_CHANGING
    needed = min(max(_LEAST_PAGES_OF_A_PLACE, share * len(misplaced)), len(misplaced))
    unplaced = values
    while unplaced:
        records = Counter(
            place for _, place in {(number, place) for number, places in unplaced for place in places}
        )
        if not records or max(records.values()) < needed:
            break
        best = max(records, key=lambda place: (records[place], place))
        unplaced = [(number, places) for number, places in unplaced if best not in places]
    by_chance = {number for number, _ in unplaced}
    return [pair for number, pair in enumerate(misplaced) if number not in by_chance]


def _places(pair: Pair, text: str) -> set[tuple[str, str, bool]]:
    """Where a value stands: the tags that lead there, and how it stands there."""
    return {(tag_path(place.element), place.target, place.is_whole) for place in pair.page.places.find(text)}


_MOST_RECORDS = 5


def list_example(page_records: Sequence[Pair], constant: Collection[str]) -> Example | None:
    """Some records of a page as an example; None if they cannot be found on it again.

    The constant attributes show where a record begins. The old value of another attribute, such as a price,
    may by now stand in the record beside it.
    """
    constant_values = [(pair, _constant_values(pair, constant)) for pair in page_records]
    usable = [(pair, values) for pair, values in constant_values if values][:_MOST_RECORDS]
    records = [dict(values) for _, values in usable]
    page = page_records[0].page
    starts = _starts(page, records)
    if starts is None:
        return None
    for number, (pair, _) in enumerate(usable):
        for name, texts in _changing_values(pair, starts[number], constant).items():
            fuller = [*records[:number], {**records[number], name: texts}, *records[number + 1 :]]
            if _starts(page, fuller) == starts:
                records = fuller
    return Example(page.page, records=records)


def _starts(page: FreshPage, records: Sequence[Values]) -> list[Element] | None:
    """The elements at which records begin, if they can be found."""
    if not records:
        return None
    try:
        return find_records(page.page.url, page.root, records, page.places).starts
    except ExampleError:
        return None


def _constant_values(pair: Pair, constant: Collection[str]) -> Values:
    return {
        name: texts
        for name, texts in pair.before.items()
        if name in constant and texts and all(map(pair.page.has, texts))
    }


def _changing_values(pair: Pair, start: Element, constant: Collection[str]) -> Values:
    """The other known values that stand inside the element that a record begins with."""
    elements = set(start.iter())
    return {
        name: texts
        for name, texts in pair.before.items()
        if name not in constant
        and all(any(place.element in elements for place in pair.page.places.find(text)) for text in texts)
    }
