"""Tag paths and positions of nodes and texts: find a node by path or id, step from one text to the next.

A text position is a place in the tree where a text node can be: at the beginning of an element, or after one
of its children.

Broken pages have elements with control characters in their names, which lxml returns but does not accept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lxml import etree

from siteloom.html.visible_text import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.html.parser import Element


class TextPosition(NamedTuple):
    """The place in `parent` after its child `preceding`, or before all children if that is None."""

    parent: Element
    preceding: Element | None

    @property
    def text(self) -> str:
        """The text node at this position; empty if there is none."""
        return (self.parent.text if self.preceding is None else self.preceding.tail) or ""

    @property
    def number(self) -> int:
        """The number of this text among those of the parent, as XPath counts text nodes."""
        number = 0
        child = self.preceding
        while child is not None:
            number += bool(child.tail)
            child = child.getprevious()
        return number + bool(self.parent.text)

    @property
    def is_blank(self) -> bool:
        """Whether there is no visible text at this position."""
        text = self.text
        return not text or text.isspace()


def position_of_text(parent: Element, number: int) -> TextPosition:
    """Return the position of a parent's text node with this number, as XPath counts text nodes."""
    spot = TextPosition(parent, None)
    number -= bool(parent.text)
    for child in parent:
        if number == 0:
            break
        spot = TextPosition(parent, child)
        number -= bool(child.tail)
    return spot


def is_visible_element(node: Element) -> bool:
    """Return whether a node is an element whose content is shown, and not a comment."""
    return isinstance(node.tag, str) and node.tag not in HIDDEN


def next_text_position(spot: TextPosition) -> TextPosition | None:
    """Return the next position, skipping the insides of hidden elements."""
    parent, preceding = spot
    child = preceding.getnext() if preceding is not None else parent[0] if len(parent) else None
    if child is None:
        ancestor = parent.getparent()
        return None if ancestor is None else TextPosition(ancestor, parent)
    return TextPosition(child, None) if is_visible_element(child) else TextPosition(parent, child)


def previous_text_position(spot: TextPosition) -> TextPosition | None:
    """Return the previous position."""
    parent, preceding = spot
    if preceding is None:
        return text_position_before(parent)
    if is_visible_element(preceding):
        return TextPosition(preceding, preceding[-1] if len(preceding) else None)
    return TextPosition(parent, preceding.getprevious())


def text_position_before(element: Element) -> TextPosition | None:
    """Return the position just before an element begins."""
    above = element.getparent()
    return None if above is None else TextPosition(above, element.getprevious())


def texts_from(spot: TextPosition | None, end: TextPosition | None = None) -> Iterator[TextPosition]:
    """Yield the positions with a visible text from this one on, up to but without `end`."""
    while spot is not None and spot != end:
        if not spot.is_blank:
            yield spot
        spot = next_text_position(spot)


def text_before(spot: TextPosition | None, begin: TextPosition | None = None) -> TextPosition | None:
    """Return the nearest position with a visible text, this one or one before it, but after `begin`."""
    while spot is not None and spot != begin:
        if not spot.is_blank:
            return spot
        spot = previous_text_position(spot)
    return None


_BY_ID = etree.XPath("id($value)")
_BY_ATTRIBUTE = etree.XPath("//*[@id=$value]")

# libxml2 2.14 reports at most this number of errors per page.
_MOST_ERRORS = 100


def elements_with_ids(root: Element, values: Iterable[str]) -> dict[str, list[Element]]:
    """Return all elements of a page with each of the given ids, in document order.

    The parser's own table of ids has only the first element of each, and also anchors by their names; if
    it may be incomplete, the tree is searched.
    """
    elements_by_id = {value: _with_id(_BY_ID, root, value) for value in values}
    repeated = _repeated_ids(root) if any(elements_by_id.values()) else frozenset()
    for value, elements in elements_by_id.items():
        is_odd = value.split() != [value] or any(element.get("id") != value for element in elements)
        if is_odd or (elements and (repeated is None or value in repeated)):
            elements_by_id[value] = _with_id(_BY_ATTRIBUTE, root, value)
    return elements_by_id


def _with_id(search: etree.XPath, root: Element, value: str) -> list[Element]:
    try:
        return cast("list[Element]", search(root, value=value))
    except ValueError:  # XPath rejects control characters, but broken pages have such ids
        return [element for element in root.iter(etree.Element) if element.get("id") == value]


def _repeated_ids(root: Element) -> frozenset[str] | None:
    """Return the repeated ids that the parser reported; None if it reported too many errors."""
    parser = root.getroottree().parser
    errors = [] if parser is None else list(parser.error_log)
    if len(errors) >= _MOST_ERRORS:
        return None
    return frozenset(
        entry.message.removeprefix("ID ").removesuffix(" already defined")
        for entry in errors
        if entry.type == etree.ErrorTypes.DTD_ID_REDEFINED
    )


# Broken markup gives elements names like `o:p` or `a"b`, which XPath cannot express.
_XPATH_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)

_PLAIN_PATH = re.compile(r"(?:/[a-z][a-z0-9]*+(?:\[[0-9]++\])?+)++")

# Up to this number of paths, libxml2 counts siblings, which is much faster; most pages have fewer values.
_MOST_UNCACHED = 100

# A comment's tag is the function that makes comments, which lxml's types leave out.
_NODE_TESTS: dict[Any, str] = {
    etree.Comment: "comment()",
    etree.ProcessingInstruction: "processing-instruction()",
}


def tag_path(element: Element) -> str:
    """Return the tags from the root down to an element: `html/body/div`."""
    tags = [_tag(element), *map(_tag, element.iterancestors())]
    return "/".join(reversed(tags))


def node_path(element: Element) -> str:
    """Return the XPath that selects only this element: `/html[1]/body[1]/div[2]`."""
    path = element.getroottree().getpath(element)
    if _PLAIN_PATH.fullmatch(path):  # counted by libxml2, much faster; it omits the number of only children
        return "".join(f"/{step}" if step[-1] == "]" else f"/{step}[1]" for step in path[1:].split("/"))
    steps = [_step(element), *map(_step, element.iterancestors())]
    return "/" + "/".join(reversed(steps))


class NodePaths:
    """`node_path` for many nodes of unchanging trees, which counts siblings only once.

    The records of a long list are siblings, and counting those before each would take quadratic time.
    """

    def __init__(self) -> None:
        self._requests = 0
        self._positions: dict[Element, int] = {}

    def __call__(self, element: Element) -> str:
        """Return the path of a node."""
        self._requests += 1
        if self._requests <= _MOST_UNCACHED:
            return node_path(element)
        steps = [self._step(element), *map(self._step, element.iterancestors())]
        return "/" + "/".join(reversed(steps))

    def _step(self, element: Element) -> str:
        tag: Any = element.tag
        if not isinstance(tag, str) or not is_xpath_name(tag):
            return _step(element)
        position = self._positions.get(element)
        if position is None:
            position = 1
            for sibling in element.itersiblings(tag, preceding=True):
                if (sibling_position := self._positions.get(sibling)) is not None:
                    position += sibling_position
                    break
                position += 1
            self._positions[element] = position
        return f"{tag}[{position}]"


def find(root: Element, path: str) -> Element | None:
    """Return the element with a `node_path`, or None if this tree has no such node."""
    matches = cast("list[Element]", root.getroottree().xpath(path))
    return matches[0] if matches else None


def _tag(element: Element) -> str:
    """Return an element's tag, or the XPath node test of a comment or processing instruction."""
    tag: Any = element.tag
    return tag if isinstance(tag, str) else _NODE_TESTS[tag]


def is_xpath_name(tag: str) -> bool:
    """Return whether XPath can express the name of an element."""
    return _XPATH_NAME.match(tag) is not None


def _step(element: Element) -> str:
    tag: Any = element.tag
    if not isinstance(tag, str) or is_xpath_name(tag):
        position = 1 + sum(1 for _ in element.itersiblings(tag, preceding=True))
        return f"{_tag(element)}[{position}]"
    position = 1 + sum(1 for sibling in element.itersiblings(preceding=True) if isinstance(sibling.tag, str))
    return f"*[{position}]"


def elements_with_tag(root: Element, tag: str) -> Iterator[Element]:
    """Return the elements of a page that have a tag, in document order; all for `*`."""
    try:
        return root.iter(tag)
    except ValueError:
        return (element for element in root.iter(etree.Element) if element.tag == tag)


def siblings_with_tag(element: Element, *, preceding: bool = False) -> Iterator[Element]:
    """Return the siblings after an element that have its tag, or those before it, nearest first."""
    try:
        return element.itersiblings(str(element.tag), preceding=preceding)
    except ValueError:
        siblings = element.itersiblings(preceding=preceding)
        return (sibling for sibling in siblings if sibling.tag == element.tag)


def elements_in_order(root: Element) -> list[Element]:
    """Return the elements of a page in document order; each has its index as its number."""
    return list(root.iter(etree.Element))
