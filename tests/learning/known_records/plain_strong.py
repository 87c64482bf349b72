"""Strong similarities pair by pair, as the paper tells them: the program counts all pairs at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from siteloom.learning.known_records.string_similarity import SUPPORT, Pattern, WeakIndex, part_matches


class WeakPair(NamedTuple):
    """A seed's value and a weakly similar text at one position of a page.

    `source` is where the seed is from; leaves of the text that stand apart on the page are best given as
    lines of it.
    """

    value: str
    text: str
    page: int
    source: str


def strong_similarities(pairs: Sequence[WeakPair], index: WeakIndex, alpha: float = SUPPORT) -> list[float]:
    """The strong similarity of each pair of one attribute and position, never less than the weak one."""
    values, texts = [pair.value for pair in pairs], [pair.text for pair in pairs]
    matches = part_matches(values, texts, index)
    recurring = _recurring(pairs, [match.pattern for match in matches], alpha)
    recurring_collapsed = _recurring(pairs, [match.collapsed for match in matches], alpha)
    return [
        max(float(weak), match.similarity) if is_recurring or is_recurring_collapsed else float(weak)
        for weak, match, is_recurring, is_recurring_collapsed in zip(
            index.similarities(values, texts), matches, recurring, recurring_collapsed, strict=True
        )
    ]


def _recurring(pairs: Sequence[WeakPair], patterns: Sequence[Pattern], alpha: float) -> list[bool]:
    """Whether each pair's pattern is found on enough pages of those that have pairs with its source.

    Pages are counted, not pairs: one page may be similar to a hundred seeds in the same wrong way.
    """
    pages: dict[str, set[int]] = defaultdict(set)
    pages_of: dict[tuple[str, Pattern], set[int]] = defaultdict(set)
    for pair, pattern in zip(pairs, patterns, strict=True):
        pages[pair.source].add(pair.page)
        pages_of[pair.source, pattern].add(pair.page)
    return [
        len(pages_of[pair.source, pattern]) >= alpha * len(pages[pair.source])
        for pair, pattern in zip(pairs, patterns, strict=True)
    ]
