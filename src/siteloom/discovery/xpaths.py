"""An XPath for a column: the shortest that gives what the column has, tried on some units."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple, cast

from lxml import etree

from siteloom.dom import is_xpath_name, node_path, normalize
from siteloom.wrapper.xpath import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.dom import Element

_WORD = re.compile(r"\w")
_ANCHORS = 2  # elements with a class or id to begin at
_GOOD_ENOUGH = 0.99
_RECORDS = 20  # look as all records of a list can


class Sample(NamedTuple):
    """What a column has in one unit, whose elements are the root of a page or parts of one."""

    unit: tuple[Element, ...]
    element: Element
    texts: tuple[str, ...]


def column_xpath(samples: Sequence[Sample], leaf: str, label: str | None, *, is_part: bool) -> str:
    """The first of some expressions that gives the most samples exactly.

    `leaf` is what it ends in: `text()`, or `@src`. In a part of a page it begins at its first element.
    """
    best, best_share = "", -1.0
    for xpath in dict.fromkeys(_candidates(samples, leaf, label, is_part=is_part)):
        share = sum(_found(xpath, sample) == sample.texts for sample in samples) / len(samples)
        if share > best_share:
            best, best_share = xpath, share
        if share >= _GOOD_ENOUGH:
            break
    return best


def element_xpath(element: Element) -> str:
    """A short expression for elements like this one: by id or class, and the tags from there."""
    return next(_from_anchors_of_page(element))


def record_xpath(records: Sequence[Element]) -> str:
    """The expression that finds most of these elements, and fewest others on their pages."""
    first = records[0]
    parent = first.getparent()
    own = dict.fromkeys(path for record in records[:_RECORDS] for path in _from_anchors_of_page(record))
    inside = [] if parent is None else [f"{path}/*" for path in _from_anchors_of_page(parent)]
    roots = dict.fromkeys(record.getroottree().getroot() for record in records)
    wanted = set(records)
    best, best_count = "", -sys.maxsize
    for xpath in (*own, *inside):
        found = {element for root in roots for element in cast("list[Element]", root.xpath(xpath))}
        count = len(found & wanted) - len(found - wanted)
        if count > best_count:
            best, best_count = xpath, count
    return best


def _candidates(samples: Sequence[Sample], leaf: str, label: str | None, *, is_part: bool) -> Iterator[str]:
    first = samples[0]
    tops = {first.element, *first.element.iterancestors()}
    number = next(number for number, one in enumerate(first.unit) if one in tops)
    top = first.unit[number]
    beside = _beside(first.unit, number)
    for path in _from_anchors(first.element, top, f"{beside}/descendant-or-self::" if is_part else "//"):
        yield f"{path}/{leaf}".removeprefix("./")
    if label is not None:
        node = "text()[normalize-space()][1]" if leaf == "text()" else f"*[{leaf}][1]/{leaf}"
        start = beside if is_part else ""
        yield f"{start}//text()[normalize-space()={quote(label)}]/following::{node}"
    if not is_part:
        for sample in samples:
            yield f"{node_path(sample.element)}/{leaf}"


def _beside(unit: Sequence[Element], number: int) -> str:
    """How one of the elements of a unit is reached from the first."""
    if number == 0:
        return "."
    step = _step(unit[number])
    place = sum(_step(one) == step for one in unit[1 : number + 1])
    return f"following-sibling::{step}[{place}]"


def _from_anchors(element: Element, top: Element, begin: str) -> Iterator[str]:
    """Paths down from the nearest elements with an id or a class, then from the top, whatever its class."""
    below = ""
    anchors = 0
    for one in (element, *element.iterancestors()):
        if one is top:
            break
        step = _step(one)
        if "[" in step and anchors < _ANCHORS:
            anchors += 1
            yield begin + step + below
        below = f"/{step}{below}"
    yield begin + _name(top) + below


def _from_anchors_of_page(element: Element) -> Iterator[str]:
    return _from_anchors(element, element.getroottree().getroot(), "//")


def _name(element: Element) -> str:
    tag = str(element.tag)
    return tag if is_xpath_name(tag) else "*"


def _step(element: Element) -> str:
    for attribute in ("id", "class"):
        value = element.get(attribute) or ""
        if value.strip() and not any(character.isdigit() for character in value):
            return f"{_name(element)}[@{attribute}={quote(value)}]"
    return _name(element)


def _found(xpath: str, sample: Sample) -> tuple[str, ...]:
    found = cast("list[str]", etree.XPath(xpath)(sample.unit[0]))
    texts = [normalize(str(text)) for text in found]
    return tuple(text for text in texts if _WORD.search(text))
