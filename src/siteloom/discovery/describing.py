"""Names and XPaths of columns, from some of the units that have them."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, cast

from siteloom.discovery.naming import Place, column_name
from siteloom.discovery.xpaths import Sample, column_xpath, prose_xpath
from siteloom.spacing import evenly_spaced

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from siteloom.discovery.columns import Found
    from siteloom.discovery.units import Units
    from siteloom.dom import Element

_NAMED_BY = 5  # units with a column
_TRIED_WITH = 10  # units with a column: an XPath that is right on nine in ten of all is found so
_TRIED_WITHOUT = 4
_COMMON = 12  # units that are looked at first, so that few pages have to be parsed again


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
        for unit in evenly_spaced(range(len(units.page_of)), _COMMON):
            self.of(unit)

    def of(self, unit: int) -> tuple[Element, ...]:
        """The elements of a unit."""
        if unit not in self._kept:
            self._kept[unit] = self._units.tops(unit)
        return self._kept[unit]

    def some_with(self, column: Collection[int]) -> list[int]:
        """Some of the units of a column."""
        return self._some(column, _NAMED_BY, _TRIED_WITH)

    def some_without(self, column: Collection[int]) -> list[int]:
        """Some of the other units."""
        others = [unit for unit in range(len(self._units.page_of)) if unit not in column]
        return self._some(others, _TRIED_WITHOUT, _TRIED_WITHOUT)

    def _some(self, units: Collection[int], least: int, most: int) -> list[int]:
        """At least so many units if there are, at best such whose trees are there already."""
        known = [unit for unit in self._kept if unit in units]
        others = [unit for unit in units if unit not in self._kept]
        return [*known[:most], *evenly_spaced(others, max(0, least - len(known)))]


def _described(column: Found, units: Units, tops: _Tops) -> Described:
    texts = units.texts
    places, samples = [], []
    with_column = column.strand.rows.keys()
    for unit in tops.some_with(with_column):
        rows = column.strand.rows[unit]
        own = tops.of(unit)
        shown = tuple(texts.texts[text] for text in texts.text[list(rows)].tolist())
        attribute = texts.leaf(rows[0])[1:] if column.form == "attribute" else None
        paths = [texts.path_text(int(texts.path[row])) for row in rows]
        element = _element(own, paths[0])
        places.append(Place(element, shown[0], attribute, own[0] if units.are_parts else None))
        if column.form == "prose" and (around := common_element(paths)):  # or it stands in several parts
            element = _element(own, f"{around}/")
        samples.append(Sample(own, element, shown))
    anchor = None if column.strand.anchor is None else texts.texts[column.strand.anchor]
    name = column_name(places[:_NAMED_BY], anchor)
    without = [tops.of(unit) for unit in tops.some_without(with_column)]
    if column.form == "prose":
        return Described(name, prose_xpath(samples, without, is_part=units.are_parts))
    leaf = f"@{places[0].attribute}" if column.form == "attribute" else "text()"
    return Described(name, column_xpath(samples, without, leaf, anchor, is_part=units.are_parts))


def common_element(nodes: Sequence[str]) -> str:
    """The path of the smallest element that all nodes are in."""
    split = [node.split("/")[:-1] for node in nodes]
    common = [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*split, strict=False))]
    return "/".join(common)


def _element(tops: Sequence[Element], path: str) -> Element:
    """The element that a path of the texts leads to, from the elements of its unit."""
    top, *steps = path[1:].split("/")[:-1]
    start = tops[int(top[top.rindex("[") + 1 : -1]) - 1]
    if not steps:
        return start
    return cast("list[Element]", start.xpath("/".join(steps)))[0]
