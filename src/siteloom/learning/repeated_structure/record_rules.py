"""Learning where the records of a list page begin, from a few of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ExampleError
from siteloom.html.node_paths import is_visible_element, siblings_with_tag
from siteloom.html.visible_text import attribute_words
from siteloom.learning.value_search.labelled_units import resolve
from siteloom.wrappers.rule_evaluation import records
from siteloom.wrappers.rule_features import TELLING_ATTRIBUTES, Feature, RecordRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from siteloom.html.parser import Element
    from siteloom.learning.value_search.value_locations import Place, PlaceIndex
    from siteloom.wrappers.rule_evaluation import Scope

    Values = Mapping[str, Sequence[str]]
    FindScopes = Callable[[RecordRule, Element], list[Scope]]

# A feature that fewer of the neighbours have tells odd records from even ones, not records from the rest.
_USUAL = 0.5
_ALIKE = 0.5  # of the paths inside a record, so many must be shared with an example
_INNER_DEPTH = 4
_RULE_DISTANCES = 3  # how far up a list's own features are looked for


class FoundRecords(NamedTuple):
    """The elements at which the records of an example begin, and whether these run on through siblings."""

    starts: list[Element]
    runs_on: bool


def find_records(
    url: str,
    root: Element,
    records: Sequence[Values],
    index: PlaceIndex,
    nodes: Sequence[Values] = (),
) -> FoundRecords:
    """Find the records of an example on their list page; `nodes` tie values of each record to exact nodes."""
    order = {element: number for number, element in enumerate(root.iter())}
    exact = nodes or [{}] * len(records)
    regions = [
        _elements(_places(url, record, its_nodes, index), order)
        for record, its_nodes in zip(records, exact, strict=True)
    ]
    homes = [_lowest_common(nodes) for nodes in regions]
    runs_on = any(
        home is other_home or home in other_home.iterancestors()
        for number, home in enumerate(homes)
        for other, other_home in enumerate(homes)
        if other != number
    )
    parent = None
    if runs_on:
        parent = _lowest_common([node for nodes in regions for node in nodes])
        starts = [_first_child(parent, nodes, order) for nodes in regions]
    else:
        starts = _alike([_own_ancestors(home, homes) for home in homes])
    if len(set(starts)) < len(starts) or parent in starts:
        raise ExampleError(
            f"The records given for {url} cannot be told apart: each must have a value that stands by itself."
        )
    return FoundRecords(starts, runs_on)


class Looks:
    """What elements look like; the same is asked for again and again."""

    def __init__(self) -> None:
        self._features: dict[Element, frozenset[Feature]] = {}
        self._inner_paths: dict[Element, frozenset[str]] = {}

    def features(self, element: Element) -> frozenset[Feature]:
        """What tells an element by itself and its nearest ancestors."""
        if element not in self._features:
            self._features[element] = _features(element)
        return self._features[element]

    def inner_paths(self, element: Element) -> frozenset[str]:
        """The tags from an element down to each inside it."""
        if element not in self._inner_paths:
            self._inner_paths[element] = _inner_paths(element)
        return self._inner_paths[element]


def record_rule(
    starts: Sequence[Element],
    others: Iterable[Element],
    *,
    runs_on: bool,
    least: int,
    records: FindScopes = records,
    looks: Looks | None = None,
) -> RecordRule:
    """The rule that finds these elements and those like them.

    `others` are the roots of further list pages, on which records may look
    different; with fewer than `least` attributes they are no records.
    """
    looks = looks or Looks()
    roots = list(dict.fromkeys(start.getroottree().getroot() for start in starts))
    first = RecordRule(_shared_features(starts, looks), runs_on)
    pages = [*roots, *others]
    found = [scope.start for root in pages for scope in records(first, root)]
    shapes = {looks.inner_paths(start) for start in starts}
    own_starts = {*starts, *found}
    alike = [
        one
        for one in _neighbours(found)
        if one not in own_starts and any(_similarity(looks.inner_paths(one), own) >= _ALIKE for own in shapes)
    ]
    rule = RecordRule(_shared_features([*starts, *found, *alike], looks), runs_on, least=least)
    return replace(rule, fallback=_without_names(rule, pages, records))


def _shared_features(starts: Sequence[Element], looks: Looks) -> tuple[Feature, ...]:
    """What all records have in common."""
    shared = frozenset.intersection(*map(looks.features, starts))
    # Of neighbours some are no records, but a name that most lack tells odd records from even ones.
    neighbours = _neighbours(starts) or list(starts)
    features = [looks.features(one) for one in neighbours]
    counts = {feature: sum(feature in its_own for its_own in features) for feature in shared}
    return tuple(sorted(feature for feature in shared if counts[feature] >= _USUAL * len(neighbours)))


def _neighbours(starts: Sequence[Element]) -> list[Element]:
    """The elements of the same tag beside some, these among them, each once."""
    parents = dict.fromkeys(parent for start in starts if (parent := start.getparent()) is not None)
    tags = {start.tag for start in starts}
    return [child for parent in parents for child in parent if child.tag in tags]


def _without_names(rule: RecordRule, pages: Sequence[Element], records: FindScopes) -> tuple[Feature, ...]:
    """The rule without ids and classes, if it finds the same without them: they may be renamed."""
    bare = tuple(feature for feature in rule.features if feature.kind == "tag")
    same = all(
        [scope.start for scope in records(rule, root)]
        == [scope.start for scope in records(replace(rule, features=bare), root)]
        for root in pages
    )
    return bare if same and bare != rule.features else ()


def _inner_paths(element: Element) -> frozenset[str]:
    """The tags from an element down to each inside it."""
    paths: set[str] = set()
    level = [("", element)]
    for _ in range(_INNER_DEPTH):
        level = [
            (f"{path}/{child.tag!s}", child)
            for path, parent in level
            for child in parent
            if is_visible_element(child)
        ]
        paths.update(path for path, _ in level)
    return frozenset(paths)


def _similarity(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _places(url: str, record: Values, nodes: Values, index: PlaceIndex) -> list[tuple[Place, ...]]:
    """Where each value of a record may stand."""
    places = []
    for value in (value for values in resolve(url, index, record, nodes).values.values() for value in values):
        whole = tuple(place for place in value.places if place.is_whole)
        places.append(whole or value.places)
    if not places:
        raise ExampleError(f"A record given for {url} has no values: leave it out.")
    return places


def _elements(places: Sequence[Sequence[Place]], order: Mapping[Element, int]) -> list[Element]:
    """One element for each value of a record, as near to each other as can be."""
    pivots = min(places, key=len)
    spans = [
        [
            min(found, key=lambda place: abs(order[place.element] - order[pivot.element])).element
            for found in places
        ]
        for pivot in pivots
    ]
    return min(
        spans, key=lambda nodes: max(map(order.__getitem__, nodes)) - min(map(order.__getitem__, nodes))
    )


def _lowest_common(elements: Sequence[Element]) -> Element:
    """The smallest element that holds all of these."""
    chains = [[*reversed(list(element.iterancestors())), element] for element in elements]
    common = chains[0][0]
    for level in zip(*chains, strict=False):
        if any(element is not level[0] for element in level):
            break
        common = level[0]
    return common


def _child_towards(parent: Element, inside: Element) -> Element:
    while (above := inside.getparent()) is not None and above is not parent:
        inside = above
    return inside


def _first_child(parent: Element, nodes: Sequence[Element], order: Mapping[Element, int]) -> Element:
    """The child at which a record begins; texts of the parent itself stand behind one of its children."""
    inside = [node for node in nodes if node is not parent]
    return _child_towards(parent, min(inside, key=order.__getitem__)) if inside else parent


def _own_ancestors(home: Element, homes: Sequence[Element]) -> list[Element]:
    """An element and its ancestors, as long as they hold no other record's; the topmost first."""
    shared = {
        ancestor for other in homes if other is not home for ancestor in (other, *other.iterancestors())
    }
    own = [element for element in (home, *home.iterancestors()) if element not in shared]
    if len(homes) == 1:
        own = [element for element in own if _has_twin(element)][:1] or own[:1]
    return own[::-1]


def _has_twin(element: Element) -> bool:
    return any(
        sibling.get("class") == element.get("class")
        for preceding in (True, False)
        for sibling in siblings_with_tag(element, preceding=preceding)
    )


def _alike(chains: Sequence[Sequence[Element]]) -> list[Element]:
    """Of each chain one element, so that they look alike; the topmost such."""
    for look in (_tag_and_class, _tag):
        for first in chains[0]:
            found = [next((one for one in chain if look(one) == look(first)), None) for chain in chains]
            alike = [one for one in found if one is not None]
            if len(alike) == len(chains) and not _are_rows(alike, [chain[-1] for chain in chains]):
                return alike
    return [chain[0] for chain in chains]


def _are_rows(starts: Sequence[Element], homes: Sequence[Element]) -> bool:
    """Whether these hold several records each, as rows of a grid do: one is the first, another the second."""
    numbers = {
        _number_among_twins(_child_towards(start, home))
        for start, home in zip(starts, homes, strict=True)
        if start is not home
    }
    return len(numbers) > 1


def _number_among_twins(element: Element) -> int:
    look, paths = _tag_and_class(element), _inner_paths(element)
    return sum(
        _tag_and_class(other) == look and _similarity(_inner_paths(other), paths) >= _ALIKE
        for other in siblings_with_tag(element, preceding=True)
    )


def _tag(element: Element) -> object:
    return element.tag


def _tag_and_class(element: Element) -> object:
    return element.tag, frozenset(attribute_words(element.get("class", "")))


def _features(element: Element) -> frozenset[Feature]:
    """What tells an element by itself and its nearest ancestors, without the texts in and around it."""
    found: set[Feature] = set()
    above: Element | None = element
    for distance in range(_RULE_DISTANCES):
        if above is None or not is_visible_element(above):
            break
        found.add(Feature("tag", distance, str(above.tag)))
        if distance and (id_ := above.get("id")):
            found.add(Feature("id", distance, id_))
        found |= {Feature("class-word", distance, word) for word in attribute_words(above.get("class", ""))}
        found |= {
            Feature("attribute", distance, f"{name}={' '.join(attribute_words(value))}")
            for name in TELLING_ATTRIBUTES
            if (value := above.get(name))
        }
        above = above.getparent()
    return frozenset(found)
