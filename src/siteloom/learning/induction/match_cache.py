"""Caches of the nodes that rules select and of the records that wrappers find."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.core.model import Record
from siteloom.html.node_paths import position_of_text
from siteloom.learning.induction.feature_columns import target_rows, too_long
from siteloom.wrappers.rule_evaluation import Node
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from siteloom.core.model import Provenance, ValueType, Withheld
    from siteloom.html.parser import Element
    from siteloom.learning.induction.feature_columns import Table
    from siteloom.learning.induction.unit_slices import Nodes
    from siteloom.wrappers.rule_evaluation import Scope
    from siteloom.wrappers.rule_features import AttributeRules, Feature, Rule, Shape
    from siteloom.wrappers.wrapper import KnownNodes


RecordOf: TypeAlias = "Callable[[Element, str, Scope | None], Record]"

# A wrapper is tried without types first, and undoing a change should find the earlier results again.
_MAX_CACHED_RULE_SETS = 4


class _MatchKey(NamedTuple):
    """Everything the values of an attribute depend on, except the labels."""

    rules: tuple[Rule, ...]
    voters: tuple[Rule, ...]
    shapes: tuple[Shape, ...]
    is_multi: bool
    type: ValueType | None
    day_first: bool | None
    is_of_records: bool


class _AttributeValues(NamedTuple):
    """The values of one attribute in a record."""

    values: tuple[str, ...] | None
    typed: tuple[object, ...] | None
    provenance: tuple[Provenance, ...] | None
    withheld: tuple[Withheld, ...] | None


@dataclass(slots=True)
class _AttributeMatches:
    """Cached values of one attribute by unit, and the texts of all nodes they were chosen from."""

    key: _MatchKey
    wrapper: Wrapper  # for this attribute alone
    values_by_unit: dict[Element | Scope, _AttributeValues] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)

    def attribute_values(
        self, name: str, root: Element, url: str, scope: Scope | None, known_nodes: KnownNodes
    ) -> _AttributeValues:
        """Return the attribute's values in a unit; they are cached if all nodes were known."""
        unit = root if scope is None else scope
        if (values := self.values_by_unit.get(unit)) is not None:
            return values
        are_all_known = True

        def find_and_note(rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
            nonlocal are_all_known
            nodes = known_nodes(rule, root, scope)
            if nodes is None:
                are_all_known = False
            else:
                self.texts.update([node.text for node in nodes])
            return nodes

        record = self.wrapper.record_of(root, url, scope, find_and_note)
        values = _AttributeValues(
            values=record.values.get(name),
            typed=record.typed.get(name),
            provenance=record.provenance.get(name),
            withheld=record.withheld.get(name),
        )
        if are_all_known:
            self.values_by_unit[unit] = values
        return values


class MatchCache:
    """Caches the values that a sequence of similar wrappers extracts."""

    def __init__(self) -> None:
        self._matches: defaultdict[str, list[_AttributeMatches]] = defaultdict(list)

    def record_of(self, wrapper: Wrapper, known_nodes: KnownNodes) -> RecordOf:
        """Return a cached equivalent of `Wrapper.record_of`."""
        matches = [
            (name, self._matches_for(name, rules, wrapper)) for name, rules in wrapper.attributes.items()
        ]

        def merged_record(root: Element, url: str, scope: Scope | None) -> Record:
            return _merge_record(
                url,
                [
                    (
                        name,
                        cached.attribute_values(
                            name=name, root=root, url=url, scope=scope, known_nodes=known_nodes
                        ),
                    )
                    for name, cached in matches
                ],
            )

        return merged_record

    def _matches_for(self, name: str, rules: AttributeRules, wrapper: Wrapper) -> _AttributeMatches:
        key = _match_key(rules, is_of_records=wrapper.record_rule is not None)
        cached = self._matches[name]
        single_attribute_wrapper = Wrapper({name: rules}, wrapper.labels, wrapper.record_rule)
        for number, matches in enumerate(cached):
            # If a node's text became a label or is no longer one, the cached values may be wrong.
            if matches.key == key and not matches.texts & (matches.wrapper.labels ^ wrapper.labels):
                if matches.wrapper.labels != wrapper.labels:
                    matches.wrapper = single_attribute_wrapper
                cached.insert(0, cached.pop(number))
                return matches
        cached.insert(0, _AttributeMatches(key, single_attribute_wrapper))
        del cached[_MAX_CACHED_RULE_SETS:]
        return cached[0]


def _match_key(rules: AttributeRules, *, is_of_records: bool) -> _MatchKey:
    kind = rules.attribute.type
    return _MatchKey(
        rules=rules.rules,
        voters=rules.voters,
        shapes=rules.shapes,
        is_multi=bool(rules.attribute.multi),
        type=None if kind == "text" else kind,
        day_first=rules.day_first,
        is_of_records=is_of_records,
    )


def _merge_record(url: str, attribute_values: Sequence[tuple[str, _AttributeValues]]) -> Record:
    """Combine the values of all attributes into a record."""
    record_values: dict[str, tuple[str, ...]] = {}
    typed: dict[str, tuple[object, ...]] = {}
    provenance: dict[str, tuple[Provenance, ...]] = {}
    withheld: dict[str, tuple[Withheld, ...]] = {}
    for name, values in attribute_values:
        if values.values is not None:
            record_values[name] = values.values
        if values.typed is not None:
            typed[name] = values.typed
        if values.provenance is not None:
            provenance[name] = values.provenance
        if values.withheld is not None:
            withheld[name] = values.withheld
    return Record(url, values=record_values, typed=typed, provenance=provenance, withheld=withheld)


_TEXT_FEATURES = frozenset({"shape", "first-text"})


class _SelectionKey(NamedTuple):
    """The parts of a rule that determine which nodes it selects, with the tags of eligible elements."""

    target: str
    features: tuple[Feature, ...]
    tags: frozenset[str]


class _CachedSelection(NamedTuple):
    """A rule, and the nodes by unit that are cached under its selection key."""

    rule: Rule
    tags: frozenset[str]
    nodes_by_unit: dict[int, list[Node] | None]


class NodesByTable:
    """Finds the nodes that a rule selects, from the table instead of the page.

    `nodes` returns the nodes of a unit by its number. `numbers` has the number of a unit by the root of its
    page, or by the first element of its record.
    """

    def __init__(self, table: Table, nodes: Callable[[int], Nodes], numbers: Mapping[Element, int]) -> None:
        self._table = table
        self._nodes = cache(nodes)
        self._numbers = numbers
        self._nodes_by_key: dict[_SelectionKey, dict[int, list[Node] | None]] = {}
        self._by_rule_id: dict[int, _CachedSelection] = {}

    def find(self, tags: frozenset[str], rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
        """Return the nodes in document order, or None if the table lacks the unit or some of its nodes.

        `tags` are the tags of elements that rules choose from.
        """
        unit = self._numbers.get(root if scope is None else scope.start)
        if unit is None:
            return None
        nodes_by_unit = self._nodes_by_unit(tags, rule)
        if unit not in nodes_by_unit:
            nodes_by_unit[unit] = (
                None if self._may_be_too_long(tags, rule, unit) else self._select_nodes(tags, rule, unit)
            )
        return nodes_by_unit[unit]

    def _nodes_by_unit(self, tags: frozenset[str], rule: Rule) -> dict[int, list[Node] | None]:
        """Return the cached nodes of a rule by unit; as hashing its selection key is slow, do it once."""
        cached = self._by_rule_id.get(id(rule))
        if cached is None or cached.rule is not rule or cached.tags != tags:
            key = _SelectionKey(rule.target, rule.features, tags)
            cached = self._by_rule_id[id(rule)] = _CachedSelection(
                rule, tags, self._nodes_by_key.setdefault(key, {})
            )
        return cached.nodes_by_unit

    def _select_nodes(self, tags: frozenset[str], rule: Rule, unit: int) -> list[Node]:
        rows = target_rows(self._table, rule.target, tags)
        words = self._table.words.texts
        rows_of_unit = rows.units_with(rule.features).get(unit)
        if rows_of_unit is None:
            return []
        elements, text_parents, text_numbers = self._nodes(unit)
        first_element, first_text = self._table.first_elements[unit], self._table.first_texts[unit]
        nodes = []
        for row in rows_of_unit.tolist():
            text = words[rows.value[row]]
            if rule.target != "text":
                nodes.append(Node(elements[rows.element[row] - first_element], None, text))
                continue
            parent = text_parents[row - first_text]
            assert parent is not None, "texts of a unit stand in elements"
            nodes.append(Node(parent, position_of_text(parent, text_numbers[row - first_text]), text))
        return nodes

    def _may_be_too_long(self, tags: frozenset[str], rule: Rule, unit: int) -> bool:
        if rule.target == "text":
            return False
        features = tuple(feature for feature in rule.features if feature.kind not in _TEXT_FEATURES)
        return unit in too_long(self._table, rule.target, tags).units_with(features)
