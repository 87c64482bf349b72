"""Choose among the nodes that a rule selects, and cut the value out of the text.

Weak features say where a node stands among others and what its text is made of.
They change easily, so they never decide where others do.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from siteloom.wrappers.rule_evaluation import standing
from siteloom.wrappers.rule_features import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.wrappers.rule_evaluation import Node, Scope, Standing
    from siteloom.wrappers.rule_features import Part, Scorer


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


# What a text is searched for a pattern at most. From each place of a text a match may
# run on to its end, so the time grows with the square of its length.
SEARCHED = 5_000


def part_values(part: Part, text: str) -> list[str]:
    """The values that a part takes from a text in normal form."""
    found = _cut(part, text)
    pieces = found.split(part.separator) if part.separator else [found]
    return [value for piece in pieces if (value := piece.strip())]


def _cut(part: Part, text: str) -> str:
    if part.pattern:
        match = _compiled(part.pattern).search(text, 0, SEARCHED)
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
