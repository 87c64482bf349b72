"""The HTML of a page without the template of its site, for tools that look at one page alone."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from lxml import etree

from siteloom.dom.spots import Spot, texts_from
from siteloom.template.blocks import marks_in_order
from siteloom.template.segment_table import readable_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.dom import Element
    from siteloom.model import Page
    from siteloom.template import Block, PageSegments, SegmentTable


def without_template(page: Page, table: SegmentTable) -> str:
    """The HTML of a page without template text; elements that held nothing else are gone with it.

    What is kept is the text that `clean_text` keeps, where it stood, also inside of template; and images and
    all else that is no text.
    """
    root = readable_tree(page)
    segments = table.segments_of(root)
    remove_template(root, segments, table.judged(segments))
    return html_of(root)


def html_of(root: Element) -> str:
    """The tree of a page as HTML."""
    return etree.tostring(root, encoding="unicode", method="html", doctype="<!DOCTYPE html>")


def remove_template(root: Element, segments: PageSegments, blocks: Sequence[Block]) -> None:
    """Take the template out of the tree of a page, whose segments and blocks these are."""
    spots = list(texts_from(Spot(root, None)))
    emptied: set[Element] = set()
    for spot, block, mark in zip(spots, segments.blocks, marks_in_order(segments, blocks), strict=True):
        if mark and blocks[block].is_template:
            if spot.after is None:
                spot.parent.text = " "
            else:
                spot.after.tail = " "
            emptied.add(spot.parent)
    while emptied:
        inside: defaultdict[Element, set[Element]] = defaultdict(set)
        for element in emptied:
            above = element.getparent()
            if above is not None and element.tag != "body" and _is_empty(element):
                inside[above].add(element)
        for above, children in inside.items():
            _remove(children, above)
        emptied = set(inside)  # they may be without content, too, by now


def _remove(children: AbstractSet[Element], parent: Element) -> None:
    """Remove some children of an element; the texts behind them stay."""
    last: Element | None = None
    texts = [parent.text or ""]
    for child in [*parent, None]:
        if child is not None and child in children:
            texts.append(child.tail or "")
            parent.remove(child)
            continue
        if len(texts) > 1:
            if last is None:
                parent.text = "".join(texts)
            else:
                last.tail = "".join(texts)
        if child is not None:
            last, texts = child, [child.tail or ""]


def _is_empty(element: Element) -> bool:
    if element.text and not element.text.isspace():
        return False
    return all(
        not isinstance(child.tag, str) and (not child.tail or child.tail.isspace()) for child in element
    )
