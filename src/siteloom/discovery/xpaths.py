"""An XPath for a column: the shortest that gives what the column has, tried on some units."""

from __future__ import annotations

import re
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


class Sample(NamedTuple):
    """What a column has in one unit, whose elements are the root of a page or parts of one."""

    unit: tuple[Element, ...]
    element: Element
    texts: tuple[str, ...]


def column_xpath(samples: Sequence[Sample], leaf: str, label: str | None, *, is_part: bool) -> str:
    """The first of some expressions that gives the most samples exactly.

    `leaf` is what it ends in: `text()`, or `@src`. In a part of a page it begins at the part.
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
    return next(_from_anchors(element, element.getroottree().getroot(), "//"))


def _candidates(samples: Sequence[Sample], leaf: str, label: str | None, *, is_part: bool) -> Iterator[str]:
    begin = "descendant-or-self::" if is_part else "//"
    for sample in samples[:1]:
        top = sample.unit[0] if len(sample.unit) == 1 else sample.unit[0].getparent()
        for path in _from_anchors(sample.element, top, begin):
            yield f"{path}/{leaf}"
    if label is not None and leaf == "text()":
        start = f"{'.' if is_part else ''}//text()[normalize-space()={quote(label)}]"
        yield f"{start}/following::text()[normalize-space()][1]"
    if not is_part:
        for sample in samples:
            yield f"{node_path(sample.element)}/{leaf}"


def _from_anchors(element: Element, top: Element | None, begin: str) -> Iterator[str]:
    """Paths down from the nearest elements with an id or a class, then from the top."""
    below = ""
    anchors = 0
    one: Element | None = element
    while one is not None:
        step = _step(one)
        if "[" in step and anchors < _ANCHORS:
            anchors += 1
            yield begin + step + below
        if one is top:
            break
        below = f"/{step}{below}"
        one = one.getparent()
    step = _step(one) if one is not None else "*"
    yield begin + step + below


def _step(element: Element) -> str:
    tag = str(element.tag)
    name = tag if is_xpath_name(tag) else "*"
    for attribute in ("id", "class"):
        value = element.get(attribute) or ""
        if value.strip() and not any(character.isdigit() for character in value):
            return f"{name}[@{attribute}={quote(value)}]"
    return name


def _found(xpath: str, sample: Sample) -> tuple[str, ...]:
    compiled = etree.XPath(xpath)
    texts = [normalize(str(text)) for element in sample.unit for text in cast("list[str]", compiled(element))]
    return tuple(text for text in texts if _WORD.search(text))
