"""Choosing among the nodes that a rule selects, by what is too weak to be a feature of a rule.

Weak features say where a node stands among others and what its text is made of.
They change easily, so they never decide where others do.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from siteloom.wrapper.language import shape
from siteloom.wrapper.selection import standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.wrapper.language import Scorer
    from siteloom.wrapper.selection import Node, Scope, Standing

LEAST_PROBABILITY = 0.5

WEAK_NAME = re.compile(
    r"(position|text-number|depth|length) (0|[1-9][0-9]{0,8})|shape (price|digits|mixed|words)"
    r"|digits|letters|capitals"
)
"""All names that weak features can have."""


def weak_features(text: str, place: Standing) -> dict[str, float]:
    """The weak features of a node: 1 for what it has, and shares of its characters.

    Numbers are names, not amounts: the third of five is not more than the second.
    Lengths count as the same up to the next power of two.
    """
    length = len(text) or 1
    return {
        f"position {place.position}": 1.0,
        f"text-number {place.text_number}": 1.0,
        f"depth {place.depth}": 1.0,
        f"length {len(text).bit_length()}": 1.0,
        f"shape {shape(text)}": 1.0,
        "digits": sum(map(str.isdigit, text)) / length,
        "letters": sum(map(str.isalpha, text)) / length,
        "capitals": sum(map(str.isupper, text)) / length,
    }


def probability(scorer: Scorer, weak: Mapping[str, float]) -> float:
    """How probable it is that a node with these weak features holds a value."""
    total = scorer.intercept + sum(weight * weak.get(name, 0.0) for name, weight in scorer.weights)
    return 0.5 + 0.5 * math.tanh(total / 2)  # the logistic function, without its overflow


def score(scorer: Scorer, node: Node, record: Scope | None = None) -> float:
    """How probable it is that a node of a page, or of one record, holds a value."""
    return probability(scorer, weak_features(node.text, standing(node, record)))


def winners(scorer: Scorer, probabilities: Sequence[float]) -> list[int]:
    """The numbers of those that are chosen among candidates; of equal ones the first."""
    probable = [number for number, found in enumerate(probabilities) if found >= LEAST_PROBABILITY]
    if scorer.takes_all:
        return probable
    return [max(probable, key=probabilities.__getitem__)] if probable else []


def chosen(scorer: Scorer, nodes: Iterable[Node], record: Scope | None = None) -> list[Node]:
    """The nodes that a scorer chooses among candidates, in their order."""
    candidates = list(nodes)
    return [candidates[number] for number in winners(scorer, [score(scorer, n, record) for n in candidates])]
