"""Elements by their id, without a walk through the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lxml import etree

if TYPE_CHECKING:
    from siteloom.dom.tree import Element

_BY_ID = etree.XPath("id($value)")
_BY_ATTRIBUTE = etree.XPath("//*[@id=$value]")

# libxml2 tells no more errors of a page than these (2.14).
_MOST_ERRORS = 100


def elements_with_id(root: Element, value: str) -> list[Element]:
    """All elements of a page that have an id, in document order.

    The parser's own table of ids knows the first element of each, and anchors by their names, too; where
    that may not be all, the tree is searched.
    """
    found = cast("list[Element]", _BY_ID(root, value=value))
    if value.split() != [value] or any(element.get("id") != value for element in found):
        return cast("list[Element]", _BY_ATTRIBUTE(root, value=value))
    if found and _may_be_repeated(value, root):
        return cast("list[Element]", _BY_ATTRIBUTE(root, value=value))
    return found


def _may_be_repeated(value: str, root: Element) -> bool:
    """Whether more than one element may have an id: the parser complains of it, unless of too much else."""
    parser = root.getroottree().parser
    errors = [] if parser is None else list(parser.error_log)
    return len(errors) >= _MOST_ERRORS or any(
        entry.type == etree.ErrorTypes.DTD_ID_REDEFINED and entry.message == f"ID {value} already defined"
        for entry in errors
    )
