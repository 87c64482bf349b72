"""Tag paths and positions of nodes and texts: find a node by path or id, step from one text to the next.

A spot is a place in the tree where a text node can be: at the beginning of an
element, or behind one of its children.

Broken pages have elements with control characters in their names, which lxml gives but does not take.
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
    """The place in `parent` behind its child `after`; if that is None, before all children."""

    parent: Element
    after: Element | None

    @property
    def text(self) -> str:
        """The text node that stands here; empty where there is none."""
        return (self.parent.text if self.after is None else self.after.tail) or ""

    @property
    def number(self) -> int:
        """The number of this text among those of the parent, as XPath counts text nodes."""
        number = 0
        after = self.after
        while after is not None:
            number += bool(after.tail)
            after = after.getprevious()
        return number + bool(self.parent.text)

    @property
    def is_blank(self) -> bool:
        """Whether nothing can be seen here."""
        text = self.text
        return not text or text.isspace()


def position_of_text(parent: Element, number: int) -> TextPosition:
    """The spot of the text of a parent that has this number, as XPath counts text nodes."""
    spot = TextPosition(parent, None)
    number -= bool(parent.text)
    for child in parent:
        if number == 0:
            break
        spot = TextPosition(parent, child)
        number -= bool(child.tail)
    return spot


def is_seen(node: Element) -> bool:
    """Whether a child of an element is itself an element whose content is shown, and no comment."""
    return isinstance(node.tag, str) and node.tag not in HIDDEN


def next_text_position(spot: TextPosition) -> TextPosition | None:
    """The spot that comes next; insides of what is not seen are left out."""
    parent, after = spot
    child = after.getnext() if after is not None else parent[0] if len(parent) else None
    if child is None:
        above = parent.getparent()
        return None if above is None else TextPosition(above, parent)
    return TextPosition(child, None) if is_seen(child) else TextPosition(parent, child)


def previous_text_position(spot: TextPosition) -> TextPosition | None:
    """The spot that came before."""
    parent, after = spot
    if after is None:
        return text_position_before(parent)
    if is_seen(after):
        return TextPosition(after, after[-1] if len(after) else None)
    return TextPosition(parent, after.getprevious())


def text_position_before(element: Element) -> TextPosition | None:
    """The spot just before an element begins."""
    above = element.getparent()
    return None if above is None else TextPosition(above, element.getprevious())


def texts_from(spot: TextPosition | None, end: TextPosition | None = None) -> Iterator[TextPosition]:
    """The spots with a visible text from this one on, up to but without `end`."""
    while spot is not None and spot != end:
        if not spot.is_blank:
            yield spot
        spot = next_text_position(spot)


def text_before(spot: TextPosition | None, begin: TextPosition | None = None) -> TextPosition | None:
    """The nearest spot with a visible text, this one or one before it, but behind `begin`."""
    while spot is not None and spot != begin:
        if not spot.is_blank:
            return spot
        spot = previous_text_position(spot)
    return None


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


# Broken markup gives elements names like `o:p` or `a"b`, which XPath cannot say.
_XPATH_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)

_PLAIN_PATH = re.compile(r"(?:/[a-z][a-z0-9]*+(?:\[[0-9]++\])?+)++")

# So many paths libxml2 is asked for: it counts much faster, and most pages have fewer values.
_FEW = 100

# A comment's tag is the function that makes comments, which lxml's types leave out.
_NODE_TESTS: dict[Any, str] = {
    etree.Comment: "comment()",
    etree.ProcessingInstruction: "processing-instruction()",
}


def tag_path(element: Element) -> str:
    """The tags from the root down to an element: `html/body/div`."""
    tags = [_tag(element), *map(_tag, element.iterancestors())]
    return "/".join(reversed(tags))


def node_path(element: Element) -> str:
    """The XPath that leads to this element alone: `/html[1]/body[1]/div[2]`."""
    path = element.getroottree().getpath(element)
    if _PLAIN_PATH.fullmatch(path):  # libxml2 has counted, much faster; but only children have no number
        return "".join(f"/{step}" if step[-1] == "]" else f"/{step}[1]" for step in path[1:].split("/"))
    steps = [_step(element), *map(_step, element.iterancestors())]
    return "/" + "/".join(reversed(steps))


class NodePaths:
    """`node_path` for many nodes of trees, which must not change meanwhile: siblings are counted once.

    The records of a long list are siblings, and to count those before each takes the square of their number.
    """

    def __init__(self) -> None:
        self._asked_for = 0
        self._positions: dict[Element, int] = {}

    def __call__(self, element: Element) -> str:
        """The path of a node."""
        self._asked_for += 1
        if self._asked_for <= _FEW:
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
                if (before := self._positions.get(sibling)) is not None:
                    position += before
                    break
                position += 1
            self._positions[element] = position
        return f"{tag}[{position}]"


def find(root: Element, path: str) -> Element | None:
    """The element that `node_path` describes, or None where this tree has no such node."""
    found = cast("list[Element]", root.getroottree().xpath(path))
    return found[0] if found else None


def _tag(element: Element) -> str:
    """An element's tag; comments and processing instructions are written as XPath tests them."""
    tag: Any = element.tag
    return tag if isinstance(tag, str) else _NODE_TESTS[tag]


def is_xpath_name(tag: str) -> bool:
    """Whether XPath can say the name of an element."""
    return _XPATH_NAME.match(tag) is not None


def _step(element: Element) -> str:
    tag: Any = element.tag
    if not isinstance(tag, str) or is_xpath_name(tag):
        position = 1 + sum(1 for _ in element.itersiblings(tag, preceding=True))
        return f"{_tag(element)}[{position}]"
    position = 1 + sum(1 for sibling in element.itersiblings(preceding=True) if isinstance(sibling.tag, str))
    return f"*[{position}]"


def elements_with_tag(root: Element, tag: str) -> Iterator[Element]:
    """The elements of a page that have a tag, in document order; all for `*`."""
    try:
        return root.iter(tag)
    except ValueError:
        return (element for element in root.iter(etree.Element) if element.tag == tag)


def siblings_with_tag(element: Element, *, preceding: bool = False) -> Iterator[Element]:
    """The siblings behind an element that have its tag, or those before it, the nearest first."""
    try:
        return element.itersiblings(str(element.tag), preceding=preceding)
    except ValueError:
        siblings = element.itersiblings(preceding=preceding)
        return (sibling for sibling in siblings if sibling.tag == element.tag)


def numbered(root: Element) -> list[Element]:
    """The elements of a page, each at its number."""
    return list(root.iter(etree.Element))
