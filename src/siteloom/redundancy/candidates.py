"""Where on a site's pages texts stand that are similar to known values.

A value such as a kind of cuisine is that of thousands of records and stands on each
page. So pairs of a record and a page are not held, but texts with the values that they are similar to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.redundancy.links import Links, linked
from siteloom.redundancy.weak import WeakIndex
from siteloom.template.page_texts import Numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from siteloom.model import Seed
    from siteloom.template.page_texts import PageTexts

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float32]

BETA = 10
"""How many pages a position needs, or a set of them."""


class Known(NamedTuple):
    """The values of an attribute, each once. A saying is a value as one source has it."""

    values: tuple[str, ...]
    value_of: Ints  # saying to value
    source_of: Ints  # saying to source
    sayings_of: Links  # value to sayings
    records_of: Links  # saying to records
    weak: WeakIndex


@dataclass(frozen=True, slots=True, eq=False)
class Similar:
    """The sayings that texts are similar to; `similarity` is that of each link."""

    known: Known
    sayings: Links
    similarity: Floats

    def similarities(self, place: int) -> Floats:
        """How similar the text at a place is to each of its sayings."""
        return self.similarity[self.sayings.starts[place] : self.sayings.starts[place + 1]]

    def links_at(self, places: NDArray[np.signedinteger]) -> tuple[NDArray[np.int64], Ints]:
        """The numbers of all links at some places, and before them where in `places` each is from."""
        numbers = np.arange(len(self.similarity), dtype=np.int32)
        return Links(self.sayings.starts, numbers).expanded(places)


class Candidate(NamedTuple):
    """An attribute at a position where similar texts stand: on which pages, and what.

    `place` is where the sayings of each text are found in `similar`.
    """

    attribute: str
    path: int
    page: Ints
    text: Ints
    place: Ints
    similar: Similar


@dataclass(frozen=True, slots=True)
class Matches:
    """All candidates of a site."""

    candidates: tuple[Candidate, ...]
    texts: PageTexts
    seeds: int


def weak_matches(seeds: Sequence[Seed], texts: PageTexts, *, beta: int = BETA) -> Matches:
    """Where values that are weakly similar to known ones stand on at least `beta` pages."""
    is_html_attribute = np.array([step.startswith("@") for _, step in texts.paths], np.bool_)
    rows = np.flatnonzero(~is_html_attribute[texts.path])
    rows = rows[np.bincount(texts.path[rows], minlength=len(texts.paths))[texts.path[rows]] >= beta]
    numbers, place = np.unique(texts.text[rows], return_inverse=True)
    written = [texts.texts[number] for number in numbers.tolist()]
    candidates: list[Candidate] = []
    for attribute in dict.fromkeys(name for seed in seeds for name in seed.values):
        known = _known(seeds, attribute)
        joined = known.weak.join(written)
        pair, saying = known.sayings_of.expanded(joined.value)
        begins = np.searchsorted(joined.text[pair], np.arange(len(written) + 1))
        similar = Similar(known, Links(begins, saying), joined.similarity[pair])
        matching = np.flatnonzero(np.diff(begins)[place])
        path = texts.path[rows[matching]]
        candidates += [
            Candidate(
                attribute,
                int(path[same[0]]),
                texts.page[rows[matching[same]]],
                texts.text[rows[matching[same]]],
                place[matching[same]].astype(np.int32),
                similar,
            )
            for same in grouped(path)
            if len(same) >= beta
        ]
    return Matches(tuple(candidates), texts, len(seeds))


def at_least(matches: Matches, threshold: float, *, beta: int = BETA) -> Matches:
    """The matches that are so similar, where at least `beta` pages have one."""
    kept: dict[Similar, Similar] = {}
    candidates: list[Candidate] = []
    for one in matches.candidates:
        similar = kept.get(one.similar)
        if similar is None:
            similar = kept[one.similar] = _at_least(one.similar, threshold)
        rows = np.flatnonzero(similar.sayings.counts()[one.place])
        if len(rows) >= beta:
            candidates.append(
                one._replace(page=one.page[rows], text=one.text[rows], place=one.place[rows], similar=similar)
            )
    return replace(matches, candidates=tuple(candidates))


def _at_least(similar: Similar, threshold: float) -> Similar:
    is_kept = similar.similarity >= threshold
    before = np.concatenate(([0], np.cumsum(is_kept)))
    sayings = Links(before[similar.sayings.starts], similar.sayings.right[is_kept])
    return Similar(similar.known, sayings, similar.similarity[is_kept])


def grouped(keys: Ints) -> Iterator[NDArray[np.int64]]:
    """Where equal keys stand, those of each key together."""
    order = np.argsort(keys, kind="stable")
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _known(seeds: Sequence[Seed], attribute: str) -> Known:
    values, sources, sayings = Numbered(), Numbered(), Numbered()
    said: list[tuple[int, int]] = []
    for record, seed in enumerate(seeds):
        source = sources[seed.source]
        said += [(sayings[values[value], source], record) for value in seed.values.get(attribute, ())]
    value_of, source_of = np.array(list(sayings), np.int32).reshape(-1, 2).T
    saying, records = np.array(said, np.int32).reshape(-1, 2).T
    return Known(
        tuple(values),
        value_of,
        source_of,
        linked(value_of, np.arange(len(sayings)), len(values)),
        linked(saying, records, len(sayings)),
        WeakIndex(tuple(values)),
    )
