"""The nodes that rules mean, read off the table that they were learned from."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from siteloom.dom.spots import spot_of_text
from siteloom.learning.table import target_rows, too_long
from siteloom.wrapper.selection import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from siteloom.dom import Element
    from siteloom.learning.cutting import Nodes
    from siteloom.learning.table import Table
    from siteloom.wrapper.language import Feature, Rule
    from siteloom.wrapper.selection import Scope

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
            nodes.append(Node(parent, spot_of_text(parent, text_numbers[row - first_text]), text))
        return nodes

    def _may_be_too_long(self, tags: frozenset[str], rule: Rule, unit: int) -> bool:
        if rule.target == "text":
            return False
        features = tuple(feature for feature in rule.features if feature.kind not in _ABOUT_TEXT)
        return unit in too_long(self._table, rule.target, tags).units_with(features)
