"""What of the drawings on a page can be drawn."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from lxml import etree

from siteloom.annotating.markup import BREAKS_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.dom import Element

# Browsers copy what is drawn again, and a page may ask for copies without end; icons have few elements.
_MOST_COPIES = 50_000


def broken_out_of(root: Element) -> set[Element]:
    """The elements with something inside that cannot stand in a drawing: an `svg` among them is none."""
    if root.find(".//svg") is None:
        return set()
    return _holders(root.iter(*BREAKS_OUT), "foreignobject")


def reference(element: Element) -> str | None:
    """What an element of a drawing refers to."""
    return element.get("href", element.get("xlink:href"))


def drawn_again(root: Element) -> set[Element]:
    """The `use` elements of which copies may be drawn: not those of copies, and of all not too many."""
    uses = list(root.iter("use"))
    if not uses:
        return set()
    copies = _holders(uses) | set(uses)
    by_id: dict[str, Element] = {}
    for element in root.iter(etree.Element):
        by_id.setdefault(element.get("id") or "", element)
    found: set[Element] = set()
    left = _MOST_COPIES
    for use in uses:
        copied = by_id.get((reference(use) or "").removeprefix("#"))
        if copied is None or copied in copies:
            continue
        left -= sum(1 for _ in islice(copied.iter(), left + 1))
        if left < 0:
            break
        found.add(use)
    return found


def _holders(elements: Iterable[Element], end: str = "") -> set[Element]:
    """All that elements stand in, up to an element called `end`."""
    found: set[Element] = set()
    for element in elements:
        above = element.getparent()
        while above is not None and above not in found and above.tag != end:
            found.add(above)
            above = above.getparent()
    return found
