"""FINDATTRPOS as published: positions at which known records agree with many pages.

After Gulhane, Rastogi, Sengamedu and Tengli, "Exploiting content redundancy for web information extraction"
(PVLDB 2010). A position is an absolute path with numbers. A record matches a page at some positions if each
of its values is similar to the text there. The result is the largest set of attributes, each with its
position, that enough pages match. FINDATTRPOSW requires only weak similarity.

A value such as a kind of cuisine belongs to thousands of records and is on each page. All pairs of a record
and a page would not fit into memory, so the code stores texts with the values that they are similar to, and
matches records page by page.

The same texts are at many positions. The segments of a text and a value that match are found once for all
positions; how often such a pattern recurs is counted at each position.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from siteloom.html.page_text_arrays import Numbered
from siteloom.learning.known_records.frequent_sets import Baskets, frequent_sets
from siteloom.learning.known_records.record_arrays import Links, make_links
from siteloom.learning.known_records.string_similarity import (
    STRONGLY_SIMILAR,
    SUPPORT,
    WeakIndex,
    part_matches,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.core.model import Seed
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.learning.known_records.frequent_sets import ItemSet


if TYPE_CHECKING:
    Ints = NDArray[np.int32]
    Floats = NDArray[np.float32]

BETA = 10
"""How many pages a position needs, or a set of them."""


class KnownValues(NamedTuple):
    """The distinct values of an attribute. A statement is a value in one source."""

    values: tuple[str, ...]
    value_of: Ints  # statement to value
    source_of: Ints  # statement to source
    statements_of: Links  # value to statements
    records_of: Links  # statement to records
    weak: WeakIndex


@dataclass(frozen=True, slots=True, eq=False)
class SimilarStatements:
    """The statements that texts are similar to; `similarity` is that of each link."""

    known_values: KnownValues
    statements: Links
    similarity: Floats

    def similarities(self, place: int) -> Floats:
        """Return the similarities of the text at a place to each of its statements."""
        return self.similarity[self.statements.starts[place] : self.statements.starts[place + 1]]

    def links_at(self, places: NDArray[np.signedinteger]) -> tuple[NDArray[np.int64], Ints]:
        """Return all links at some places: for each the index in `places`, and its number."""
        numbers = np.arange(len(self.similarity), dtype=np.int32)
        return Links(self.statements.starts, numbers).expand(places)


class Candidate(NamedTuple):
    """An attribute at a position with similar texts: the pages, and the text on each.

    `place` has the index of each text in the statements of `similar`.
    """

    attribute: str
    path: int
    page: Ints
    text: Ints
    place: Ints
    similar: SimilarStatements


@dataclass(frozen=True, slots=True)
class Matches:
    """All candidate positions of a site."""

    candidates: tuple[Candidate, ...]
    texts: PageTexts
    seeds: int


def weak_matches(seeds: Sequence[Seed], texts: PageTexts, *, beta: int = BETA) -> Matches:
    """Find the positions of values that are weakly similar to known ones on at least `beta` pages."""
    is_html_attribute = np.array([step.startswith("@") for _, step in texts.paths], np.bool_)
    rows = np.flatnonzero(~is_html_attribute[texts.path])
    rows = rows[np.bincount(texts.path[rows], minlength=len(texts.paths))[texts.path[rows]] >= beta]
    numbers, place = np.unique(texts.text[rows], return_inverse=True)
    written = [texts.texts[number] for number in numbers.tolist()]
    candidates: list[Candidate] = []
    for attribute in dict.fromkeys(name for seed in seeds for name in seed.values):
        known_values = _known_values(seeds, attribute)
        join_result = known_values.weak.join(written)
        pair, statement = known_values.statements_of.expand(join_result.value)
        begins = np.searchsorted(join_result.text[pair], np.arange(len(written) + 1))
        similar = SimilarStatements(known_values, Links(begins, statement), join_result.similarity[pair])
        matching = np.flatnonzero(np.diff(begins)[place])
        path = texts.path[rows[matching]]
        candidates += [
            Candidate(
                attribute=attribute,
                path=int(path[group[0]]),
                page=texts.page[rows[matching[group]]],
                text=texts.text[rows[matching[group]]],
                place=place[matching[group]].astype(np.int32),
                similar=similar,
            )
            for group in grouped(path)
            if len(group) >= beta
        ]
    return Matches(tuple(candidates), texts, len(seeds))


def at_least(matches: Matches, threshold: float, *, beta: int = BETA) -> Matches:
    """Return the matches with at least this similarity, at positions where `beta` pages have one."""
    filtered: dict[SimilarStatements, SimilarStatements] = {}
    candidates: list[Candidate] = []
    for candidate in matches.candidates:
        similar = filtered.get(candidate.similar)
        if similar is None:
            similar = filtered[candidate.similar] = _at_least(candidate.similar, threshold)
        rows = np.flatnonzero(similar.statements.counts()[candidate.place])
        if len(rows) >= beta:
            candidates.append(
                candidate._replace(
                    page=candidate.page[rows],
                    text=candidate.text[rows],
                    place=candidate.place[rows],
                    similar=similar,
                )
            )
    return replace(matches, candidates=tuple(candidates))


def _at_least(similar: SimilarStatements, threshold: float) -> SimilarStatements:
    is_similar = similar.similarity >= threshold
    counts_before = np.concatenate(([0], np.cumsum(is_similar)))
    statements = Links(counts_before[similar.statements.starts], similar.statements.targets[is_similar])
    return SimilarStatements(similar.known_values, statements, similar.similarity[is_similar])


def grouped(keys: Ints) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of equal keys, those of each key together."""
    order = np.argsort(keys, kind="stable")
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _known_values(seeds: Sequence[Seed], attribute: str) -> KnownValues:
    values, sources, statements = Numbered(), Numbered(), Numbered()
    statement_records: list[tuple[int, int]] = []
    for record, seed in enumerate(seeds):
        source = sources[seed.source]
        statement_records += [
            (statements[values[value], source], record) for value in seed.values.get(attribute, ())
        ]
    value_of, source_of = np.array(list(statements), np.int32).reshape(-1, 2).T
    statement, records = np.array(statement_records, np.int32).reshape(-1, 2).T
    return KnownValues(
        values=tuple(values),
        value_of=value_of,
        source_of=source_of,
        statements_of=make_links(value_of, np.arange(len(statements)), len(values)),
        records_of=make_links(statement, records, len(statements)),
        weak=WeakIndex(tuple(values)),
    )


class _Patterns(NamedTuple):
    """The numbers of each pair's pattern, with and without repetition, and the similarity of its segments.

    The similarity is that of the matching segments, or 0 if these are too small a part of the value.
    """

    pattern: NDArray[np.int32]
    collapsed: NDArray[np.int32]
    segment_similarity: NDArray[np.float32]


def strong_matches(matches: Matches, *, alpha: float = SUPPORT) -> Matches:
    """Return the matches with strong similarities instead of weak ones."""
    patterns_of: dict[SimilarStatements, _Patterns] = {}
    candidates: list[Candidate] = []
    for candidate in matches.candidates:
        if candidate.similar not in patterns_of:
            siblings = [sibling for sibling in matches.candidates if sibling.similar is candidate.similar]
            patterns_of[candidate.similar] = _compare_segments(candidate.similar, siblings, matches.texts)
        candidates.append(_with_strong_similarities(candidate, patterns_of[candidate.similar], alpha))
    return replace(matches, candidates=tuple(candidates))


def _compare_segments(
    similar: SimilarStatements, candidates: Iterable[Candidate], texts: PageTexts
) -> _Patterns:
    """Return the pattern of each link from a text to a statement, if any of the candidates has the text."""
    text_at = {
        place: texts.texts[text]
        for candidate in candidates
        for place, text in zip(candidate.place.tolist(), candidate.text.tolist(), strict=True)
    }
    places = np.array(sorted(text_at), np.int64)
    origin, link = similar.links_at(places)
    value = similar.known_values.value_of[similar.statements.targets[link]]
    pairs, pair_number = np.unique(places[origin] << 32 | value, return_inverse=True)
    patterns = _matching_patterns(
        [similar.known_values.values[number] for number in (pairs & 0xFFFFFFFF).tolist()],
        [text_at[number] for number in (pairs >> 32).tolist()],
        similar.known_values.weak,
    )
    pair_of = np.zeros(len(similar.similarity), np.int64)
    pair_of[link] = pair_number
    return _Patterns(
        patterns.pattern[pair_of], patterns.collapsed[pair_of], patterns.segment_similarity[pair_of]
    )


def _with_strong_similarities(candidate: Candidate, patterns: _Patterns, alpha: float) -> Candidate:
    """Return a candidate with strong similarities and renumbered texts."""
    similar = candidate.similar
    places, local, pages = np.unique(candidate.place, return_inverse=True, return_counts=True)
    origin, link = similar.links_at(places)
    statements = similar.statements.targets[link]
    source = similar.known_values.source_of[statements]
    of_source = _pages_with(source, origin, pages)
    is_recurring = np.zeros(len(link), np.bool_)
    for pattern in (patterns.pattern[link], patterns.collapsed[link]):
        is_recurring |= (
            _pages_with(source.astype(np.int64) << 32 | pattern, origin, pages) >= alpha * of_source
        )
    weak = similar.similarity[link]
    return candidate._replace(
        place=local.astype(np.int32),
        similar=SimilarStatements(
            similar.known_values,
            Links(np.searchsorted(origin, np.arange(len(places) + 1)), statements),
            np.where(is_recurring, np.maximum(weak, patterns.segment_similarity[link]), weak),
        ),
    )


def _pages_with(
    key: NDArray[np.signedinteger], text: NDArray[np.int64], pages: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the pages of each key; each key belongs to a text, and each text is on `pages` pages."""
    _, key_number = np.unique(key, return_inverse=True)
    once = np.unique(key_number * len(pages) + text)
    counts = np.bincount(once // len(pages), weights=pages[once % len(pages)])
    return counts[key_number].astype(np.int64)


def _matching_patterns(values: Sequence[str], texts: Sequence[str], index: WeakIndex) -> _Patterns:
    """Return the pattern of each pair of a value and a text."""
    matches = part_matches(values, texts, index)
    patterns, collapsed = Numbered(), Numbered()
    return _Patterns(
        np.array([patterns[match.pattern] for match in matches], np.int32),
        np.array([collapsed[match.collapsed] for match in matches], np.int32),
        np.array([match.similarity for match in matches], np.float32),
    )


Method = Literal["findattrpos", "findattrposw"]

_MAX_CACHED_RECORDS = 5_000_000
# A site of long lists has tens of thousands of candidates, and all pairs of them would be tried.
_MOST_CANDIDATES = 1_000
_LEAST_ATTRIBUTES = 2  # that a record must match before it is considered


class Agreement(NamedTuple):
    """A page and its best record: the value and the text of an attribute, and their similarity."""

    seed: int
    page: int
    attribute: str
    value: str
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class FoundPositions:
    """The positions of attributes, none if known records match too few pages.

    `filled` is the share of pages that have a text there. `support` is the number of pages that one record
    matches at all positions. `positions_left` has for k = 1, 2, … the number of positions that each attribute
    has in sets of k positions with enough support.
    """

    positions: Mapping[str, str]
    filled: Mapping[str, float]
    support: int
    positions_left: tuple[Mapping[str, int], ...]
    agreements: tuple[Agreement, ...]


def find_attribute_positions(
    seeds: Sequence[Seed],
    texts: PageTexts,
    method: Method = "findattrpos",
    *,
    beta: int = BETA,
) -> FoundPositions:
    """Find the positions of the attributes of known records on pages of one template."""
    matches = weak_matches(seeds, texts, beta=beta)
    if method == "findattrpos":
        matches = at_least(strong_matches(matches), STRONGLY_SIMILAR, beta=beta)
    return best_positions(matches, beta=beta)


def best_positions(matches: Matches, *, beta: int = BETA) -> FoundPositions:
    """Choose the largest set of candidates with enough support; of several, the one with the most support.

    Ties go to the set with the least text besides the known values, and then to the first.
    """
    candidates = _most_common(matches.candidates)
    levels = frequent_sets(
        pages=list(_baskets(candidates, matches.seeds)),
        alone=[len(candidate.page) for candidate in candidates],
        min_support=beta,
        excluded=_excluded(candidates),
    )
    if not levels:
        return FoundPositions(positions={}, filled={}, support=0, positions_left=(), agreements=())
    support = max(levels[-1].values())
    tied = sorted(item_set for item_set, of_set in levels[-1].items() if of_set == support)
    if len(tied) > 1:
        extra = {item: _extra_text(candidates[item], matches.texts) for item_set in tied for item in item_set}
        tied.sort(key=lambda item_set: sum(extra[item] for item in item_set))
    chosen = [candidates[item] for item in tied[0]]
    return FoundPositions(
        positions={candidate.attribute: matches.texts.path_text(candidate.path) for candidate in chosen},
        filled={candidate.attribute: _filled(candidate, matches.texts) for candidate in chosen},
        support=support,
        positions_left=tuple(_positions_left(level, candidates) for level in levels),
        agreements=tuple(_agreements(chosen, matches.texts)),
    )


def _most_common(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates; of an attribute with too many, only those on the most pages."""
    by_pages: dict[str, list[int]] = {}
    for number in sorted(range(len(candidates)), key=lambda number: -len(candidates[number].page)):
        by_pages.setdefault(candidates[number].attribute, []).append(number)
    most_frequent = [number for numbers in by_pages.values() for number in numbers[:_MOST_CANDIDATES]]
    return [candidates[number] for number in sorted(most_frequent)]


def _excluded(candidates: Sequence[Candidate]) -> NDArray[np.bool_]:
    """Flag the pairs of candidates that exclude each other: they have the same attribute or position."""
    numbers = Numbered()
    attribute = np.array([numbers[candidate.attribute] for candidate in candidates], np.int32)
    path = np.array([candidate.path for candidate in candidates], np.int32)
    excluded: NDArray[np.bool_] = (attribute == attribute[:, np.newaxis]) | (path == path[:, np.newaxis])
    return excluded


class _RecordsOfTexts:
    """Returns the records with a value that a text is similar to, cached for texts on many pages."""

    def __init__(self) -> None:
        self._cache: dict[tuple[SimilarStatements, int], Ints] = {}
        self._size = 0

    def __call__(self, similar: SimilarStatements, place: int) -> Ints:
        records_with_value = self._cache.get((similar, place))
        if records_with_value is None:
            _, records = similar.known_values.records_of.expand(similar.statements.of(place))
            records_with_value = np.unique(records)
            if self._size > _MAX_CACHED_RECORDS:
                self._cache.clear()
                self._size = 0
            self._cache[similar, place] = records_with_value
            self._size += len(records_with_value)
        return records_with_value


def _baskets(candidates: Sequence[Candidate], seeds: int) -> Iterator[Baskets]:
    """Yield for each page the distinct sets of candidates at which one record agrees with it.

    Records that agree in only one attribute are left out.
    """
    if not candidates:
        return
    item = np.repeat(np.arange(len(candidates)), [len(candidate.page) for candidate in candidates])
    page = np.concatenate([candidate.page for candidate in candidates])
    places = np.concatenate([candidate.place for candidate in candidates])
    records_of = _RecordsOfTexts()
    row_of = np.full(seeds, -1, np.int32)
    for page_rows in grouped(page):
        items = item[page_rows]
        records = [
            records_of(candidates[candidate].similar, text_place)
            for candidate, text_place in zip(items.tolist(), places[page_rows].tolist(), strict=True)
        ]
        close = _records_in_several(
            [candidates[candidate].attribute for candidate in items.tolist()], records, seeds
        )
        if not len(close):
            continue
        row_of[close] = np.arange(len(close))
        holds = np.zeros((len(close), len(items)), np.bool_)
        for column, of_item in enumerate(records):
            rows = row_of[of_item]
            holds[rows[rows >= 0], column] = True
        row_of[close] = -1
        packed = np.packbits(holds, axis=1)
        _, first_rows = np.unique(packed.view(f"V{packed.shape[1]}"), return_index=True)
        is_held = holds.any(axis=0)
        yield Baskets(items[is_held], holds[np.ix_(first_rows, is_held)])


def _records_in_several(attributes: Sequence[str], records: Sequence[Ints], seeds: int) -> NDArray[np.int64]:
    """Return the records that agree in more than one attribute."""
    agreeing = np.zeros(seeds, np.int16)
    names = set(attributes)
    if len(names) < _LEAST_ATTRIBUTES:
        return np.flatnonzero(agreeing)
    for name in names:
        agrees = np.zeros(seeds, np.bool_)
        for attribute, of_item in zip(attributes, records, strict=True):
            if attribute == name:
                agrees[of_item] = True
        agreeing += agrees
    return np.flatnonzero(agreeing >= _LEAST_ATTRIBUTES)


def _positions_left(level: Iterable[ItemSet], candidates: Sequence[Candidate]) -> dict[str, int]:
    items = {item for item_set in level for item in item_set}
    return dict(Counter(candidates[item].attribute for item in sorted(items)))


def _filled(candidate: Candidate, texts: PageTexts) -> float:
    """Return the share of pages that have a text at a position."""
    return round(np.count_nonzero(texts.path == candidate.path) / texts.pages, 4)


def _extra_text(candidate: Candidate, texts: PageTexts) -> float:
    """Return the mean ratio of the length of a text at a position to that of its most similar known value."""
    ratios = [
        len(texts.texts[text]) / len(_most_similar(candidate.similar, place))
        for text, place in zip(candidate.text.tolist(), candidate.place.tolist(), strict=True)
    ]
    return sum(ratios) / len(ratios)


def _most_similar(similar: SimilarStatements, place: int) -> str:
    statement = similar.statements.of(place)[np.argmax(similar.similarities(place))]
    return similar.known_values.values[int(similar.known_values.value_of[statement])]


class _TextRecords(NamedTuple):
    """The distinct records that agree with a text, with the most similar of their statements."""

    record: Ints
    statement: Ints
    similarity: Floats


def _text_records(similar: SimilarStatements, place: int) -> _TextRecords:
    statements = similar.statements.of(place)
    origin, records = similar.known_values.records_of.expand(statements)
    similarity = similar.similarities(place)[origin]
    order = np.lexsort((-similarity, records))
    record, first_indices = np.unique(records[order], return_index=True)
    return _TextRecords(record, statements[origin][order][first_indices], similarity[order][first_indices])


def _agreements(chosen: Sequence[Candidate], texts: PageTexts) -> Iterator[Agreement]:
    """Yield the agreements of each page at all positions with its most similar record."""
    rows = [
        dict(zip(candidate.page.tolist(), range(len(candidate.page)), strict=True)) for candidate in chosen
    ]
    for page in sorted(set(rows[0]).intersection(*rows[1:])):
        candidate_rows = [row[page] for row in rows]
        sides = [
            _text_records(candidate.similar, int(candidate.place[row]))
            for candidate, row in zip(chosen, candidate_rows, strict=True)
        ]
        common = sides[0].record
        for side in sides[1:]:
            common = np.intersect1d(common, side.record, assume_unique=True)
        if not len(common):
            continue
        indices = [np.searchsorted(side.record, common) for side in sides]
        total = sum(side.similarity[index] for side, index in zip(sides, indices, strict=True))
        best = int(np.argmax(total))
        for candidate, row, side, index in zip(chosen, candidate_rows, sides, indices, strict=True):
            known_values = candidate.similar.known_values
            yield Agreement(
                seed=int(common[best]),
                page=page,
                attribute=candidate.attribute,
                value=known_values.values[known_values.value_of[side.statement[index[best]]]],
                text=texts.texts[candidate.text[row]],
                similarity=float(side.similarity[index[best]]),
            )
