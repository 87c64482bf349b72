"""What rules select, kept while their rules stay the same."""

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

# A wrapper is tried without types first, and it is a good thing if what was said can be taken back.
_MOST_KEPT = 4


class _Look(NamedTuple):
    """All that it hangs on what is found of an attribute, but the labels."""

    rules: tuple[Rule, ...]
    voters: tuple[Rule, ...]
    shapes: tuple[Shape, ...]
    is_multi: bool
    type: ValueType | None
    day_first: bool | None
    is_of_records: bool


class _Part(NamedTuple):
    """What a record has of one attribute."""

    values: tuple[str, ...] | None
    typed: tuple[object, ...] | None
    provenance: tuple[Provenance, ...] | None
    withheld: tuple[Withheld, ...] | None


@dataclass(slots=True)
class _Finds:
    """What is found of an attribute: the parts of records, and the texts that were looked at."""

    look: _Look
    wrapper: Wrapper  # for this attribute alone
    parts: dict[Element | Scope, _Part] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)

    def part(self, name: str, root: Element, url: str, scope: Scope | None, known: KnownNodes) -> _Part:
        """The part of a record; kept if all nodes that it may come from are known."""
        unit = root if scope is None else scope
        if (part := self.parts.get(unit)) is not None:
            return part
        are_all_known = True

        def noted(rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
            nonlocal are_all_known
            nodes = known(rule, root, scope)
            if nodes is None:
                are_all_known = False
            else:
                self.texts.update([node.text for node in nodes])
            return nodes

        found = self.wrapper.record_of(root, url, scope, noted)
        part = _Part(
            found.values.get(name),
            found.typed.get(name),
            found.provenance.get(name),
            found.withheld.get(name),
        )
        if are_all_known:
            self.parts[unit] = part
        return part


class KeptFinds:
    """What wrappers found, one after the other."""

    def __init__(self) -> None:
        self._finds: defaultdict[str, list[_Finds]] = defaultdict(list)

    def record_of(self, wrapper: Wrapper, known: KnownNodes) -> RecordOf:
        """What `Wrapper.record_of` does."""
        finds = [(name, self._finds_of(name, rules, wrapper)) for name, rules in wrapper.attributes.items()]

        def found(root: Element, url: str, scope: Scope | None) -> Record:
            return _united(url, [(name, one.part(name, root, url, scope, known)) for name, one in finds])

        return found

    def _finds_of(self, name: str, rules: AttributeRules, wrapper: Wrapper) -> _Finds:
        look = _look(rules, is_of_records=wrapper.record_rule is not None)
        kept = self._finds[name]
        alone = Wrapper({name: rules}, wrapper.labels, wrapper.record_rule)
        for number, finds in enumerate(kept):
            # A text that became a label, or is none any more, changes what is found where it stands.
            if finds.look == look and not finds.texts & (finds.wrapper.labels ^ wrapper.labels):
                if finds.wrapper.labels != wrapper.labels:
                    finds.wrapper = alone
                kept.insert(0, kept.pop(number))
                return finds
        kept.insert(0, _Finds(look, alone))
        del kept[_MOST_KEPT:]
        return kept[0]


def _look(rules: AttributeRules, *, is_of_records: bool) -> _Look:
    kind = rules.attribute.type
    return _Look(
        rules.rules,
        rules.voters,
        rules.shapes,
        bool(rules.attribute.multi),
        None if kind == "text" else kind,
        rules.day_first,
        is_of_records,
    )


def _united(url: str, parts: Sequence[tuple[str, _Part]]) -> Record:
    """A record of its parts."""
    record = Record(url, values := {}, typed := {}, provenance := {}, withheld := {})
    for name, part in parts:
        if part.values is not None:
            values[name] = part.values
        if part.typed is not None:
            typed[name] = part.typed
        if part.provenance is not None:
            provenance[name] = part.provenance
        if part.withheld is not None:
            withheld[name] = part.withheld
    return record


_ABOUT_TEXT = frozenset({"shape", "first-text"})


class _Meaning(NamedTuple):
    """All of a rule that says which nodes it means, with the tags of the elements that it chooses from."""

    target: str
    features: tuple[Feature, ...]
    tags: frozenset[str]


class _Asked(NamedTuple):
    """A rule that was asked for, and the nodes of units found by what it means."""

    rule: Rule
    tags: frozenset[str]
    found: dict[int, list[Node] | None]


class NodesByTable:
    """Which nodes of a unit a rule means; what the table says of them is what is found on the page.

    `nodes` gives those of a unit by its number, and `numbers` this by a page's root, or by the element
    that a record begins with.
    """

    def __init__(self, table: Table, nodes: Callable[[int], Nodes], numbers: Mapping[Element, int]) -> None:
        self._table = table
        self._nodes = cache(nodes)
        self._numbers = numbers
        self._found: dict[_Meaning, dict[int, list[Node] | None]] = {}
        self._asked: dict[int, _Asked] = {}

    def find(self, tags: frozenset[str], rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
        """The nodes, in document order; None where the table does not have the unit, or not all of its nodes.

        `tags` are those of the elements that rules choose from.
        """
        unit = self._numbers.get(root if scope is None else scope.start)
        if unit is None:
            return None
        found = self._found_by(tags, rule)
        if unit not in found:
            found[unit] = None if self._may_be_too_long(tags, rule, unit) else self._find(tags, rule, unit)
        return found[unit]

    def _found_by(self, tags: frozenset[str], rule: Rule) -> dict[int, list[Node] | None]:
        """What is known of a rule; to look for it by what the rule means takes time, so it is done once."""
        asked = self._asked.get(id(rule))
        if asked is None or asked.rule is not rule or asked.tags != tags:
            meaning = _Meaning(rule.target, rule.features, tags)
            asked = self._asked[id(rule)] = _Asked(rule, tags, self._found.setdefault(meaning, {}))
        return asked.found

    def _find(self, tags: frozenset[str], rule: Rule, unit: int) -> list[Node]:
        rows = target_rows(self._table, rule.target, tags)
        words = self._table.words.texts
        found = rows.units_with(rule.features).get(unit)
        if found is None:
            return []
        elements, text_parents, text_numbers = self._nodes(unit)
        first_element, first_text = self._table.first_elements[unit], self._table.first_texts[unit]
        nodes = []
        for row in found.tolist():
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
        features = tuple(feature for feature in rule.features if feature.kind not in _ABOUT_TEXT)
        return unit in too_long(self._table, rule.target, tags).units_with(features)
