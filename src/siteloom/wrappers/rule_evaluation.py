"""Select the nodes of a page, or of a record on it, that have all features of a rule."""

from __future__ import annotations

import sys
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import TooMuchFound
from siteloom.html.guards import RECORDS_TOO_LARGE
from siteloom.html.node_paths import (
    TextPosition,
    elements_with_tag,
    is_visible_element,
    next_text_position,
    previous_text_position,
    siblings_with_tag,
    text_before,
    text_position_before,
    texts_from,
)
from siteloom.html.visible_text import (
    FRAMES,
    HIDDEN,
    NOT_CONTENT,
    attribute_words,
    normalize,
    text_nodes,
    visible_text,
)
from siteloom.wrappers.feature_index import BY_TEXT
from siteloom.wrappers.rule_features import TEXT_KINDS, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.html.parser import Element
    from siteloom.wrappers.feature_index import Occurrences, Search, Step
    from siteloom.wrappers.rule_features import Feature, RecordRule, Rule

_ABOUT_TEXT = frozenset({"shape", "first-text"})

# The total text of the nodes that a rule selects. Texts and attributes are no longer than their page, but
# nested elements, up to some 2,000 deep, each repeat the text of all elements in them.
_MAX_CHARACTERS = 50_000_000  # several times the size of the largest page that is parsed


class Node(NamedTuple):
    """A text, or an element that stands for itself or for one of its HTML attributes."""

    element: Element
    spot: TextPosition | None
    text: str


class NodePosition(NamedTuple):
    """The position of a node among others.

    The position of its element among siblings of the same tag and its depth in elements, both 0 outside
    a record's elements; the number of a text in its parent, else 0.
    """

    position: int
    text_number: int
    depth: int


class Scope(NamedTuple):
    """The part of a page that is searched: one record, from its first element up to the position after it."""

    start: Element
    end: TextPosition | None

    @property
    def tops(self) -> list[Element]:
        """The topmost elements of the record: one, or all siblings that it continues through."""
        tops = [self.start]
        for sibling in self.start.itersiblings():
            if self.end == _behind(self.start) or (self.end is not None and sibling is self.end.parent):
                break
            if isinstance(sibling.tag, str):
                tops.append(sibling)
        return tops

    @property
    def begin(self) -> TextPosition | None:
        """The last text position before the record."""
        return text_position_before(self.start)


def select(search: Search, page_occurrences: Occurrences) -> list[Node]:
    """Return the nodes of a page that a rule selects, in document order."""
    target, trigger, steps, features = search
    if trigger is None or trigger.kind in TEXT_KINDS:
        candidates = _candidates_by_text(search, page_occurrences)
        is_in_order = trigger is None
    else:
        elements = _elements_with(trigger, page_occurrences)
        candidates = _below(elements, steps, target)
        is_in_order = len(elements) <= 1
    # Elements in the head count although they are not shown: meta, title.
    hidden = HIDDEN if target == "text" else NOT_CONTENT
    matching_nodes = (
        node
        for candidate in candidates
        if (node := _node(candidate, target, features, None)) is not None
        and _is_outside(node.element, hidden)
    )
    nodes = _bounded(matching_nodes) if target == "element" else list(matching_nodes)
    return nodes if is_in_order or len(nodes) <= 1 else _once_in_document_order(nodes)


def select_in(rule: Rule, record: Scope) -> list[Node]:
    """Return the nodes of a record that a rule selects, in document order."""
    begin = TextPosition(record.start, None)
    if rule.target == "text":
        candidates: Iterable[TextPosition | Element] = texts_from(begin, record.end)
    else:
        candidates = _elements_from(begin, record.end)
    nodes = (
        node
        for candidate in candidates
        if (node := _node(candidate, rule.target, rule.features, record)) is not None
    )
    return _bounded(nodes) if rule.target == "element" else list(nodes)


def _bounded(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes, or raise TooMuchFound if their total text exceeds the limit."""
    bounded_nodes: list[Node] = []
    characters_left = _MAX_CHARACTERS
    for node in nodes:
        characters_left -= len(node.text)
        if characters_left < 0:
            detail = f"the elements that a rule finds have more than {_MAX_CHARACTERS:,} characters"
            raise TooMuchFound(RECORDS_TOO_LARGE, detail)
        bounded_nodes.append(node)
    return bounded_nodes


def records(rule: RecordRule, root: Element) -> list[Scope]:
    """Return the records of a list page, in document order."""
    starts = _starts(rule.features, root)
    if not starts and rule.fallback:
        starts = _starts(rule.fallback, root)
    if not rule.runs_on:
        return [Scope(start, _behind(start)) for start in starts]
    return [
        Scope(start, _end_of_run(start, following)) for start, following in zip_longest(starts, starts[1:])
    ]


def _starts(features: tuple[Feature, ...], root: Element) -> list[Element]:
    """Return the outermost elements that have all features: a record inside a record is part of it."""
    starts: list[Element] = []
    tag = next(
        (feature.value for feature in features if feature.kind == "tag" and feature.distance == 0), "*"
    )
    for element in elements_with_tag(root, tag):
        if (
            is_visible_element(element)
            and has_features(Node(element, None, ""), features, None)
            and _is_outside(element, HIDDEN)
            and (not starts or starts[-1] not in element.iterancestors())
        ):
            starts.append(element)
    return starts


def _behind(element: Element) -> TextPosition | None:
    above = element.getparent()
    return None if above is None else TextPosition(above, element)


def _end_of_run(start: Element, following: Element | None) -> TextPosition | None:
    parent = start.getparent()
    if following is not None and following.getparent() is parent:
        return TextPosition(following, None)
    return None if parent is None else _behind(parent)


def has_features(node: Node, features: Iterable[Feature], record: Scope | None) -> bool:
    """Return whether a node has all features, relative to its record if one is given."""
    for feature in features:  # noqa: SIM110 - `all` takes twice the time here
        if not _has(node, feature, record):
            return False
    return True


def _has(node: Node, feature: Feature, record: Scope | None) -> bool:
    kind, value = feature.kind, feature.value
    if kind == "shape":
        return shape(node.text) == value
    begin = record.begin if record else None
    if node.spot is not None:
        if kind == "text-before":
            return _has_text(text_before(previous_text_position(node.spot), begin), value)
        if kind == "prefix":
            return node.text.startswith(value)
        if kind == "text-number":
            return _text_number(node.spot, record, int(value)) == int(value)
    element = _ancestor(node.element, feature.distance, record)
    return element is not None and _element_has(element, feature, node, record)


def node_position(node: Node, record: Scope | None) -> NodePosition:
    """Return the position of a node on its page, or in its record."""
    position = depth = 0
    if _ancestor(node.element, 0, record) is not None:
        position = _position(node.element, record)
        top = None if record is None else record.start.getparent()
        ancestor: Element | None = node.element
        while ancestor is not None and ancestor is not top:
            depth += 1
            ancestor = ancestor.getparent()
    return NodePosition(position, _text_number(node.spot, record) if node.spot else 0, depth)


def _element_has(element: Element, feature: Feature, node: Node, record: Scope | None) -> bool:
    value = feature.value
    match feature.kind:
        case "tag":
            return bool(element.tag == value)
        case "id":
            return element.get("id") == value
        case "class":
            return " ".join(attribute_words(element.get("class", ""))) == value
        case "class-word":
            return value in attribute_words(element.get("class", ""))
        case "attribute":
            name, _, expected = value.partition("=")
            return " ".join(attribute_words(element.get(name, ""))) == expected
        case "position":
            return _position(element, record, int(value)) == int(value)
        case "last-position":
            return _last_position(element, record, int(value)) == int(value)
        case "before":
            outside = next(element.iterancestors("head"), element)
            return _has_text(
                text_before(text_position_before(outside), record.begin if record else None), value
            )
        case "first-text":
            inside = next(texts_from(TextPosition(element, None), _behind(element)), None)
            return _is_outside(element, HIDDEN) and _has_text(inside, value) and _has_other_text(node, value)
    return False


def _has_other_text(node: Node, text: str) -> bool:
    """Return whether a node's text differs, which it also does if several texts of an element make it up."""
    if node.spot is None and node.text == text == visible_text(node.element):
        return [normalize(inside.text) for inside in text_nodes(node.element)] != [text]
    return node.text != text


def _has_text(spot: TextPosition | None, text: str) -> bool:
    return spot is not None and normalize(spot.text) == text


def _ancestor(element: Element, distance: int, record: Scope | None) -> Element | None:
    top = None if record is None else record.start.getparent()
    ancestor: Element | None = element
    for _ in range(distance):
        if ancestor is None or ancestor is top:
            return None
        ancestor = ancestor.getparent()
    return None if ancestor is top else ancestor


def _position(element: Element, record: Scope | None, limit: int = sys.maxsize) -> int:
    """Return the number among siblings of the same tag, or any number above `limit` if larger."""
    position = 1
    if record is not None and element is record.start:
        return position
    # Among the topmost elements of a record that runs on, stop at its first one, whatever its tag.
    is_top = record is not None and element.getparent() is record.start.getparent()
    preceding_siblings = (
        element.itersiblings(preceding=True) if is_top else siblings_with_tag(element, preceding=True)
    )
    for sibling in preceding_siblings:
        position += sibling.tag == element.tag
        if position > limit or (record is not None and sibling is record.start):
            break
    return position


def _last_position(element: Element, record: Scope | None, limit: int) -> int:
    """Return the number from the last sibling of the same tag, or any number above `limit` if larger."""
    position = 1
    end = None
    if record is not None and element.getparent() is record.start.getparent():
        if record.end == _behind(record.start):  # the record is one element
            return position
        end = None if record.end is None else record.end.parent
    # Among the topmost elements of a record that runs on, stop at the next record, whatever its tag.
    for sibling in siblings_with_tag(element) if end is None else element.itersiblings():
        if sibling is end:
            break
        position += sibling.tag == element.tag
        if position > limit:
            break
    return position


def _text_number(spot: TextPosition, record: Scope | None, limit: int = sys.maxsize) -> int:
    """Return the number among the visible texts of the parent, or any number above `limit` if larger."""
    number = 0
    first_element = record.start if record is not None and record.start.getparent() is spot.parent else None
    preceding_element = spot.preceding
    while number <= limit:
        text = spot.parent.text if preceding_element is None else preceding_element.tail
        number += bool(text and not text.isspace())
        if preceding_element is None or preceding_element is first_element:
            break
        preceding_element = preceding_element.getprevious()
    return number


def _is_outside(element: Element, tags: frozenset[str]) -> bool:
    """Return whether an element neither is nor is inside an element with one of these tags."""
    return element.tag not in tags and next(element.iterancestors(*tags), None) is None


def _node(
    candidate: TextPosition | Element, target: str, features: Iterable[Feature], record: Scope | None
) -> Node | None:
    """Return the node of a candidate, or None if it lacks a feature."""
    if isinstance(candidate, TextPosition):
        node = Node(candidate.parent, candidate, normalize(candidate.text))
        return node if has_features(node, features, record) else None
    if target == "element":
        # Collecting all the text inside is slow, and few features need it.
        bare = Node(candidate, None, "")
        if not has_features(
            bare, (feature for feature in features if feature.kind not in _ABOUT_TEXT), record
        ):
            return None
        node = bare._replace(text=visible_text(candidate))
        return (
            node
            if has_features(node, (feature for feature in features if feature.kind in _ABOUT_TEXT), record)
            else None
        )
    attribute_value = candidate.get(target[1:])
    if attribute_value is None:
        return None
    node = Node(candidate, None, normalize(attribute_value))
    return node if has_features(node, features, record) else None


def _candidates_by_text(search: Search, page_occurrences: Occurrences) -> Iterable[TextPosition | Element]:
    """Return the nodes that match a text trigger, in walk order; without a trigger all, in document order."""
    target, trigger = search.target, search.trigger
    if trigger is None:
        return (
            texts_from(TextPosition(page_occurrences.root, None))
            if target == "text"
            else page_occurrences.root.iter("*")
        )
    if trigger.kind != "text-before":
        return page_occurrences.texts.get((trigger.kind, trigger.value), ())
    following = (
        next(texts_from(next_text_position(spot)), None) for spot in _shown(trigger.value, page_occurrences)
    )
    return [spot for spot in following if spot is not None]


def _shown(text: str, page_occurrences: Occurrences) -> list[TextPosition]:
    """Return the positions where a text is visible."""
    return [
        spot for spot in page_occurrences.texts.get(("text", text), ()) if _is_outside(spot.parent, HIDDEN)
    ]


def _elements_with(trigger: Feature, page_occurrences: Occurrences) -> list[Element]:
    """Return the elements that match a trigger."""
    if trigger.kind not in BY_TEXT:
        return page_occurrences.elements.get((trigger.kind, trigger.value), [])
    starting_elements = _elements_starting_with if trigger.kind == "first-text" else _elements_starting_after
    return [
        element for spot in _shown(trigger.value, page_occurrences) for element in starting_elements(spot)
    ]


def _elements_starting_after(spot: TextPosition) -> Iterator[Element]:
    """Yield the elements that begin between a text and the next one."""
    following = next_text_position(spot)
    while following is not None:
        yield from _element_starting_at(following)
        if not following.is_blank:
            return
        following = next_text_position(following)


def _element_starting_at(spot: TextPosition) -> tuple[Element, ...]:
    """Return the element that begins at a position, if any, including a frame, whose content is skipped."""
    if spot.preceding is None:
        return (spot.parent,)
    return (spot.preceding,) if spot.preceding.tag in FRAMES else ()


def _elements_starting_with(spot: TextPosition) -> Iterator[Element]:
    """Yield the elements whose first visible text this is."""
    ancestor: Element | None = spot.parent
    preceding_text = text_before(previous_text_position(spot))
    holds_text_before = (
        set() if preceding_text is None else {preceding_text.parent, *preceding_text.parent.iterancestors()}
    )
    while ancestor is not None and ancestor not in holds_text_before:
        yield ancestor
        ancestor = ancestor.getparent()


def _below(
    elements: Sequence[Element], steps: Iterable[Step], target: str
) -> Sequence[TextPosition | Element]:
    """Return the nodes that the steps lead to from these elements, without blank texts."""
    for tag, number in steps:
        if number is None:
            elements = [child for parent in elements for child in parent.iterchildren(tag)]
        else:
            elements = [
                child for parent in elements for child in islice(parent.iterchildren(tag), number - 1, number)
            ]
    if target != "text":
        return elements
    spots: list[TextPosition | Element] = []
    for parent in elements:
        if (text := parent.text) and not text.isspace():
            spots.append(TextPosition(parent, None))
        spots += [
            TextPosition(parent, child) for child in parent if (text := child.tail) and not text.isspace()
        ]
    return spots


def _elements_from(spot: TextPosition, end: TextPosition | None) -> Iterator[Element]:
    """Yield the elements that begin between a position and an end."""
    current: TextPosition | None = spot
    while current is not None and current != end:
        yield from _element_starting_at(current)
        current = next_text_position(current)


def _once_in_document_order(nodes: Iterable[Node]) -> list[Node]:
    unique_nodes = {(node.element, node.spot.preceding if node.spot else None): node for node in nodes}
    return (
        list(unique_nodes.values())
        if len(unique_nodes) == 1
        else sorted(unique_nodes.values(), key=_document_position)
    )


def _document_position(node: Node) -> tuple[int, ...]:
    """Return the child numbers on the path to a node, counting texts and elements alike."""
    child_numbers: list[int] = []
    if node.spot is not None:
        preceding_element = node.spot.preceding
        child_numbers.append(
            0 if preceding_element is None else 2 * node.element.index(preceding_element) + 2
        )
    element = node.element
    while (parent := element.getparent()) is not None:
        child_numbers.append(2 * parent.index(element) + 1)
        element = parent
    return tuple(reversed(child_numbers))
