"""The nodes that rules mean, read off the table that they were learned from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.dom.spots import spot_of_text
from siteloom.learning.table import target_rows, too_long
from siteloom.wrapper.selection import Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.dom import Element
    from siteloom.learning.table import Table, UnitRows
    from siteloom.wrapper.language import Feature, Rule
    from siteloom.wrapper.selection import Scope

_ABOUT_TEXT = frozenset({"shape", "first-text"})


class _Places(NamedTuple):
    """Where the nodes of a unit stand, by their rows, which begin at some."""

    elements: list[Element]
    texts: list[tuple[Element | None, int]]
    first_element: int
    first_text: int


class NodesByTable:
    """Which nodes of a unit a rule means; what the table says of them is what is found on the page.

    `rows` are those of units, by their numbers; `numbers` gives these by a page's root, or by the element
    that a record begins with.
    """

    def __init__(self, table: Table, rows: Mapping[int, UnitRows], numbers: Mapping[Element, int]) -> None:
        self._table = table
        self._rows = rows
        self._numbers = numbers
        self._places: dict[int, _Places] = {}
        self._found: dict[tuple[int, str, tuple[Feature, ...], frozenset[str]], list[Node]] = {}

    def find(self, tags: frozenset[str], rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
        """The nodes, in document order; None where the table does not have the unit, or not all of its nodes.

        `tags` are those of the elements that rules choose from.
        """
        unit = self._numbers.get(root if scope is None else scope.start)
        if unit is None or self._may_be_too_long(tags, rule, unit):
            return None
        key = unit, rule.target, rule.features, tags
        if key not in self._found:
            self._found[key] = self._find(tags, rule, unit)
        return self._found[key]

    def _find(self, tags: frozenset[str], rule: Rule, unit: int) -> list[Node]:
        rows = target_rows(self._table, rule.target, tags)
        words = self._table.words.texts
        found = rows.units_with(rule.features).get(unit)
        if found is None:
            return []
        places = self._places_of(unit)
        nodes = []
        for row in found.tolist():
            text = words[rows.value[row]]
            if rule.target != "text":
                nodes.append(Node(places.elements[rows.element[row] - places.first_element], None, text))
                continue
            parent, number = places.texts[row - places.first_text]
            assert parent is not None, "texts of a unit stand in elements"
            nodes.append(Node(parent, spot_of_text(parent, number), text))
        return nodes

    def _may_be_too_long(self, tags: frozenset[str], rule: Rule, unit: int) -> bool:
        if rule.target == "text":
            return False
        features = tuple(feature for feature in rule.features if feature.kind not in _ABOUT_TEXT)
        return unit in too_long(self._table, rule.target, tags).units_with(features)

    def _places_of(self, unit: int) -> _Places:
        if unit not in self._places:
            rows = self._rows[unit]
            self._places[unit] = _Places(
                list(rows.elements),
                list(rows.texts),
                int(self._table.first_elements[unit]),
                int(self._table.first_texts[unit]),
            )
        return self._places[unit]
