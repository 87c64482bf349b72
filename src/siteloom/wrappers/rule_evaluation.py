"""The nodes that a rule means, on a page or in a record of it: those that have all its features."""

from __future__ import annotations

import sys
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import TooMuchFound
from siteloom.html.guards import RECORDS_TOO_LARGE
from siteloom.html.node_paths import (
    Spot,
    elements_with_tag,
    is_seen,
    next_spot,
    previous_spot,
    siblings_with_tag,
    spot_before,
    text_before,
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

# What the nodes that a rule means may say together. Texts and attributes say no more than their page, but of
# elements that stand in each other, up to some 2,000 deep, each says all that those in it do.
_MOST_SAID = 50_000_000  # characters, some times what the largest page has that is parsed


class Node(NamedTuple):
    """A text, or an element that stands for itself or for one of its HTML attributes."""

    element: Element
    spot: Spot | None
    text: str


class Standing(NamedTuple):
    """Where a node stands among others.

    The position of its element among those of the same tag and how many elements it
    is deep, both 0 outside of a record's elements; the number of a text in its parent, else 0.
    """

    position: int
    text_number: int
    depth: int


class Scope(NamedTuple):
    """The part of a page that is looked at: one record, from its first element up to a spot behind it."""

    start: Element
    end: Spot | None

    @property
    def tops(self) -> list[Element]:
        """The topmost elements of the record: one, or as many as it runs on through."""
        tops = [self.start]
        for sibling in self.start.itersiblings():
            if self.end == _behind(self.start) or (self.end is not None and sibling is self.end.parent):
                break
            if isinstance(sibling.tag, str):
                tops.append(sibling)
        return tops

    @property
    def begin(self) -> Spot | None:
        """The last spot before the record."""
        return spot_before(self.start)


def select(search: Search, found: Occurrences) -> list[Node]:
    """The nodes of a page that a rule means, in document order."""
    target, trigger, steps, features = search
    if trigger is None or trigger.kind in TEXT_KINDS:
        candidates = _candidates_by_text(search, found)
        is_in_order = trigger is None
    else:
        elements = _elements_with(trigger, found)
        candidates = _below(elements, steps, target)
        is_in_order = len(elements) <= 1
    # Of what is in the head, elements count although nothing is shown there: meta, title.
    hidden = HIDDEN if target == "text" else NOT_CONTENT
    meant = (
        node
        for candidate in candidates
        if (node := _node(candidate, target, features, None)) is not None
        and _is_outside(node.element, hidden)
    )
    nodes = _bounded(meant) if target == "element" else list(meant)
    return nodes if is_in_order or len(nodes) <= 1 else _once_in_document_order(nodes)


def select_in(rule: Rule, record: Scope) -> list[Node]:
    """The nodes of a record that a rule means, in document order."""
    begin = Spot(record.start, None)
    if rule.target == "text":
        candidates: Iterable[Spot | Element] = texts_from(begin, record.end)
    else:
        candidates = _elements_from(begin, record.end)
    nodes = (
        node
        for candidate in candidates
        if (node := _node(candidate, rule.target, rule.features, record)) is not None
    )
    return _bounded(nodes) if rule.target == "element" else list(nodes)


def _bounded(nodes: Iterable[Node]) -> list[Node]:
    """The nodes, if they do not say more together than any page."""
    found: list[Node] = []
    left = _MOST_SAID
    for node in nodes:
        left -= len(node.text)
        if left < 0:
            detail = f"the elements that a rule finds have more than {_MOST_SAID:,} characters"
            raise TooMuchFound(RECORDS_TOO_LARGE, detail)
        found.append(node)
    return found


def records(rule: RecordRule, root: Element) -> list[Scope]:
    """The records of a list page, in document order."""
    starts = _starts(rule.features, root)
    if not starts and rule.fallback:
        starts = _starts(rule.fallback, root)
    if not rule.runs_on:
        return [Scope(start, _behind(start)) for start in starts]
    return [Scope(start, _end_of_run(start, after)) for start, after in zip_longest(starts, starts[1:])]


def _starts(features: tuple[Feature, ...], root: Element) -> list[Element]:
    """The outermost elements that have all features: a record inside a record is part of it."""
    starts: list[Element] = []
    tag = next((one.value for one in features if one.kind == "tag" and one.distance == 0), "*")
    for element in elements_with_tag(root, tag):
        if (
            is_seen(element)
            and has_features(Node(element, None, ""), features, None)
            and _is_outside(element, HIDDEN)
            and (not starts or starts[-1] not in element.iterancestors())
        ):
            starts.append(element)
    return starts


def _behind(element: Element) -> Spot | None:
    above = element.getparent()
    return None if above is None else Spot(above, element)


def _end_of_run(start: Element, following: Element | None) -> Spot | None:
    parent = start.getparent()
    if following is not None and following.getparent() is parent:
        return Spot(following, None)
    return None if parent is None else _behind(parent)


def has_features(node: Node, features: Iterable[Feature], record: Scope | None) -> bool:
    """Whether a node has all features, in its record if it is looked at as part of one."""
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
            return _says(text_before(previous_spot(node.spot), begin), value)
        if kind == "prefix":
            return node.text.startswith(value)
        if kind == "text-number":
            return _text_number(node.spot, record, int(value)) == int(value)
    element = _ancestor(node.element, feature.distance, record)
    return element is not None and _element_has(element, feature, node, record)


def standing(node: Node, record: Scope | None) -> Standing:
    """Where a node stands on its page, or in its record."""
    position = depth = 0
    if _ancestor(node.element, 0, record) is not None:
        position = _position(node.element, record)
        top = None if record is None else record.start.getparent()
        above: Element | None = node.element
        while above is not None and above is not top:
            depth += 1
            above = above.getparent()
    return Standing(position, _text_number(node.spot, record) if node.spot else 0, depth)


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
            return _says(text_before(spot_before(outside), record.begin if record else None), value)
        case "first-text":
            inside = next(texts_from(Spot(element, None), _behind(element)), None)
            return _is_outside(element, HIDDEN) and _says(inside, value) and _says_else(node, value)
    return False


def _says_else(node: Node, text: str) -> bool:
    """Whether a node says something else; an element does so as well if more than one text says it."""
    if node.spot is None and node.text == text == visible_text(node.element):
        return [normalize(inside.text) for inside in text_nodes(node.element)] != [text]
    return node.text != text


def _says(spot: Spot | None, text: str) -> bool:
    return spot is not None and normalize(spot.text) == text


def _ancestor(element: Element, distance: int, record: Scope | None) -> Element | None:
    top = None if record is None else record.start.getparent()
    found: Element | None = element
    for _ in range(distance):
        if found is None or found is top:
            return None
        found = found.getparent()
    return None if found is top else found


def _position(element: Element, record: Scope | None, most: int = sys.maxsize) -> int:
    """The number among siblings of the same tag; where it is larger than `most`, something larger."""
    position = 1
    if record is not None and element is record.start:
        return position
    # Among the topmost elements of a record that runs on, its first one is to be met, whatever its tag.
    is_top = record is not None and element.getparent() is record.start.getparent()
    before = element.itersiblings(preceding=True) if is_top else siblings_with_tag(element, preceding=True)
    for sibling in before:
        position += sibling.tag == element.tag
        if position > most or (record is not None and sibling is record.start):
            break
    return position


def _last_position(element: Element, record: Scope | None, most: int) -> int:
    """The number from the last sibling of the same tag; where it is larger than `most`, something larger."""
    position = 1
    end = None
    if record is not None and element.getparent() is record.start.getparent():
        if record.end == _behind(record.start):  # the record is one element
            return position
        end = None if record.end is None else record.end.parent
    # Among the topmost elements of a record that runs on, the next record is to be met, whatever its tag.
    for sibling in siblings_with_tag(element) if end is None else element.itersiblings():
        if sibling is end:
            break
        position += sibling.tag == element.tag
        if position > most:
            break
    return position


def _text_number(spot: Spot, record: Scope | None, most: int = sys.maxsize) -> int:
    """The number among the visible texts of the parent; where it is larger than `most`, something larger."""
    number = 0
    first = record.start if record is not None and record.start.getparent() is spot.parent else None
    after = spot.after
    while number <= most:
        text = spot.parent.text if after is None else after.tail
        number += bool(text and not text.isspace())
        if after is None or after is first:
            break
        after = after.getprevious()
    return number


def _is_outside(element: Element, tags: frozenset[str]) -> bool:
    """Whether an element is none of these and stands in none."""
    return element.tag not in tags and next(element.iterancestors(*tags), None) is None


def _node(
    candidate: Spot | Element, target: str, features: Iterable[Feature], record: Scope | None
) -> Node | None:
    """The node of a candidate, if it has all features."""
    if isinstance(candidate, Spot):
        node = Node(candidate.parent, candidate, normalize(candidate.text))
        return node if has_features(node, features, record) else None
    if target == "element":
        # To read all the text inside takes long, and few features are about it.
        bare = Node(candidate, None, "")
        if not has_features(bare, (one for one in features if one.kind not in _ABOUT_TEXT), record):
            return None
        node = bare._replace(text=visible_text(candidate))
        return node if has_features(node, (f for f in features if f.kind in _ABOUT_TEXT), record) else None
    found = candidate.get(target[1:])
    if found is None:
        return None
    node = Node(candidate, None, normalize(found))
    return node if has_features(node, features, record) else None


def _candidates_by_text(search: Search, found: Occurrences) -> Iterable[Spot | Element]:
    """The nodes that have a trigger of texts, in the order of the walk; or all, in document order."""
    target, trigger = search.target, search.trigger
    if trigger is None:
        return texts_from(Spot(found.root, None)) if target == "text" else found.root.iter("*")
    if trigger.kind != "text-before":
        return found.texts.get((trigger.kind, trigger.value), ())
    following = (next(texts_from(next_spot(spot)), None) for spot in _shown(trigger.value, found))
    return [spot for spot in following if spot is not None]


def _shown(text: str, found: Occurrences) -> list[Spot]:
    """Where a text is shown."""
    return [spot for spot in found.texts.get(("text", text), ()) if _is_outside(spot.parent, HIDDEN)]


def _elements_with(trigger: Feature, found: Occurrences) -> list[Element]:
    """The elements that have a trigger."""
    if trigger.kind not in BY_TEXT:
        return found.elements.get((trigger.kind, trigger.value), [])
    begun = _begun_by if trigger.kind == "first-text" else _begun_after
    return [element for spot in _shown(trigger.value, found) for element in begun(spot)]


def _begun_after(spot: Spot) -> Iterator[Element]:
    """The elements that begin between a text and the next one."""
    following = next_spot(spot)
    while following is not None:
        yield from _begun_at(following)
        if not following.is_blank:
            return
        following = next_spot(following)


def _begun_at(spot: Spot) -> tuple[Element, ...]:
    """The element that begins at a spot, if one does; a frame, whose content is passed over, ends there."""
    if spot.after is None:
        return (spot.parent,)
    return (spot.after,) if spot.after.tag in FRAMES else ()


def _begun_by(spot: Spot) -> Iterator[Element]:
    """The elements whose first visible text this is."""
    above: Element | None = spot.parent
    before = text_before(previous_spot(spot))
    holds_text_before = set() if before is None else {before.parent, *before.parent.iterancestors()}
    while above is not None and above not in holds_text_before:
        yield above
        above = above.getparent()


def _below(elements: Sequence[Element], steps: Iterable[Step], target: str) -> Sequence[Spot | Element]:
    """The nodes to which the steps lead from these elements; of texts those that are not blank."""
    for tag, number in steps:
        if number is None:
            elements = [child for parent in elements for child in parent.iterchildren(tag)]
        else:
            elements = [
                child for parent in elements for child in islice(parent.iterchildren(tag), number - 1, number)
            ]
    if target != "text":
        return elements
    spots: list[Spot | Element] = []
    for parent in elements:
        if (text := parent.text) and not text.isspace():
            spots.append(Spot(parent, None))
        spots += [Spot(parent, child) for child in parent if (text := child.tail) and not text.isspace()]
    return spots


def _elements_from(spot: Spot, end: Spot | None) -> Iterator[Element]:
    """The elements that begin from a spot on up to an end."""
    found: Spot | None = spot
    while found is not None and found != end:
        yield from _begun_at(found)
        found = next_spot(found)


def _once_in_document_order(nodes: Iterable[Node]) -> list[Node]:
    once = {(node.element, node.spot.after if node.spot else None): node for node in nodes}
    return list(once.values()) if len(once) == 1 else sorted(once.values(), key=_place)


def _place(node: Node) -> tuple[int, ...]:
    """The numbers of the children on the way to a node, texts and elements counted alike."""
    place: list[int] = []
    if node.spot is not None:
        after = node.spot.after
        place.append(0 if after is None else 2 * node.element.index(after) + 2)
    element = node.element
    while (parent := element.getparent()) is not None:
        place.append(2 * parent.index(element) + 1)
        element = parent
    return tuple(reversed(place))
