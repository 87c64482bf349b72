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
_RECORDS = 20  # to take paths from
_LOOKS = 3  # of records, some of which stand out by their class


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
    looks = dict.fromkeys(map(element_xpath, records))
    any_look = [" | ".join(looks)] if 1 < len(looks) <= _LOOKS else []
    roots = dict.fromkeys(record.getroottree().getroot() for record in records)
    wanted = set(records)
    best, best_count = "", -sys.maxsize
    for xpath in (*own, *inside, *any_look):
        found = {element for root in roots for element in cast("list[Element]", root.xpath(xpath))}
        count = len(found & wanted) - len(found - wanted)
        if count > best_count:
            best, best_count = xpath, count
    return best


def _candidates(samples: Sequence[Sample], leaf: str, label: str | None, *, is_part: bool) -> Iterator[str]:
    first = samples[0]
    top = _top(first)
    beside = _beside(first.unit, top) if is_part else ""
    for path in _from_anchors(first.element, top, f"{beside}/descendant-or-self::" if is_part else "//"):
        yield f"{path}/{leaf}".removeprefix("./")
    if label is not None:
        node = "text()[normalize-space()][1]" if leaf == "text()" else f"*[{leaf}][1]/{leaf}"
        yield f"{beside}//text()[normalize-space()={quote(label)}]/following::{node}"
    for sample in samples:
        if is_part:
            top = _top(sample)
            below = node_path(sample.element).removeprefix(node_path(top))
            yield f"{_beside(sample.unit, top)}{below}/{leaf}"
        else:
            yield f"{node_path(sample.element)}/{leaf}"


def _top(sample: Sample) -> Element:
    """The element of its unit that a sample stands in."""
    around = {sample.element, *sample.element.iterancestors()}
    return next(one for one in sample.unit if one in around)


def _beside(unit: Sequence[Element], element: Element) -> str:
    """How an element of a unit is reached from the first."""
    number = unit.index(element)
    if number == 0:
        return "."
    step = _step(element)
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
