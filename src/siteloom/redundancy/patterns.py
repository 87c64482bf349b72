"""The strong similarity of all candidates of a site.

The same texts stand at many positions. Which segments of a text and a value match is
found once for all of them; how often such a pattern recurs is counted at each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.redundancy.candidates import Similar
from siteloom.redundancy.links import Links
from siteloom.redundancy.strong import SUPPORT, part_matches
from siteloom.template.page_texts import Numbered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from siteloom.redundancy.candidates import Candidate, Matches
    from siteloom.redundancy.weak import WeakIndex
    from siteloom.template.page_texts import PageTexts


class _Patterns(NamedTuple):
    """For each pair the number of its pattern, that of the pattern without repetition, and a similarity.

    It is that of the parts that match, or 0 if too little of the value does.
    """

    pattern: NDArray[np.int32]
    collapsed: NDArray[np.int32]
    part: NDArray[np.float32]


def strong_matches(matches: Matches, *, alpha: float = SUPPORT) -> Matches:
    """The same matches with their strong similarities."""
    compared: dict[Similar, _Patterns] = {}
    candidates: list[Candidate] = []
    for one in matches.candidates:
        if one.similar not in compared:
            same = [other for other in matches.candidates if other.similar is one.similar]
            compared[one.similar] = _compared(one.similar, same, matches.texts)
        candidates.append(_strong(one, compared[one.similar], alpha))
    return replace(matches, candidates=tuple(candidates))


def _compared(similar: Similar, candidates: Iterable[Candidate], texts: PageTexts) -> _Patterns:
    """The pattern of each link of a text to a saying, if any of the candidates has the text."""
    text_at = {
        place: texts.texts[text]
        for one in candidates
        for place, text in zip(one.place.tolist(), one.text.tolist(), strict=True)
    }
    places = np.array(sorted(text_at), np.int64)
    origin, link = similar.links_at(places)
    value = similar.known.value_of[similar.sayings.right[link]]
    pairs, which = np.unique(places[origin] << 32 | value, return_inverse=True)
    patterns = _matching_patterns(
        [similar.known.values[number] for number in (pairs & 0xFFFFFFFF).tolist()],
        [text_at[number] for number in (pairs >> 32).tolist()],
        similar.known.weak,
    )
    pair_of = np.zeros(len(similar.similarity), np.int64)
    pair_of[link] = which
    return _Patterns(patterns.pattern[pair_of], patterns.collapsed[pair_of], patterns.part[pair_of])


def _strong(candidate: Candidate, compared: _Patterns, alpha: float) -> Candidate:
    """A candidate with strong similarities, its texts counted anew."""
    similar = candidate.similar
    places, local, pages = np.unique(candidate.place, return_inverse=True, return_counts=True)
    origin, link = similar.links_at(places)
    sayings = similar.sayings.right[link]
    source = similar.known.source_of[sayings]
    of_source = _pages_with(source, origin, pages)
    recurs = np.zeros(len(link), np.bool_)
    for pattern in (compared.pattern[link], compared.collapsed[link]):
        recurs |= _pages_with(source.astype(np.int64) << 32 | pattern, origin, pages) >= alpha * of_source
    weak = similar.similarity[link]
    return candidate._replace(
        place=local.astype(np.int32),
        similar=Similar(
            similar.known,
            Links(np.searchsorted(origin, np.arange(len(places) + 1)), sayings),
            np.where(recurs, np.maximum(weak, compared.part[link]), weak),
        ),
    )


def _pages_with(
    key: NDArray[np.signedinteger], text: NDArray[np.int64], pages: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each key on how many pages it is; it is with some texts, each of which is on some pages."""
    _, key_number = np.unique(key, return_inverse=True)
    once = np.unique(key_number * len(pages) + text)
    counts = np.bincount(once // len(pages), weights=pages[once % len(pages)])
    return counts[key_number].astype(np.int64)


def _matching_patterns(values: Sequence[str], texts: Sequence[str], index: WeakIndex) -> _Patterns:
    """The patterns in which each value and the text beside it match."""
    matches = part_matches(values, texts, index)
    patterns, collapsed = Numbered(), Numbered()
    return _Patterns(
        np.array([patterns[match.pattern] for match in matches], np.int32),
        np.array([collapsed[match.collapsed] for match in matches], np.int32),
        np.array([match.similarity for match in matches], np.float32),
    )
