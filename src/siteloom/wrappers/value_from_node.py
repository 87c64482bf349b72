"""Choose among the nodes that a rule selects, and cut the value out of the text.

Weak features describe the position of a node and the characters of its text.
They change easily, so they are used only where other features do not decide.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from siteloom.wrappers.rule_evaluation import node_position
from siteloom.wrappers.rule_features import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.wrappers.rule_evaluation import Node, NodePosition, Scope
    from siteloom.wrappers.rule_features import Scorer, ValuePart


LEAST_PROBABILITY = 0.5

WEAK_NAME = re.compile(
    r"(position|text-number|depth|length) (0|[1-9][0-9]{0,8})|shape (price|digits|mixed|words)"
    r"|digits|letters|capitals"
)
"""Matches every name of a weak feature."""


def weak_features(text: str, position: NodePosition) -> dict[str, float]:
    """Return the weak features of a node: 1 for each that it has, and shares of its characters.

    Positions and lengths are categories, not amounts. Lengths are grouped by powers of two.
    """
    length = len(text) or 1
    return {
        f"position {position.position}": 1.0,
        f"text-number {position.text_number}": 1.0,
        f"depth {position.depth}": 1.0,
        f"length {len(text).bit_length()}": 1.0,
        f"shape {shape(text)}": 1.0,
        "digits": sum(map(str.isdigit, text)) / length,
        "letters": sum(map(str.isalpha, text)) / length,
        "capitals": sum(map(str.isupper, text)) / length,
    }


def probability(scorer: Scorer, weak: Mapping[str, float]) -> float:
    """Return the probability that a node with these weak features holds a value."""
    total = scorer.intercept + sum(weight * weak.get(name, 0.0) for name, weight in scorer.weights)
    return 0.5 + 0.5 * math.tanh(total / 2)  # the logistic function, without its overflow


def score(scorer: Scorer, node: Node, record: Scope | None = None) -> float:
    """Return the probability that a node of a page, or of one record, holds a value."""
    return probability(scorer, weak_features(node.text, node_position(node, record)))


def winners(scorer: Scorer, probabilities: Sequence[float]) -> list[int]:
    """Return the numbers of the chosen candidates; of equal ones the first."""
    probable = [number for number, estimate in enumerate(probabilities) if estimate >= LEAST_PROBABILITY]
    if scorer.takes_all:
        return probable
    return [max(probable, key=probabilities.__getitem__)] if probable else []


def chosen(scorer: Scorer, nodes: Iterable[Node], record: Scope | None = None) -> list[Node]:
    """Return the nodes that a scorer chooses among candidates, in their order."""
    candidates = list(nodes)
    return [candidates[number] for number in winners(scorer, [score(scorer, n, record) for n in candidates])]


# How many characters of a text are searched for a pattern. A match may start anywhere and run to the end, so
# the time grows with the square of the length.
SEARCH_LIMIT = 5_000


def part_values(part: ValuePart, text: str) -> list[str]:
    """Cut the values out of a normalized text."""
    cut_text = _cut(part, text)
    pieces = cut_text.split(part.separator) if part.separator else [cut_text]
    return [value for piece in pieces if (value := piece.strip())]


def _cut(part: ValuePart, text: str) -> str:
    if part.pattern:
        match = _compiled(part.pattern).search(text, 0, SEARCH_LIMIT)
        return match[0] if match else ""
    if part.left:
        _, left, text = text.partition(part.left)
        if not left:
            return ""
    if part.right:
        text, right, _ = text.partition(part.right)
        if not right:
            return ""
    return text


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
