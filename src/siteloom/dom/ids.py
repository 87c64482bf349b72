"""Elements by their id, without a walk through the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lxml import etree

if TYPE_CHECKING:
    from siteloom.dom.tree import Element

_BY_ID = etree.XPath("id($value)")
_BY_ATTRIBUTE = etree.XPath("//*[@id=$value]")


def elements_with_id(root: Element, value: str) -> list[Element]:
    """All elements of a page that have an id, in document order.

    The parser's own table of ids knows the first element of each, and anchors by their names, too; where
    that may not be all, the tree is searched.
    """
    found = cast("list[Element]", _BY_ID(root, value=value))
    if value.split() != [value] or any(element.get("id") != value for element in found):
        return cast("list[Element]", _BY_ATTRIBUTE(root, value=value))
    if found and value in _repeated_ids(root):
        return cast("list[Element]", _BY_ATTRIBUTE(root, value=value))
    return found


def _repeated_ids(root: Element) -> set[str]:
    """The ids that more than one element has, as the parser complained of them."""
    parser = root.getroottree().parser
    return {
        entry.message.removeprefix("ID ").removesuffix(" already defined")
        for entry in (parser.error_log if parser is not None else ())
        if entry.type == etree.ErrorTypes.DTD_ID_REDEFINED
    }
