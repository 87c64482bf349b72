"""Index where the rarest feature of each rule of a wrapper occurs on a page.

All rules are searched for together, and then only the nodes near an occurrence are examined closely. Walking
over a whole page takes most of the time, so each walk does as little as possible per element.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.html.node_paths import (
    TextPosition,
    elements_with_ids,
    elements_with_tag,
    is_visible_element,
    texts_from,
)
from siteloom.html.visible_text import attribute_words, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.html.parser import Element
    from siteloom.wrappers.rule_features import Feature, Rule

# Kinds of features that a rule is searched by, the rarest on a page first. A position counts with its tag.
_TRIGGERS = (
    *("id", "root", "text-before", "before", "first-text", "prefix", "attribute", "high position"),
    *("high text-number", "class", "class-word", "position", "tag", "text-number"),
)
_ORDER = {kind: number for number, kind in enumerate(_TRIGGERS)}
_MOST_REMEMBERED = 10_000  # some sites make up names for each page
_HIGH_NUMBER = 10  # few elements have more children
BY_TEXT = frozenset({"text-before", "before", "first-text"})
"""Kinds of triggers that are found by a whole text."""
_BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)  # all white space there is for `str.split`


class AttributeFeatures(dict[str, tuple[tuple[str, str], ...]]):
    """The searched features that each text of an HTML attribute has, as kinds and values.

    They are computed when a text is first looked up, and cached: a site has few classes and repeats them.
    """

    def __init__(self, name: str, searched_features: frozenset[tuple[str, str]]) -> None:
        super().__init__()
        self._name = name
        self._searched_features = searched_features

    def __missing__(self, attribute_text: str) -> tuple[tuple[str, str], ...]:
        """Compute the features of a text that is looked up for the first time."""
        words = attribute_words(attribute_text)
        if self._name == "class":
            features = {("class", " ".join(words)), *(("class-word", word) for word in words)}
        else:
            features = {("attribute", f"{self._name}={' '.join(words)}")}
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        matching = self[attribute_text] = tuple(sorted(self._searched_features & features))
        return matching


class Step(NamedTuple):
    """A step from an element to its children: to all, to those of a tag, or to one of those by its number."""

    tag: str = "*"
    position: int | None = None


class Search(NamedTuple):
    """How the nodes of a rule are searched: by one feature, the trigger, then by the remaining features.

    From an element that has the trigger, the steps lead down to the nodes.
    """

    target: str
    trigger: Feature | None
    steps: tuple[Step, ...]
    features_left: tuple[Feature, ...]


class Triggers(NamedTuple):
    """What to search for on a page, and the search for each rule.

    `attributes` are keyed by the name of the HTML attribute, `positions` by tag. A position that is a trigger
    is written with its tag: "li 12" means every `li` that is the twelfth of its parent. `heads` are the first
    two characters of all `texts` and `prefixes`, so that other texts can be skipped fast.
    """

    searches: dict[Rule, Search]
    ids: tuple[str, ...]
    tags: tuple[str, ...]
    positions: dict[str, frozenset[int]]
    attributes: dict[str, AttributeFeatures]
    texts: frozenset[str]
    prefixes: tuple[str, ...]
    heads: frozenset[str]
    text_numbers: frozenset[int]


class Occurrences(NamedTuple):
    """Where triggers occur on a page: elements, and texts."""

    root: Element
    elements: dict[tuple[str, str], list[Element]]
    texts: dict[tuple[str, str], list[TextPosition]]


def triggers(rules: Iterable[Rule]) -> Triggers:
    """Return what to search for on a page to evaluate the rules."""
    searches = {rule: _search(rule) for rule in rules}
    values: defaultdict[str, set[str]] = defaultdict(set)
    for search in searches.values():
        if (feature := search.trigger) is not None:
            values["text" if feature.kind in BY_TEXT else feature.kind].add(feature.value)
    attributes: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for value in values["attribute"]:
        attributes[value.partition("=")[0]].add(("attribute", value))
    for kind in ("class", "class-word"):
        for value in values[kind]:
            attributes["class"].add((kind, value))
    positions: defaultdict[str, set[int]] = defaultdict(set)
    for value in values["position"]:
        tag, _, number = value.partition(" ")
        positions[tag].add(int(number))
    return Triggers(
        searches,
        tuple(sorted(values["id"])),
        tuple(sorted(values["tag"])),
        {tag: frozenset(numbers) for tag, numbers in positions.items()},
        {
            name: AttributeFeatures(name, frozenset(attribute_values))
            for name, attribute_values in attributes.items()
        },
        frozenset(values["text"]),
        tuple(sorted(values["prefix"])),
        frozenset(head for text in values["text"] | values["prefix"] for head in _heads(text)),
        frozenset(map(int, values["text-number"])),
    )


def _heads(text: str) -> list[str]:
    """Return how an unnormalized text may begin if its normal form begins with this one."""
    head = text[:2]
    return [head[0] + blank for blank in _BLANKS] if head.endswith(" ") else [head]


def _search(rule: Rule) -> Search:
    tags = {feature.distance: feature.value for feature in rule.features if feature.kind == "tag"}
    ranked_features: list[tuple[int, Feature, Feature]] = []
    for feature in rule.features:
        kind: str = feature.kind
        if kind in ("position", "text-number") and int(feature.value) > _HIGH_NUMBER:
            kind = f"high {kind}"
        if kind == "tag" and feature.value == "html":
            kind = "root"
        if feature.kind == "position":
            if feature.distance in tags:
                with_tag = replace(feature, value=f"{tags[feature.distance]} {feature.value}")
                ranked_features.append((_ORDER[kind], with_tag, feature))
        # Texts are skipped by their first two characters, so a prefix of one cannot be used.
        elif kind in _ORDER and not (kind == "prefix" and len(feature.value) < 2):
            ranked_features.append((_ORDER[kind], feature, feature))
    if not ranked_features:
        return Search(rule.target, None, (), rule.features)
    _, trigger, its_feature = min(ranked_features)
    below = [feature for feature in rule.features if feature.distance < trigger.distance]
    positions = {
        feature.distance: int(feature.value)
        for feature in below
        if feature.kind == "position" and feature.distance in tags
    }
    steps = tuple(
        Step(tags.get(distance, "*"), positions.get(distance))
        for distance in reversed(range(trigger.distance))
    )
    # Nodes found by features have them; but a first text must differ from the text of the node.
    implied_features = {its_feature} if trigger.kind != "first-text" else set()
    implied_features |= {
        feature
        for feature in below
        if feature.kind == "tag" or (feature.kind == "position" and feature.distance in tags)
    }
    return Search(
        rule.target,
        trigger,
        steps,
        tuple(feature for feature in rule.features if feature not in implied_features),
    )


def occurrences(root: Element, page_triggers: Triggers) -> Occurrences:
    """Note where the triggers are on a page."""
    elements: defaultdict[tuple[str, str], list[Element]] = defaultdict(list)
    texts: defaultdict[tuple[str, str], list[TextPosition]] = defaultdict(list)
    for value, with_id in elements_with_ids(root, page_triggers.ids).items():
        elements["id", value] = with_id
    for tag in page_triggers.tags:
        elements["tag", tag] = list(elements_with_tag(root, tag))
    for tag, numbers in page_triggers.positions.items():
        _note_positions(root, tag, numbers, elements)
    if page_triggers.attributes or page_triggers.heads:
        _walk(root, page_triggers, elements, texts)
    if page_triggers.text_numbers:
        _note_text_numbers(root, page_triggers, texts)
    return Occurrences(root, elements, texts)


def _walk(
    root: Element,
    page_triggers: Triggers,
    elements: dict[tuple[str, str], list[Element]],
    texts: dict[tuple[str, str], list[TextPosition]],
) -> None:
    """Visit every element and every text; this takes most of the time, so it does little for each."""
    heads = page_triggers.heads
    by_class = page_triggers.attributes.get("class")
    for name, features_by_text in page_triggers.attributes.items():
        if features_by_text is not by_class or not heads:
            for element in root.iter():
                if (attribute_text := element.get(name)) and (keys := features_by_text[attribute_text]):
                    for key in keys:
                        elements[key].append(element)
    if not heads:
        return
    for element in root.iter():
        if (
            by_class is not None
            and (attribute_text := element.get("class"))
            and (keys := by_class[attribute_text])
        ):
            for key in keys:
                elements[key].append(element)
        if (
            (text := element.text)
            and (text := text.strip())
            and text[:2] in heads
            and is_visible_element(element)
        ):
            _note_text(TextPosition(element, None), page_triggers, texts)
        if (text := element.tail) and (text := text.strip()) and text[:2] in heads:
            parent = element.getparent()
            if parent is not None:
                _note_text(TextPosition(parent, element), page_triggers, texts)


def _note_positions(
    root: Element,
    tag: str,
    numbers: frozenset[int],
    elements: dict[tuple[str, str], list[Element]],
) -> None:
    """Record the elements of a tag that have one of the positions in their parent."""
    counts: defaultdict[Element | None, int] = defaultdict(int)
    for element in elements_with_tag(root, tag):
        parent = element.getparent()
        counts[parent] += 1
        if (number := counts[parent]) in numbers:
            elements["position", f"{tag} {number}"].append(element)


def _note_text(
    spot: TextPosition, page_triggers: Triggers, texts: dict[tuple[str, str], list[TextPosition]]
) -> None:
    words = normalize(spot.text)
    if words in page_triggers.texts:
        texts["text", words].append(spot)
    for prefix in page_triggers.prefixes:
        if words.startswith(prefix):
            texts["prefix", prefix].append(spot)


def _note_text_numbers(
    root: Element, page_triggers: Triggers, texts: dict[tuple[str, str], list[TextPosition]]
) -> None:
    numbers: defaultdict[Element, int] = defaultdict(int)
    for spot in texts_from(TextPosition(root, None)):
        numbers[spot.parent] += 1
        if (number := numbers[spot.parent]) in page_triggers.text_numbers:
            texts["text-number", str(number)].append(spot)
