"""Known records of a list page as an example: each with what stands inside its own part of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.errors import ExampleError
from siteloom.learning.records import find_records
from siteloom.model import Example

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from siteloom.dom import Element
    from siteloom.monitoring.comparing import FreshPage, Pair, Values

_MOST_RECORDS = 5


def list_example(found: Sequence[Pair], constant: Collection[str]) -> Example | None:
    """Some records of a page as an example; None if they cannot be found on it again.

    Where a record begins is told by its constant attributes. The old value of another, such as a price, may
    by now stand in the record beside it.
    """
    known = [(pair, _constant_values(pair, constant)) for pair in found]
    usable = [(pair, values) for pair, values in known if values][:_MOST_RECORDS]
    records = [dict(values) for _, values in usable]
    page = found[0].page
    starts = _starts(page, records)
    if starts is None:
        return None
    for number, (pair, _) in enumerate(usable):
        for name, texts in _others(pair, starts[number], constant).items():
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


def _others(pair: Pair, start: Element, constant: Collection[str]) -> Values:
    """The other known values that stand inside the element that a record begins with."""
    elements = set(start.iter())
    return {
        name: texts
        for name, texts in pair.before.items()
        if name not in constant
        and all(any(place.element in elements for place in pair.page.places.find(text)) for text in texts)
    }
