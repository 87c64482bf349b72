"""Which finds come first: those with the words in their title, or side by side as they were typed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from siteloom.words import terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from siteloom.store import FoundDocument

LOOKED_AT = 50
"""So many of the best finds are put into a better order."""

# How much more a find counts that has all that was asked for in its title, or side by side in any text. With
# half or double of each, pages of real sites are found about as well: see docs/evaluation/search.md.
_IN_TITLE = 0.5
_SIDE_BY_SIDE = 1.0


def best_first(
    found: Sequence[FoundDocument], wanted: Sequence[tuple[str, ...]], attribute: str | None = None
) -> list[FoundDocument]:
    """Finds in the order of their scores, which become higher for those that fit well.

    With an attribute, all that counts is what stands in the values of this attribute.
    """
    fitting = [one._replace(score=one.score * _fit(one, wanted, attribute)) for one in found[:LOOKED_AT]]
    return [*sorted(fitting, key=lambda one: -one.score), *found[LOOKED_AT:]]


def _fit(found: FoundDocument, wanted: Sequence[tuple[str, ...]], attribute: str | None) -> float:
    passages = [one for one in found.document.passages if attribute in (None, one.attribute)]
    titles = [passage.text for passage in passages if passage.field == "title"]
    pairs = [(*phrase, *following) for phrase, following in pairwise(wanted)]
    in_title = _share(titles, wanted)
    side_by_side = _share([passage.text for passage in passages], pairs) if pairs else 0.0
    return 1 + _IN_TITLE * in_title + _SIDE_BY_SIDE * side_by_side


def _share(texts: Iterable[str], phrases: Collection[tuple[str, ...]]) -> float:
    """The share of phrases that stand in any of the texts."""
    rows = [f" {' '.join(terms(text))} " for text in texts]
    return sum(any(f" {' '.join(phrase)} " in row for row in rows) for phrase in phrases) / len(phrases)
