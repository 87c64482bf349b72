"""Elements by their tag, whatever it is called.

Broken pages have elements with control characters in their names, which lxml gives but does not take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteloom.dom import Element


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
