"""Names and XPaths of columns, from some of the units that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from siteloom.discovery.naming import Place, column_name
from siteloom.discovery.xpaths import Sample, column_xpath, element_xpath

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from siteloom.discovery.columns import Found
    from siteloom.discovery.units import Units
    from siteloom.dom import Element

_SAMPLED = 5  # units to name a column by, and to try its XPath on
_COMMON = 10  # pages that are tried first, so that few have to be parsed again


class Described(NamedTuple):
    """What a column is called, before names are made unique, and where it is."""

    name: str
    xpath: str


def described_columns(columns: Sequence[Found], units: Units) -> list[Described]:
    """Names and XPaths of columns."""
    tops = _Tops(units)
    return [_described(column, units, tops) for column in columns]


class _Tops:
    """The trees of a few units, kept while names are looked for."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._kept: dict[int, tuple[Element, ...]] = {}

    def of(self, unit: int) -> tuple[Element, ...]:
        """The elements of a unit."""
        if unit not in self._kept:
            self._kept[unit] = self._units.tops(unit)
        return self._kept[unit]

    def known_first(self, units: Collection[int]) -> list[int]:
        """Some of the units, best such whose trees are there already."""
        known = [unit for unit in self._kept if unit in units]
        step = max(1, len(units) // _COMMON)
        others = [unit for unit in list(units)[::step] if unit not in self._kept]
        return [*known, *others][:_SAMPLED]


def _described(column: Found, units: Units, tops: _Tops) -> Described:
    texts = units.texts
    places, samples = [], []
    for unit in tops.known_first(column.strand.rows.keys()):
        rows = column.strand.rows[unit]
        own = tops.of(unit)
        element = _element(own, texts.path_text(int(texts.path[rows[0]])))
        shown = tuple(texts.texts[text] for text in texts.text[list(rows)].tolist())
        attribute = texts.leaf(rows[0])[1:] if column.form == "attribute" else None
        places.append(Place(element, shown[0], attribute, own[0] if units.are_parts else None))
        samples.append(Sample(own, element, shown))
    anchor = None if column.strand.anchor is None else texts.texts[column.strand.anchor]
    name = column_name(places, anchor)
    if column.form == "prose":
        return Described(name, element_xpath(samples[0].element))
    leaf = f"@{places[0].attribute}" if column.form == "attribute" else "text()"
    return Described(name, column_xpath(samples, leaf, anchor, is_part=units.are_parts))


def _element(tops: Sequence[Element], path: str) -> Element:
    """The element that a path of the texts leads to, from the elements of its unit."""
    top, *steps = path[1:].split("/")[:-1]
    start = tops[int(top[top.rindex("[") + 1 : -1]) - 1]
    if not steps:
        return start
    return cast("list[Element]", start.xpath("/".join(steps)))[0]
