"""Find the records among siblings: similar siblings, or repeated runs of siblings."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.learning.repeated_structure.tree_arrays import WITHOUT_SHAPE, SiblingGroup

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.learning.repeated_structure.tree_arrays import ClusterPages, Looks

SEVERAL = 2

# Shares chosen on synthetic lists with missing fields; they do not match other repetitions on SWDE pages.
USUAL = 0.5  # what more than half have counts as common to all
_OPTIONAL = 0.3  # a kind in fewer of the runs is not part of the record
_ALIKE = 0.5  # share of common paths inside two records, as in `record_rules`
_ALIKE_OF_A_CLASS = 0.2  # a lower share suffices for siblings of the same class
_TELLING_PATHS = 4  # common paths required of siblings whose classes have nothing in common
_TAKE_TURNS = 0.75  # alternating siblings with a lower share of common paths are two parts of a record
_ONCE = 1.3  # a kind with more siblings per run is repeated in it
_RECORDS = 0.6  # share of records with two fields
_RULED = 0.7  # horizontal rules win over cuts with a somewhat better score, since they mark separations
_MOST_KINDS = 60  # siblings beyond so many dissimilar kinds are not records
_MOST_UNLIKE = 200  # variants of a class without a kind, after which no more are compared
_MOST_STARTS = 12  # kinds tried; a list has few

_NO_KIND = -1
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

_Family: TypeAlias = "tuple[int, list[int]]"
"""The children of an element: the number of the page, and the numbers of the children."""

_Variant: TypeAlias = "tuple[str, int]"
"""A variant of siblings: its style and its shape."""


def similarity(items: AbstractSet[object], other_items: AbstractSet[object]) -> float:
    """Return the Jaccard similarity of two sets."""
    return len(items & other_items) / len(items | other_items) if items or other_items else 1.0


def are_records(pages: ClusterPages, groups: Sequence[SiblingGroup]) -> bool:
    """Return whether most groups have several fields, as records do, unlike cells, tags and paragraphs."""
    return sum(pages.fields(group) >= SEVERAL for group in groups) >= _RECORDS * len(groups)


def repeats_among_siblings(groups: Sequence[SiblingGroup], parents: int) -> bool:
    """Return whether there are several groups per parent, not only one here and there."""
    return len(groups) > _ONCE * parents


def sibling_records(pages: ClusterPages, families: Sequence[_Family]) -> list[SiblingGroup]:
    """Return the records among siblings: the cut with the most text and the most similar records."""
    sorted_families = _sorted_by_kind(pages, families)
    runs: defaultdict[int, list[_Run]] = defaultdict(list)
    for family in sorted_families:
        starts: defaultdict[int, list[int]] = defaultdict(list)
        for index, kind in enumerate(family.kinds):
            starts[kind].append(index)
        for kind, indices in starts.items():
            runs[kind] += [(family, *ends) for ends in pairwise([*indices, len(family.kinds)])]
    runs.pop(_NO_KIND, None)
    run_candidates = sorted(runs.values(), key=len, reverse=True)[:_MOST_STARTS]
    cuts = [_cut(pages, kind_runs) for kind_runs in run_candidates if len(kind_runs) >= SEVERAL]
    if not cuts:
        return []
    best = max(cuts, key=lambda cut: cut.score)
    ruled_cut = _cut(pages, _runs_between_rules(pages, sorted_families), between_rules=True)
    if len(ruled_cut.records) >= len(best.records) and ruled_cut.score >= _RULED * best.score:
        return ruled_cut.records
    return _repeated_in_records(pages, best) or best.records


class _SortedFamily(NamedTuple):
    """The children of one element, with their kinds; a child without fields has no kind."""

    page: int
    numbers: list[int]
    kinds: list[int]


def _sorted_by_kind(pages: ClusterPages, families: Sequence[_Family]) -> list[_SortedFamily]:
    variants: Counter[_Variant] = Counter()
    for page, children in families:
        tree = pages.trees[page]
        variants.update((tree.styles[child], tree.shapes[child]) for child in children)
    kinds = _kinds(pages.looks, variants)
    _split_alternating_kinds(pages, families, kinds)
    sorted_families = []
    fields: Counter[int] = Counter()
    for page, children in families:
        tree = pages.trees[page]
        numbers = [kinds[tree.styles[child], tree.shapes[child]] for child in children]
        sorted_families.append(_SortedFamily(page, children, numbers))
        for child, number in zip(children, numbers, strict=True):
            fields[number] += pages.fields(SiblingGroup(page, (child,)))
    return [
        family._replace(kinds=[kind if fields[kind] else _NO_KIND for kind in family.kinds])
        for family in sorted_families
    ]


def _kinds(looks: Looks, variants: Counter[_Variant]) -> dict[_Variant, int]:
    """Group variants of siblings into kinds: first by class, then by the common paths of each class."""
    of_style: defaultdict[str, list[_Kind]] = defaultdict(list)
    unlike: Counter[str] = Counter()
    for (style, shape), count in variants.most_common():
        if style in WITHOUT_SHAPE or unlike[style] == _MOST_UNLIKE:
            continue
        kind = next((kind for kind in of_style[style] if kind.matches_shape(looks, shape)), None)
        if kind is None and len(of_style[style]) < _MOST_KINDS:
            kind = _Kind(style, shape)
            of_style[style].append(kind)
        if kind is not None:
            kind.add(looks, shape, count)
        else:
            unlike[style] += 1
    merged: list[list[_Kind]] = []
    kinds_of_a_class = (kind for kinds in of_style.values() for kind in kinds)
    for kind in sorted(kinds_of_a_class, key=lambda kind: -kind.count):
        similar_kinds = next((kinds for kinds in merged if kinds[0].matches_kind(looks, kind)), None)
        if similar_kinds is not None:
            similar_kinds.append(kind)
        elif len(merged) < _MOST_KINDS:
            merged.append([kind])
    kind_of_variant = dict.fromkeys(variants, _NO_KIND)
    kind_of_variant.update(
        ((kind.style, shape), number)
        for number, kinds in enumerate(merged)
        for kind in kinds
        for shape in kind.shapes
    )
    return kind_of_variant


class _Kind:
    """Siblings of one class with similar structure."""

    def __init__(self, style: str, leader: int) -> None:
        self.style = style
        self.tag, *self.words = style.split(".")
        self.leader = leader
        self.count = 0
        self.shapes: list[int] = []
        self._paths: Counter[str] = Counter()

    def add(self, looks: Looks, shape: int, count: int) -> None:
        """Add siblings of a shape."""
        self.count += count
        self.shapes.append(shape)
        for path in looks.paths(shape):
            self._paths[path] += count

    @property
    def common_paths(self) -> set[str]:
        """The paths that many of the siblings have inside."""
        return {path for path, count in self._paths.items() if count >= _OPTIONAL * self.count}

    def matches_shape(self, looks: Looks, shape: int) -> bool:
        """Return whether siblings of the same class with this shape belong to this kind."""
        min_similarity = _ALIKE_OF_A_CLASS if self.words else _ALIKE
        return similarity(looks.paths(self.leader), looks.paths(shape)) >= min_similarity or (
            looks.lead(self.leader) == looks.lead(shape)
        )

    def matches_kind(self, looks: Looks, other_kind: _Kind) -> bool:
        """Return whether siblings of another class are of the same kind, such as odd or promoted ones."""
        if self.tag != other_kind.tag or self.style == other_kind.style:
            return False
        paths, other_paths = self.common_paths, other_kind.common_paths
        if similarity(paths, other_paths) < _ALIKE:
            return False
        if not self.words or not other_kind.words or set(self.words) & set(other_kind.words):
            return self.tag == "li" or not (looks.is_plain(self.leader) or looks.is_plain(other_kind.leader))
        return len(paths & other_paths) >= _TELLING_PATHS


def _split_alternating_kinds(
    pages: ClusterPages, families: Sequence[_Family], kinds: dict[_Variant, int]
) -> None:
    """Split kinds with siblings of two classes that alternate and differ inside, as title and detail rows."""
    for kind in set(kinds.values()):
        variants = [variant for variant, number in kinds.items() if number == kind]
        styles = sorted({style for style, _ in variants})
        if len(styles) != SEVERAL or kind == _NO_KIND:
            continue
        sequences = (
            [
                style
                for child in children
                if kinds[(style := pages.trees[page].styles[child]), pages.trees[page].shapes[child]] == kind
            ]
            for page, children in families
        )
        inner_paths = [
            frozenset().union(*(pages.looks.paths(shape) for style, shape in variants if style == own_style))
            for own_style in styles
        ]
        if similarity(*inner_paths) < _TAKE_TURNS and all(
            style_before != style_after
            for sequence in sequences
            for style_before, style_after in pairwise(sequence)
        ):
            new_kind = max(kinds.values()) + 1
            kinds.update((variant, new_kind) for variant in variants if variant[0] == styles[1])


_Run: TypeAlias = "tuple[_SortedFamily, int, int]"
"""Siblings of a family from a start index to an end index."""


def _runs_between_rules(pages: ClusterPages, families: Sequence[_SortedFamily]) -> list[_Run]:
    runs: list[_Run] = []
    for family in families:
        elements = pages.trees[family.page].elements
        rules = [index for index, number in enumerate(family.numbers) if elements[number].tag == "hr"]
        if rules:
            ends = pairwise([-1, *rules, len(family.numbers)])
            runs += [(family, previous + 1, next_end) for previous, next_end in ends]
    return runs


class _Cut(NamedTuple):
    """One way to cut siblings into records."""

    records: list[SiblingGroup]
    kinds: list[list[int]]  # of the siblings in each part
    score: float


def _cut(pages: ClusterPages, runs: Sequence[_Run], *, between_rules: bool = False) -> _Cut:
    """Turn runs of siblings into records, without rare kinds at their ends; between two rules, keep all."""
    counts = Counter(kind for family, start, end in runs for kind in set(family.kinds[start:end]))
    del counts[_NO_KIND]
    usual = {kind for kind, count in counts.items() if count >= USUAL * len(runs)}
    frequent = {
        kind for kind, count in counts.items() if count >= max(SEVERAL, _OPTIONAL * len(runs))
    } | usual
    records, kinds = [], []
    for family, start, end in runs:
        is_bounded = between_rules and start > 0 and end < len(family.kinds)
        allowed = counts.keys() if is_bounded else frequent
        indices = [index for index in range(start, end) if family.kinds[index] in allowed]
        while indices and _is_trailing_heading(pages=pages, family=family, place=indices[-1], usual=usual):
            indices.pop()
        if usual & {family.kinds[index] for index in indices}:
            inside = slice(indices[0], indices[-1] + 1)
            records.append(SiblingGroup(family.page, tuple(family.numbers[inside])))
            kinds.append(family.kinds[inside])
    return _Cut(records, kinds, sum(map(pages.chars, records)) * _run_similarity(kinds, usual))


def _is_trailing_heading(
    pages: ClusterPages, family: _SortedFamily, place: int, usual: AbstractSet[int]
) -> bool:
    is_heading = pages.trees[family.page].elements[family.numbers[place]].tag in _HEADINGS
    return is_heading and family.kinds[place] not in usual


def _run_similarity(runs: Sequence[list[int]], usual: AbstractSet[int]) -> float:
    """Return the similarity of runs by kinds; a run with two of a kind that others have once scores less."""
    counts = Counter(map(tuple, runs))
    of_runs = {run: Counter(kind for kind in run if kind != _NO_KIND) for run in counts}
    once: Counter[int] = Counter()
    often: Counter[int] = Counter()
    for run, kinds in of_runs.items():
        for kind, count in kinds.items():
            often[kind] += counts[run]
            once[kind] += counts[run] * (count == 1)
    single = {kind for kind in often if once[kind] >= USUAL * often[kind]}
    alike = (
        counts[run]
        * similarity(usual, kinds.keys())
        / max((count for kind, count in kinds.items() if kind in single), default=1)
        for run, kinds in of_runs.items()
    )
    return sum(alike) / max(1, len(runs))


def _repeated_in_records(pages: ClusterPages, cut: _Cut) -> list[SiblingGroup]:
    """Return the siblings of one kind that repeat inside the records, if they are records themselves."""
    if all(len(record.elements) == 1 for record in cut.records):
        return []
    groups_by_kind: defaultdict[int, list[SiblingGroup]] = defaultdict(list)
    for record, sibling_kinds in zip(cut.records, cut.kinds, strict=True):
        for element, kind in zip(record.elements, sibling_kinds, strict=True):
            if kind != _NO_KIND:
                groups_by_kind[kind].append(SiblingGroup(record.page, (element,)))
    chars = sum(map(pages.chars, cut.records))
    for groups in groups_by_kind.values():
        is_repeated = (
            len(groups) > _ONCE * len(cut.records) and sum(map(pages.chars, groups)) >= USUAL * chars
        )
        if is_repeated and are_records(pages, groups):
            return groups
    return []
