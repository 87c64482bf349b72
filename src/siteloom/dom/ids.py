"""Elements by their id, without a walk through the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.dom.tree import Element

_BY_ID = etree.XPath("id($value)")
_BY_ATTRIBUTE = etree.XPath("//*[@id=$value]")

# libxml2 tells no more errors of a page than these (2.14).
_MOST_ERRORS = 100


def elements_with_ids(root: Element, values: Iterable[str]) -> dict[str, list[Element]]:
    """All elements of a page that have each of some ids, in document order.

    The parser's own table of ids knows the first element of each, and anchors by their names, too; where
    that may not be all, the tree is searched.
    """
    found = {value: _with_id(_BY_ID, root, value) for value in values}
    repeated = _repeated_ids(root) if any(found.values()) else frozenset()
    for value, elements in found.items():
        is_odd = value.split() != [value] or any(element.get("id") != value for element in elements)
        if is_odd or (elements and (repeated is None or value in repeated)):
            found[value] = _with_id(_BY_ATTRIBUTE, root, value)
    return found


def _with_id(search: etree.XPath, root: Element, value: str) -> list[Element]:
    try:
        return cast("list[Element]", search(root, value=value))
    except ValueError:  # XPath is not asked for control characters, but broken pages have such ids
        return [element for element in root.iter(etree.Element) if element.get("id") == value]


def _repeated_ids(root: Element) -> frozenset[str] | None:
    """The ids that more than one element has, as the parser complains of them; None if of too much else."""
    parser = root.getroottree().parser
    errors = [] if parser is None else list(parser.error_log)
    if len(errors) >= _MOST_ERRORS:
        return None
    return frozenset(
        entry.message.removeprefix("ID ").removesuffix(" already defined")
        for entry in errors
        if entry.type == etree.ErrorTypes.DTD_ID_REDEFINED
    )
