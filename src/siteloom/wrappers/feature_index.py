"""What the rules of a wrapper are looked for by, and where that is on a page.

All rules are looked for together: it is noted where the rarest feature of each occurs,
and only the nodes near those places are then looked at closely. Walks over all of a page
are what takes the time, so each does as little as can be for an element.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.html.node_paths import Spot, elements_with_ids, elements_with_tag, is_seen, texts_from
from siteloom.html.visible_text import attribute_words, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.html.parser import Element
    from siteloom.wrappers.rule_features import Feature, Rule

# What a rule is looked for by, the rarest on a page first. A position counts with its tag.
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


class WantedNames(dict[str, tuple[tuple[str, str], ...]]):
    """Kinds and values of the features that an HTML attribute gives, of those that are wanted.

    They are found by the attribute as it is written, and remembered: a site has few classes and repeats them.
    """

    def __init__(self, name: str, wanted: frozenset[tuple[str, str]]) -> None:
        super().__init__()
        self._name = name
        self._wanted = wanted

    def __missing__(self, given: str) -> tuple[tuple[str, str], ...]:
        """Find them for the first time."""
        words = attribute_words(given)
        if self._name == "class":
            features = {("class", " ".join(words)), *(("class-word", word) for word in words)}
        else:
            features = {("attribute", f"{self._name}={' '.join(words)}")}
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        found = self[given] = tuple(sorted(self._wanted & features))
        return found


class Step(NamedTuple):
    """A step from an element to its children: to all, to those of a tag, or to one of those by its number."""

    tag: str = "*"
    position: int | None = None


class Search(NamedTuple):
    """How the nodes that a rule means are looked for: by one feature, the trigger, and then by what is left.

    From an element that has the trigger, the steps lead down to the nodes.
    """

    target: str
    trigger: Feature | None
    steps: tuple[Step, ...]
    features_left: tuple[Feature, ...]


class Triggers(NamedTuple):
    """What to look for on a page, and the search for each rule.

    `attributes` are by the name of the HTML attribute, `positions` by the tag. A position that is a trigger
    stands with its tag before it: "li 12" are all `li` that are the twelfth of their parent.
    `heads` are how texts begin that may be one of the `texts` or begin with one of the `prefixes`: their
    first two characters, for all others are to be passed by fast.
    """

    searches: dict[Rule, Search]
    ids: tuple[str, ...]
    tags: tuple[str, ...]
    positions: dict[str, frozenset[int]]
    attributes: dict[str, WantedNames]
    texts: frozenset[str]
    prefixes: tuple[str, ...]
    heads: frozenset[str]
    text_numbers: frozenset[int]


class Occurrences(NamedTuple):
    """Where triggers occur on a page: elements, and texts."""

    root: Element
    elements: dict[tuple[str, str], list[Element]]
    texts: dict[tuple[str, str], list[Spot]]


def triggers(rules: Iterable[Rule]) -> Triggers:
    """What the rules are to be looked for by."""
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
        {name: WantedNames(name, frozenset(wanted)) for name, wanted in attributes.items()},
        frozenset(values["text"]),
        tuple(sorted(values["prefix"])),
        frozenset(head for text in values["text"] | values["prefix"] for head in _heads(text)),
        frozenset(map(int, values["text-number"])),
    )


def _heads(text: str) -> list[str]:
    """How a text may begin that is this one, or begins with it, in normal form."""
    head = text[:2]
    return [head[0] + blank for blank in _BLANKS] if head.endswith(" ") else [head]


def _search(rule: Rule) -> Search:
    tags = {feature.distance: feature.value for feature in rule.features if feature.kind == "tag"}
    known: list[tuple[int, Feature, Feature]] = []
    for feature in rule.features:
        kind: str = feature.kind
        if kind in ("position", "text-number") and int(feature.value) > _HIGH_NUMBER:
            kind = f"high {kind}"
        if kind == "tag" and feature.value == "html":
            kind = "root"
        if feature.kind == "position":
            if feature.distance in tags:
                with_tag = replace(feature, value=f"{tags[feature.distance]} {feature.value}")
                known.append((_ORDER[kind], with_tag, feature))
        # By its first two characters a text is passed by; a prefix of one says too little.
        elif kind in _ORDER and not (kind == "prefix" and len(feature.value) < 2):
            known.append((_ORDER[kind], feature, feature))
    if not known:
        return Search(rule.target, None, (), rule.features)
    _, trigger, its_feature = min(known)
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
    # What is found by features has them; but a first text must be another than that of the node.
    had = {its_feature} if trigger.kind != "first-text" else set()
    had |= {one for one in below if one.kind == "tag" or (one.kind == "position" and one.distance in tags)}
    return Search(rule.target, trigger, steps, tuple(one for one in rule.features if one not in had))


def occurrences(root: Element, wanted: Triggers) -> Occurrences:
    """Note where the triggers are on a page."""
    elements: defaultdict[tuple[str, str], list[Element]] = defaultdict(list)
    texts: defaultdict[tuple[str, str], list[Spot]] = defaultdict(list)
    for value, with_id in elements_with_ids(root, wanted.ids).items():
        elements["id", value] = with_id
    for tag in wanted.tags:
        elements["tag", tag] = list(elements_with_tag(root, tag))
    for tag, numbers in wanted.positions.items():
        _note_positions(root, tag, numbers, elements)
    if wanted.attributes or wanted.heads:
        _walk(root, wanted, elements, texts)
    if wanted.text_numbers:
        _note_text_numbers(root, wanted, texts)
    return Occurrences(root, elements, texts)


def _walk(
    root: Element,
    wanted: Triggers,
    elements: dict[tuple[str, str], list[Element]],
    texts: dict[tuple[str, str], list[Spot]],
) -> None:
    """Look at every element and every text; this takes most of the time, so little is done for each."""
    heads = wanted.heads
    by_class = wanted.attributes.get("class")
    for name, noted in wanted.attributes.items():
        if noted is not by_class or not heads:
            for element in root.iter():
                if (given := element.get(name)) and (keys := noted[given]):
                    for key in keys:
                        elements[key].append(element)
    if not heads:
        return
    for element in root.iter():
        if by_class is not None and (given := element.get("class")) and (keys := by_class[given]):
            for key in keys:
                elements[key].append(element)
        if (text := element.text) and (text := text.strip()) and text[:2] in heads and is_seen(element):
            _note_text(Spot(element, None), wanted, texts)
        if (text := element.tail) and (text := text.strip()) and text[:2] in heads:
            parent = element.getparent()
            if parent is not None:
                _note_text(Spot(parent, element), wanted, texts)


def _note_positions(
    root: Element,
    tag: str,
    wanted: frozenset[int],
    elements: dict[tuple[str, str], list[Element]],
) -> None:
    """Count the elements of a tag in their parents, which are met in their order."""
    counts: defaultdict[Element | None, int] = defaultdict(int)
    for element in elements_with_tag(root, tag):
        parent = element.getparent()
        counts[parent] += 1
        if (number := counts[parent]) in wanted:
            elements["position", f"{tag} {number}"].append(element)


def _note_text(spot: Spot, wanted: Triggers, texts: dict[tuple[str, str], list[Spot]]) -> None:
    words = normalize(spot.text)
    if words in wanted.texts:
        texts["text", words].append(spot)
    for prefix in wanted.prefixes:
        if words.startswith(prefix):
            texts["prefix", prefix].append(spot)


def _note_text_numbers(root: Element, wanted: Triggers, texts: dict[tuple[str, str], list[Spot]]) -> None:
    numbers: defaultdict[Element, int] = defaultdict(int)
    for spot in texts_from(Spot(root, None)):
        numbers[spot.parent] += 1
        if (number := numbers[spot.parent]) in wanted.text_numbers:
            texts["text-number", str(number)].append(spot)
