"""Convert between a person's selection on a displayed page and the nodes used in learning.

    elements = numbered(root)
    picked(elements, Pick(element=17, text=2))      # Picked(text="Blue Fern", node="/html[1]/.../text()[2]")

The elements of a page, including hidden ones, are numbered in document order; the browser receives the
numbers and sends them back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UsageError
from siteloom.html.node_paths import find, node_path
from siteloom.html.visible_text import normalize, visible_text
from siteloom.learning.value_search.text_equality import span_in
from siteloom.learning.value_search.value_locations import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.html.parser import Element

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Pick:
    """A selection: the number of an element, and one of its texts or attributes.

    `text` counts the text children from 1, as XPath does; without `text` and `attribute`, all visible text
    inside the element is selected. `start` and `end` select a part of it: they are offsets in the raw text or
    attribute, or in the normal form of the whole visible text. They count UTF-16 code units, as browsers do.
    """

    element: int
    text: int | None = None
    attribute: str | None = None
    start: int | None = None
    end: int | None = None


class Picked(NamedTuple):
    """A value in normal form, and the path of its node as `Example.nodes` has it."""

    text: str
    node: str


def picked(elements: Sequence[Element], pick: Pick) -> Picked:
    """Return the value of a pick; raise UsageError if there is none."""
    if not 0 <= pick.element < len(elements):
        raise UsageError(f"The page has no element {pick.element}: load the page again.")
    element = elements[pick.element]
    node_text, node = _node_text(element, pick)
    text = normalize(_selected_part(node_text, pick))
    if not text:
        raise UsageError("Nothing can be read there: choose a place with some text.")
    return Picked(text, node)


def pick_of_node(elements: Sequence[Element], numbers: Mapping[Element, int], node: str) -> Pick | None:
    """Return the pick of a whole node by its path, or None if there is no such node.

    `numbers` has the numbers of `elements`.
    """
    parsed = NODE.fullmatch(node)
    element = find(elements[0], parsed["path"]) if parsed is not None and elements else None
    number = None if element is None else numbers.get(element)
    if parsed is None or element is None or number is None:
        return None
    pick = Pick(number, int(parsed["number"] or 1) if parsed["text"] else None, parsed["attribute"])
    try:
        _node_text(element, pick)
    except UsageError:
        return None
    return pick


def pick_of(elements: Sequence[Element], numbers: Mapping[Element, int], node: str, text: str) -> Pick | None:
    """Return the pick of the first occurrence of a value in the node of a path, or None if there is none."""
    place = pick_of_node(elements, numbers, node)
    if place is None:
        return None
    node_text, _ = _node_text(elements[place.element], place)
    normal = normalize(node_text)
    span = span_in(normal, text) if normalize(text) else None
    if span is None:
        return None
    if span == (0, len(normal)):
        return place
    start, end = _raw_span(node_text, *span)
    return Pick(
        element=place.element,
        text=place.text,
        attribute=place.attribute,
        start=_utf16_length(node_text[:start]),
        end=_utf16_length(node_text[:end]),
    )


def _node_text(element: Element, pick: Pick) -> tuple[str, str]:
    """Return the whole raw text or attribute of a pick, and the path of its node."""
    if pick.attribute is not None:
        if pick.text is not None:
            raise UsageError("A value is taken from a text or from an attribute, not from both: send one.")
        try:
            value = element.get(pick.attribute)
        except ValueError:  # an invalid attribute name such as {
            value = None
        if value is None:
            raise UsageError(f"The element {pick.element} has no {pick.attribute}: load the page again.")
        return value, f"{node_path(element)}/@{pick.attribute}"
    if pick.text is None:
        return visible_text(element), node_path(element)
    for number, text in enumerate(_texts(element), 1):
        if number == pick.text:
            return text, f"{node_path(element)}/text()[{number}]"
    raise UsageError(f"The element {pick.element} has no text {pick.text}: load the page again.")


def _texts(element: Element) -> Iterator[str]:
    """Yield the text children of an element."""
    if element.text:
        yield element.text
    for child in element:
        if child.tail:
            yield child.tail


def _selected_part(text: str, pick: Pick) -> str:
    if pick.start is None and pick.end is None:
        return text
    encoded = text.encode("utf-16-le", "surrogatepass")
    start = 0 if pick.start is None else pick.start
    end = len(encoded) // 2 if pick.end is None else pick.end
    if not 0 <= start <= end <= len(encoded) // 2:
        raise UsageError(
            f"The text has no part from {start} to {end}: give offsets from 0 to {len(encoded) // 2}."
        )
    try:
        return encoded[2 * start : 2 * end].decode("utf-16-le")
    except UnicodeDecodeError:
        raise UsageError(
            f"The part from {start} to {end} cuts a character in two: move its ends by one."
        ) from None


def _raw_span(raw: str, start: int, end: int) -> tuple[int, int]:
    """Convert offsets in the normal form of a text to offsets in the raw text."""
    raw_start = raw_end = at = 0
    for word in _WORD.finditer(raw):
        if at <= start:
            raw_start = word.start() + start - at
        if at < end:
            raw_end = word.start() + end - at
        at += len(word[0]) + 1
    return raw_start, raw_end


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
