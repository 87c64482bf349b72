"""Learn where the records of a list page begin, from a few of them."""

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
    from siteloom.learning.value_search.value_locations import ValueIndex, ValueLocation
    from siteloom.wrappers.rule_evaluation import Scope

    Values = Mapping[str, Sequence[str]]
    FindScopes = Callable[[RecordRule, Element], list[Scope]]

# A feature of fewer neighbours separates odd records from even ones, not records from other elements.
_MIN_NEIGHBOUR_SHARE = 0.5
_MIN_SIMILARITY = 0.5  # of the paths inside a record with those of an example
_INNER_DEPTH = 4
_RULE_DISTANCES = 3  # levels, from the element up, whose features describe a record


class RecordStarts(NamedTuple):
    """The first elements of an example's records, and whether each record runs on through siblings."""

    starts: list[Element]
    runs_on: bool


def find_records(
    url: str,
    root: Element,
    records: Sequence[Values],
    index: ValueIndex,
    nodes: Sequence[Values] = (),
) -> RecordStarts:
    """Find the records of an example on their list page; `nodes` has the exact nodes of their values."""
    order = {element: number for number, element in enumerate(root.iter())}
    exact_nodes = nodes or [{}] * len(records)
    regions = [
        _nearest_elements(_location_choices(url=url, record=record, nodes=its_nodes, index=index), order)
        for record, its_nodes in zip(records, exact_nodes, strict=True)
    ]
    containers = [_lowest_common(nodes) for nodes in regions]
    runs_on = any(
        container is other_container or container in other_container.iterancestors()
        for number, container in enumerate(containers)
        for other_number, other_container in enumerate(containers)
        if other_number != number
    )
    parent = None
    if runs_on:
        parent = _lowest_common([node for nodes in regions for node in nodes])
        starts = [_first_child(parent, nodes, order) for nodes in regions]
    else:
        starts = _similar_ancestors([_own_ancestors(container, containers) for container in containers])
    if len(set(starts)) < len(starts) or parent in starts:
        raise ExampleError(
            f"The records given for {url} cannot be told apart: each must have a value of its own node."
        )
    return RecordStarts(starts, runs_on)


class ElementFeatureCache:
    """Caches the features and inner paths of elements."""

    def __init__(self) -> None:
        self._features: dict[Element, frozenset[Feature]] = {}
        self._inner_paths: dict[Element, frozenset[str]] = {}

    def features(self, element: Element) -> frozenset[Feature]:
        """Return the features of an element and its nearest ancestors."""
        if element not in self._features:
            self._features[element] = _features(element)
        return self._features[element]

    def inner_paths(self, element: Element) -> frozenset[str]:
        """Return the tag paths from an element to each element inside it."""
        if element not in self._inner_paths:
            self._inner_paths[element] = _inner_paths(element)
        return self._inner_paths[element]


def record_rule(
    starts: Sequence[Element],
    other_roots: Iterable[Element],
    *,
    runs_on: bool,
    min_attributes: int,
    records: FindScopes = records,
    looks: ElementFeatureCache | None = None,
) -> RecordRule:
    """Learn the rule that finds these elements and similar ones.

    `other_roots` are the roots of further list pages, on which records may look different. The rule rejects
    records with fewer than `min_attributes` attributes.
    """
    looks = looks or ElementFeatureCache()
    roots = list(dict.fromkeys(start.getroottree().getroot() for start in starts))
    first_rule = RecordRule(_shared_features(starts, looks), runs_on)
    pages = [*roots, *other_roots]
    first_starts = [scope.start for root in pages for scope in records(first_rule, root)]
    shapes = {looks.inner_paths(start) for start in starts}
    known_starts = {*starts, *first_starts}
    similar_neighbours = [
        neighbour
        for neighbour in _neighbours(first_starts)
        if neighbour not in known_starts
        and any(_similarity(looks.inner_paths(neighbour), own) >= _MIN_SIMILARITY for own in shapes)
    ]
    rule = RecordRule(
        _shared_features([*starts, *first_starts, *similar_neighbours], looks), runs_on, least=min_attributes
    )
    return replace(rule, fallback=_without_names(rule, pages, records))


def _shared_features(starts: Sequence[Element], looks: ElementFeatureCache) -> tuple[Feature, ...]:
    """Return the features that all records share."""
    shared = frozenset.intersection(*map(looks.features, starts))
    # Some neighbours are not records, but a name that most of them lack separates odd records from even ones.
    neighbours = _neighbours(starts) or list(starts)
    features = [looks.features(neighbour) for neighbour in neighbours]
    counts = {feature: sum(feature in its_own for its_own in features) for feature in shared}
    return tuple(
        sorted(feature for feature in shared if counts[feature] >= _MIN_NEIGHBOUR_SHARE * len(neighbours))
    )


def _neighbours(starts: Sequence[Element]) -> list[Element]:
    """Return the siblings of some elements with the same tags, including the elements themselves."""
    parents = dict.fromkeys(parent for start in starts if (parent := start.getparent()) is not None)
    tags = {start.tag for start in starts}
    return [child for parent in parents for child in parent if child.tag in tags]


def _without_names(rule: RecordRule, pages: Sequence[Element], records: FindScopes) -> tuple[Feature, ...]:
    """Return the features without ids and classes, which may be renamed, if these find the same records."""
    bare = tuple(feature for feature in rule.features if feature.kind == "tag")
    finds_same = all(
        [scope.start for scope in records(rule, root)]
        == [scope.start for scope in records(replace(rule, features=bare), root)]
        for root in pages
    )
    return bare if finds_same and bare != rule.features else ()


def _inner_paths(element: Element) -> frozenset[str]:
    """Return the tag paths from an element to each element inside it."""
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


def _similarity(paths: frozenset[str], other_paths: frozenset[str]) -> float:
    return len(paths & other_paths) / (len(paths | other_paths) or 1)


def _location_choices(
    url: str, record: Values, nodes: Values, index: ValueIndex
) -> list[tuple[ValueLocation, ...]]:
    """Return the possible locations of each value of a record."""
    location_choices = []
    for value in (
        value
        for values in resolve(url=url, index=index, values=record, nodes=nodes).values.values()
        for value in values
    ):
        whole_locations = tuple(location for location in value.locations if location.is_whole)
        location_choices.append(whole_locations or value.locations)
    if not location_choices:
        raise ExampleError(f"A record given for {url} has no values: leave it out.")
    return location_choices


def _nearest_elements(
    location_choices: Sequence[Sequence[ValueLocation]], order: Mapping[Element, int]
) -> list[Element]:
    """Return one element for each value of a record, as near to each other as possible."""
    pivots = min(location_choices, key=len)
    spans = [
        [
            min(choices, key=lambda location: abs(order[location.element] - order[pivot.element])).element
            for choices in location_choices
        ]
        for pivot in pivots
    ]
    return min(
        spans, key=lambda nodes: max(map(order.__getitem__, nodes)) - min(map(order.__getitem__, nodes))
    )


def _lowest_common(elements: Sequence[Element]) -> Element:
    """Return the smallest element that contains all of these."""
    chains = [[*reversed(list(element.iterancestors())), element] for element in elements]
    common = chains[0][0]
    for level in zip(*chains, strict=False):
        if any(element is not level[0] for element in level):
            break
        common = level[0]
    return common


def _child_containing(parent: Element, inside: Element) -> Element:
    while (above := inside.getparent()) is not None and above is not parent:
        inside = above
    return inside


def _first_child(parent: Element, nodes: Sequence[Element], order: Mapping[Element, int]) -> Element:
    """Return the child at which a record begins; texts of the parent itself follow one of its children."""
    inside = [node for node in nodes if node is not parent]
    return _child_containing(parent, min(inside, key=order.__getitem__)) if inside else parent


def _own_ancestors(container: Element, containers: Sequence[Element]) -> list[Element]:
    """Return an element and its ancestors that contain no other record, the topmost first."""
    shared = {
        ancestor
        for other_home in containers
        if other_home is not container
        for ancestor in (other_home, *other_home.iterancestors())
    }
    own = [element for element in (container, *container.iterancestors()) if element not in shared]
    if len(containers) == 1:
        own = [element for element in own if _has_twin(element)][:1] or own[:1]
    return own[::-1]


def _has_twin(element: Element) -> bool:
    return any(
        sibling.get("class") == element.get("class")
        for preceding in (True, False)
        for sibling in siblings_with_tag(element, preceding=preceding)
    )


def _similar_ancestors(chains: Sequence[Sequence[Element]]) -> list[Element]:
    """Return one similar element of each chain, the topmost that are similar."""
    for key in (_tag_and_class, _tag):
        for first_element in chains[0]:
            matches = [
                next((element for element in chain if key(element) == key(first_element)), None)
                for chain in chains
            ]
            similar = [element for element in matches if element is not None]
            if len(similar) == len(chains) and not _are_rows(similar, [chain[-1] for chain in chains]):
                return similar
    return [chain[0] for chain in chains]


def _are_rows(starts: Sequence[Element], containers: Sequence[Element]) -> bool:
    """Return whether these are rows of several records: one record is the first, another the second."""
    numbers = {
        _number_among_twins(_child_containing(start, container))
        for start, container in zip(starts, containers, strict=True)
        if start is not container
    }
    return len(numbers) > 1


def _number_among_twins(element: Element) -> int:
    key, paths = _tag_and_class(element), _inner_paths(element)
    return sum(
        _tag_and_class(sibling) == key and _similarity(_inner_paths(sibling), paths) >= _MIN_SIMILARITY
        for sibling in siblings_with_tag(element, preceding=True)
    )


def _tag(element: Element) -> object:
    return element.tag


def _tag_and_class(element: Element) -> object:
    return element.tag, frozenset(attribute_words(element.get("class", "")))


def _features(element: Element) -> frozenset[Feature]:
    """Return the features of an element and its nearest ancestors, without texts."""
    features: set[Feature] = set()
    above: Element | None = element
    for distance in range(_RULE_DISTANCES):
        if above is None or not is_visible_element(above):
            break
        features.add(Feature("tag", distance, str(above.tag)))
        if distance and (id_ := above.get("id")):
            features.add(Feature("id", distance, id_))
        features |= {
            Feature("class-word", distance, word) for word in attribute_words(above.get("class", ""))
        }
        features |= {
            Feature("attribute", distance, f"{name}={' '.join(attribute_words(value))}")
            for name in TELLING_ATTRIBUTES
            if (value := above.get(name))
        }
        above = above.getparent()
    return frozenset(features)
