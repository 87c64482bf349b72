"""The HTML of a page without the template of its site, for tools that look at one page alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree

from siteloom.dom import parse
from siteloom.dom.spots import Spot, texts_from
from siteloom.errors import UnreadablePage
from siteloom.model import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.dom import Element
    from siteloom.model import Page
    from siteloom.template import Block, PageSegments, SegmentTable


def without_template(page: Page, table: SegmentTable) -> str:
    """The HTML of a page without template text; elements that held nothing else are gone with it.

    What is kept is the text that `clean_text` keeps, where it stood, also inside of template; and images and
    all else that is no text.
    """
    root = parse(page, collect_ids=False)
    if isinstance(root, Failure):
        raise UnreadablePage(root.url, root.reason)
    segments = table.segments_of(root)
    remove_template(root, segments, table.judged(segments))
    return html_of(root)


def html_of(root: Element) -> str:
    """The tree of a page as HTML."""
    return etree.tostring(root, encoding="unicode", method="html", doctype="<!DOCTYPE html>")


def remove_template(root: Element, segments: PageSegments, blocks: Sequence[Block]) -> None:
    """Take the template out of the tree of a page, whose segments and blocks these are."""
    marks = [iter(block.are_template) for block in blocks]
    emptied: list[Element] = []
    for spot, block in zip(list(texts_from(Spot(root, None))), segments.blocks, strict=True):
        if next(marks[block]) and blocks[block].is_template:
            if spot.after is None:
                spot.parent.text = " "
            else:
                spot.after.tail = " "
            emptied.append(spot.parent)
    for element in emptied:
        _remove_if_empty(element)


def _remove_if_empty(element: Element) -> None:
    """Remove an element without content, and those around it that are left without any."""
    above = element.getparent()
    while above is not None and element.tag != "body" and _is_empty(element):
        before = element.getprevious()
        tail = element.tail or ""
        if before is None:
            above.text = (above.text or "") + tail
        else:
            before.tail = (before.tail or "") + tail
        above.remove(element)
        element, above = above, above.getparent()


def _is_empty(element: Element) -> bool:
    if element.text and not element.text.isspace():
        return False
    return all(
        not isinstance(child.tag, str) and (not child.tail or child.tail.isspace()) for child in element
    )
