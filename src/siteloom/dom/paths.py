"""Where a node stands in its tree, with and without positions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from lxml import etree

if TYPE_CHECKING:
    from siteloom.dom.tree import Element

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
