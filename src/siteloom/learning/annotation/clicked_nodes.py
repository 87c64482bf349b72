"""What a person points at on a page that is shown, and the nodes that learning means by it.

    elements = numbered(root)
    picked(elements, Pick(element=17, text=2))      # Picked(text="Blue Fern", node="/html[1]/.../text()[2]")

The elements of a page have their numbers in the order of the document, those
that are not shown as well; a browser is told them, and sends them back.
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
    """What was pointed at: the number of an element, and which of its texts or attributes.

    `text` counts the text children from 1, as XPath does; without it and without `attribute`, all
    the text that is seen inside the element is meant. `start` and `end` are there if only part of
    it is: offsets in the text or attribute as it stands in the page, or in the normal form of all
    the text inside. They count UTF-16 code units, as browsers do.
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
    """The value that a pick means; an error if there is none."""
    if not 0 <= pick.element < len(elements):
        raise UsageError(f"The page has no element {pick.element}: load the page again.")
    element = elements[pick.element]
    node_text, node = _node_text(element, pick)
    text = normalize(_selected_part(node_text, pick))
    if not text:
        raise UsageError("Nothing can be read there: choose a place with some text.")
    return Picked(text, node)


def pick_of_node(elements: Sequence[Element], numbers: Mapping[Element, int], node: str) -> Pick | None:
    """The pick that means all of the node of a path; None if it is not there.

    `numbers` are those of `elements`.
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
    """The pick that means a value in the node of a path; None if it is not there.

    Of several places in one node it is the first.
    """
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
        place.element,
        place.text,
        place.attribute,
        _utf16_length(node_text[:start]),
        _utf16_length(node_text[:end]),
    )


def _node_text(element: Element, pick: Pick) -> tuple[str, str]:
    """All of the text or attribute that a pick is about, as it stands there, and the path of its node."""
    if pick.attribute is not None:
        if pick.text is not None:
            raise UsageError("A value is taken from a text or from an attribute, not from both: send one.")
        try:
            value = element.get(pick.attribute)
        except ValueError:  # nothing can be called so, like {
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
    """The text children of an element."""
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
    """Offsets in the normal form of a text to those in the text itself."""
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
