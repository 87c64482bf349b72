"""What rules mean, straight from the words of `siteloom.wrappers.rule_features` and without regard to speed.

Every feature of every node is written down; a rule selects the nodes that have all of its features.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from siteloom.html.node_paths import TextPosition
from siteloom.html.parser import Element
from siteloom.html.visible_text import HIDDEN, NOT_CONTENT, normalize, text_nodes, visible_text
from siteloom.wrappers.rule_features import TELLING_ATTRIBUTES, Feature, RecordRule, Rule, shape


class Selected(NamedTuple):
    """A node as a rule selects it, with its whole text."""

    place: TextPosition | Element
    text: str


class Scope:
    """A page, or the record that an element of it is."""

    def __init__(self, top: Element, is_record: bool) -> None:
        self.top, self.is_record = top, is_record
        self.events = list(_events(top))
        self.visible = [
            (number, spot)
            for number, spot in enumerate(self.events)
            if isinstance(spot, TextPosition) and not _is_inside(spot.parent, HIDDEN) and not spot.is_blank
        ]

    def nodes(self, target: str) -> list[Selected]:
        if target == "text":
            return [Selected(spot, normalize(spot.text)) for _, spot in self.visible]
        unread = NOT_CONTENT | {"head"} if self.is_record else NOT_CONTENT
        elements = [e for e in self.events if not isinstance(e, TextPosition) and not _is_inside(e, unread)]
        if target == "element":
            return [Selected(element, visible_text(element)) for element in elements]
        name = target.removeprefix("@")
        return [Selected(e, normalize(e.get(name, ""))) for e in elements if e.get(name) is not None]

    def select(self, rule: Rule) -> list[Selected]:
        return [n for n in self.nodes(rule.target) if set(rule.features) <= self.features(n, rule.target)]

    def features(self, node: Selected, target: str) -> set[Feature]:
        """All features of a node."""
        found = {Feature("shape", 0, shape(node.text))}
        element: Element | None
        if isinstance(node.place, TextPosition):
            element = node.place.parent
            found |= self._text_features(node.place, node.text)
        else:
            element = node.place
        distance = 0
        while element is not None:
            found |= {Feature(f.kind, distance, f.value) for f in self._element_features(element)}
            first = self._first_text(element)
            if first is not None and _says_something_else(node, target, first):
                found.add(Feature("first-text", distance, first))
            element = None if element is self.top else element.getparent()
            distance += 1
        return found

    def _text_features(self, spot: TextPosition, text: str) -> set[Feature]:
        spots = [s for _, s in self.visible]
        index = spots.index(spot)
        siblings = [s for s in spots if s.parent is spot.parent]
        found = {Feature("text-number", 0, str(siblings.index(spot) + 1))}
        if index:
            found.add(Feature("text-before", 0, normalize(spots[index - 1].text)))
        found |= {Feature("prefix", 0, text[:end]) for end in range(1, len(text) + 1) if text[end - 1] == ":"}
        return found

    def _element_features(self, element: Element) -> Iterator[Feature]:
        yield Feature("tag", 0, str(element.tag))
        yield Feature("position", 0, str(self._position(element, preceding=True)))
        yield Feature("last-position", 0, str(self._position(element, preceding=False)))
        before = [spot for number, spot in self.visible if number < self.events.index(element)]
        if before:
            yield Feature("before", 0, normalize(before[-1].text))
        if (identity := element.get("id")) is not None:
            yield Feature("id", 0, identity)
        if names := _words(element.get("class", "")):
            yield Feature("class", 0, " ".join(names))
            yield from (Feature("class-word", 0, name) for name in names)
        for name in TELLING_ATTRIBUTES:
            if words := _words(element.get(name, "")):
                yield Feature("attribute", 0, f"{name}={' '.join(words)}")

    def _position(self, element: Element, preceding: bool) -> int:
        if self.is_record and element is self.top:
            return 1
        return 1 + sum(sibling.tag == element.tag for sibling in element.itersiblings(preceding=preceding))

    def _first_text(self, element: Element) -> str | None:
        inside = (s for _, s in self.visible if element in (s.parent, *s.parent.iterancestors()))
        return next((normalize(spot.text) for spot in inside), None)


def record_elements(rule: RecordRule, root: Element) -> list[Element]:
    """The elements that records begin with."""
    starts = _outermost(rule.features, root)
    return starts if starts or not rule.fallback else _outermost(rule.fallback, root)


def _outermost(features: tuple[Feature, ...], root: Element) -> list[Element]:
    page = Scope(root, is_record=False)
    starts: list[Element] = []
    for node in page.nodes("element"):
        assert not isinstance(node.place, TextPosition)
        if _is_inside(node.place, HIDDEN) or not set(features) <= page.features(node, "element"):
            continue
        if not any(start in node.place.iterancestors() for start in starts):
            starts.append(node.place)
    return starts


def _says_something_else(node: Selected, target: str, first: str) -> bool:
    if target == "element":
        assert not isinstance(node.place, TextPosition)
        return [normalize(text.text) for text in text_nodes(node.place)] != [first]
    return node.text != first


def _events(element: Element) -> Iterator[TextPosition | Element]:
    yield element
    if element.text:
        yield TextPosition(element, None)
    for child in element:
        if isinstance(child.tag, str):
            yield from _events(child)
        if child.tail:
            yield TextPosition(element, child)


def _words(attribute: str) -> list[str]:
    """What stands between the blanks of HTML, of which a no-break space is none."""
    return [word for word in re.split("[ \t\r\n]+", attribute) if word]


def _is_inside(element: Element, tags: frozenset[str]) -> bool:
    return any(above.tag in tags for above in (element, *element.iterancestors()))
