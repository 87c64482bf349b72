"""Walking from text to text through a tree, in document order.

A spot is a place in the tree where a text node can be: at the beginning of an
element, or behind one of its children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.dom.text import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteloom.dom.tree import Element


class Spot(NamedTuple):
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


def spot_of_text(parent: Element, number: int) -> Spot:
    """The spot of the text of a parent that has this number, as XPath counts text nodes."""
    spot = Spot(parent, None)
    number -= bool(parent.text)
    for child in parent:
        if number == 0:
            break
        spot = Spot(parent, child)
        number -= bool(child.tail)
    return spot


def is_seen(node: Element) -> bool:
    """Whether a child of an element is itself an element whose content is shown, and no comment."""
    return isinstance(node.tag, str) and node.tag not in HIDDEN


def next_spot(spot: Spot) -> Spot | None:
    """The spot that comes next; insides of what is not seen are left out."""
    parent, after = spot
    child = after.getnext() if after is not None else parent[0] if len(parent) else None
    if child is None:
        above = parent.getparent()
        return None if above is None else Spot(above, parent)
    return Spot(child, None) if is_seen(child) else Spot(parent, child)


def previous_spot(spot: Spot) -> Spot | None:
    """The spot that came before."""
    parent, after = spot
    if after is None:
        return spot_before(parent)
    if is_seen(after):
        return Spot(after, after[-1] if len(after) else None)
    return Spot(parent, after.getprevious())


def spot_before(element: Element) -> Spot | None:
    """The spot just before an element begins."""
    above = element.getparent()
    return None if above is None else Spot(above, element.getprevious())


def texts_from(spot: Spot | None, end: Spot | None = None) -> Iterator[Spot]:
    """The spots with a visible text from this one on, up to but without `end`."""
    while spot is not None and spot != end:
        if not spot.is_blank:
            yield spot
        spot = next_spot(spot)


def text_before(spot: Spot | None, begin: Spot | None = None) -> Spot | None:
    """The nearest spot with a visible text, this one or one before it, but behind `begin`."""
    while spot is not None and spot != begin:
        if not spot.is_blank:
            return spot
        spot = previous_spot(spot)
    return None
