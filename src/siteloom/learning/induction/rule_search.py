"""Finding the rules of one attribute: sequential covering over its example values.

Each round begins at one example node, gathers the nodes of other values that
look alike, and searches level by level (Apriori) for a small set of features
that they share and that nothing else on the example pages has. What the set
does on pages without examples decides between those that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.wrappers.rule_features import possible_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.learning.induction.feature_columns import ColumnFeature, Flags, Rows
    from siteloom.learning.induction.tree_walk import Ints
    from siteloom.wrappers.rule_features import Scorer

    Features = frozenset[ColumnFeature]

# How little a feature is trusted to live on and to mean something, and how much
# less with each step of distance. The figures were found by trying rules on the
# pages of many sites; see docs/explanation/learning.md.
_COST = {
    "text-before": 1.0,
    "prefix": 1.0,
    "text-number": 2.5,
    "shape": 2.2,
    "id": 1.0,
    "class": 1.0,
    "class-word": 1.1,
    "tag": 2.0,
    "first-text": 1.2,
    "before": 1.0,
    "position": 3.0,
    "last-position": 3.5,
}
_COST_OF_OTHER_ATTRIBUTES = 1.0
_COST_OF_DISTANCE = 0.15
_FAR = 1.2  # a text in another part of the page is a poor label
_TEXTS = frozenset({"text-before", "prefix", "first-text", "before"})
_NAMES = frozenset({"id", "class", "class-word"})

_ITEM_FEATURES = frozenset({("text-number", 0), ("position", 0), ("last-position", 0)})

# How many points of cost it is worth to find something on all other units instead of none, and all examples
# instead of none: what one rule does not cover, another will.
_SUPPORT_WEIGHT = 12.0
_COVERAGE_WEIGHT = 4.0
_CONSTANT_PENALTY = 1.5  # in shares of pages: navigation says the same everywhere, values do not
_CONSTANT_SHARE = 0.9
_LEAST_SHARE = 0.05  # a feature on fewer pages belongs to records, not to the template
# About as many units should have a value as examples have; with far fewer, a rule hangs on what its examples
# have in common by chance, such as the district that a list page is about.
_LEAST_SUPPORT = 0.2
_BEAM = 90
_SEEDS = 6
_MOST_RULES = 6
_MOST_VOTERS = 2
_MOST_FEATURES = 3
_FEW_UNITS = 2


class Instance(NamedTuple):
    """One value that a unit is known to have, and the rows where it stands."""

    unit: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Features with what they select: how many wrong nodes, which instances, and what on other units."""

    features: tuple[ColumnFeature, ...]
    wrong: int
    covered: frozenset[int]
    cost: float
    filled: float
    repeated: float
    is_constant: bool
    is_multi: bool
    share_covered: float
    is_unsupported: bool = False
    scorer: Scorer | None = None

    @property
    def rank(self) -> tuple[float, ...]:
        """The lower, the better."""
        support = self.filled - (0 if self.is_multi else self.repeated)
        support -= _CONSTANT_PENALTY * self.is_constant
        score = self.cost - _SUPPORT_WEIGHT * support - _COVERAGE_WEIGHT * self.share_covered
        return (self.wrong, self.is_unsupported, score)


class Problem:
    """Everything that is known about one attribute on the rows of one target.

    `neutral` rows show a true value; all other rows of labelled units are wrong.
    Rows that show one of the `labels` are never selected, and those whose text
    cannot be a value by its shape count for nothing where no example is.
    """

    def __init__(
        self,
        rows: Rows,
        instances: Sequence[Instance],
        labelled_units: Iterable[int],
        neutral: Iterable[int],
        *,
        is_multi: bool,
        labels: Flags,
    ) -> None:
        self.rows = rows
        self.instances = instances
        self.is_multi = is_multi
        self.labelled_units = tuple(labelled_units)
        self.neutral = tuple(neutral)
        self._is_value = ~labels[rows.value]
        is_labelled = np.zeros(rows.table.units, np.bool_)
        is_labelled[list(self.labelled_units)] = True
        self.is_unlabelled = ~is_labelled
        self._labelled_rows = np.flatnonzero(is_labelled[rows.unit])
        is_wrong = self._is_value.copy()
        is_wrong[list(self.neutral)] = False
        self._is_wrong = is_wrong
        self._wrong_mask = _bits(is_wrong[self._labelled_rows])
        place = {row: number for number, row in enumerate(self._labelled_rows.tolist())}
        self._instance_masks = [sum(1 << place[row] for row in instance.rows) for instance in instances]
        texts = rows.table.words.texts
        shapes = possible_shapes({texts[rows.value[row]] for instance in instances for row in instance.rows})
        self._is_possible = self._is_value & rows.having_shape(shapes)
        self._least_units = min(max(2, _LEAST_SHARE * rows.table.units), rows.table.units)
        self._features_of: dict[int, Features] = {}
        self._masks: dict[ColumnFeature, int] = {}
        self._is_frequent: dict[ColumnFeature, bool] = {}
        self._costs: dict[ColumnFeature, float] = {}

    def features(self, row: int) -> Features:
        """The features of a node that occur often enough to belong to the template.

        Where an attribute has several values, none may say which of them a node is.
        """
        if row not in self._features_of:
            self._features_of[row] = frozenset(
                feature
                for feature in self.rows.features(row)
                if self._frequent(feature) and not (self.is_multi and feature[:2] in _ITEM_FEATURES)
            )
        return self._features_of[row]

    def mask(self, feature: ColumnFeature) -> int:
        """The labelled rows that have a feature, as bits."""
        if feature not in self._masks:
            self._masks[feature] = _bits(self.rows.having(feature)[self._labelled_rows])
        return self._masks[feature]

    def wrong(self, mask: int) -> int:
        """How many of some labelled rows are wrong."""
        return (mask & self._wrong_mask).bit_count()

    def covered(self, mask: int) -> frozenset[int]:
        """The instances that some labelled rows show."""
        return frozenset(number for number, shown in enumerate(self._instance_masks) if mask & shown)

    def is_wrong_row(self, row: int) -> bool:
        """Whether a row of a labelled unit shows no true value."""
        return bool(self._is_wrong[row])

    def is_precise(self, features: Features) -> bool:
        """Whether nothing wrong has all of these features."""
        mask = self._wrong_mask
        for feature in features:
            mask &= self.mask(feature)
            if not mask:
                return True
        return False

    def hits(self, features: tuple[ColumnFeature, ...]) -> Ints:
        """The rows that have all of these features."""
        return np.flatnonzero(self.rows.having_all(features) & self._is_value).astype(np.int32)

    def judge(self, features: tuple[ColumnFeature, ...], mask: int) -> Found:
        """What features do on all units; `mask` are the labelled rows that have them."""
        hits = self.hits(features)
        hits = hits[self.is_unlabelled[self.rows.unit[hits]] & self._is_possible[hits]]
        unlabelled = int(self.is_unlabelled.sum())
        filled, repeated, is_constant = 1.0, 0.0, False
        if unlabelled:
            pairs = np.unique(self.rows.unit[hits].astype(np.int64) << 32 | self.rows.value[hits])
            values_of_unit = np.bincount(pairs >> 32)
            units = int((values_of_unit > 0).sum())
            filled, repeated = units / unlabelled, int((values_of_unit > 1).sum()) / unlabelled
            if units > 2:
                most = np.unique(pairs & 0xFFFFFFFF, return_counts=True)[1].max()
                is_constant = bool(most >= _CONSTANT_SHARE * units)
        covered = self.covered(mask)
        covered_units = {self.instances[number].unit for number in covered}
        return Found(
            features=features,
            wrong=self.wrong(mask),
            covered=covered,
            cost=sum(map(self.cost, features)),
            filled=filled,
            repeated=repeated,
            is_constant=is_constant,
            is_multi=self.is_multi,
            share_covered=len(covered) / len(self.instances),
            is_unsupported=filled < _LEAST_SUPPORT * len(covered_units) / len(self.labelled_units),
        )

    def cost(self, feature: ColumnFeature) -> float:
        """How little a feature is trusted."""
        if feature not in self._costs:
            self._costs[feature] = self._cost(feature)
        return self._costs[feature]

    def _cost(self, feature: ColumnFeature) -> float:
        cost = _COST.get(feature.column, _COST_OF_OTHER_ATTRIBUTES) + _COST_OF_DISTANCE * feature.distance
        if feature.column in _TEXTS:
            text = self.rows.table.words.texts[feature.value]
            cost += 2.5 * (not any(map(str.isalpha, text)))
            cost += 1.0 * (len(text) > 40)
            cost += 0.8 * any(map(str.isdigit, text))
            cost -= 0.2 * text.endswith(":")
            if feature.column in ("text-before", "before"):
                cost += _FAR * (not self.rows.is_near(feature))
        elif feature.column in _NAMES:
            # Digits are often numbers of records or were made by a program.
            cost += 0.5 * any(map(str.isdigit, self.rows.table.words.texts[feature.value]))
        return cost

    def _frequent(self, feature: ColumnFeature) -> bool:
        if feature not in self._is_frequent:
            units = np.unique(self.rows.unit[self.rows.having(feature)])
            self._is_frequent[feature] = len(units) >= self._least_units
        return self._is_frequent[feature]


class Covering(NamedTuple):
    """The rules that were found, and independent ones that cover the same as the first of them."""

    rules: list[Found]
    voters: list[Found]


def cover(problem: Problem) -> Covering:
    """Rules that together find the instances.

    The one that finds most comes first, on examples and then on other units: a rule that was found for what
    is special of one example must not speak before the one for most pages.
    """
    uncovered = set(range(len(problem.instances)))
    found: list[tuple[Found, list[Found]]] = []
    while uncovered and len(found) < _MOST_RULES:
        ranked = _ranked_rules(problem, uncovered)
        if not ranked:
            break
        best = ranked[0]
        gained = best.covered & uncovered
        # What is united must be nearly pure; a rule that stands alone may be the best there is.
        if not gained or best.wrong * (4 if problem.is_multi else 2) > len(gained):
            break
        found.append((best, ranked))
        uncovered -= gained
    if not found:
        return Covering([], [])
    found.sort(key=lambda one: (one[0].wrong, -len(one[0].covered), -one[0].filled))
    return Covering([rule for rule, _ in found], _independent(found[0][1]))


def _ranked_rules(problem: Problem, uncovered: set[int]) -> list[Found]:
    """Rules that begin at an uncovered instance, the best first."""
    by_unit: dict[int, list[int]] = {}
    for number in sorted(uncovered):
        by_unit.setdefault(problem.instances[number].unit, []).append(number)
    unit = min(by_unit, key=lambda unit: (len(by_unit[unit]), unit))
    first = by_unit[unit][0]
    if problem.is_multi:
        others = [[number] for number in sorted(uncovered) if number != first]
    else:
        others = [numbers for other, numbers in by_unit.items() if other != unit]
    rankings = []
    searched = set()
    for seed in problem.instances[first].rows[:_SEEDS]:
        for shared in (_grow(problem, seed, others), problem.features(seed)):
            common = _counted_once(shared)
            if common not in searched:
                searched.add(common)
                rankings.append(_smallest(problem, common, uncovered))
            if rankings[-1] and not rankings[-1][0].is_unsupported:
                break
    return min((ranked for ranked in rankings if ranked), key=lambda ranked: ranked[0].rank, default=[])


def _grow(problem: Problem, seed: int, others: list[list[int]]) -> Features:
    """The features that a node shares with nodes of other values, as long as they still tell it apart.

    The most similar node comes first, so that variants of a template part by themselves.
    """
    common = problem.features(seed)
    waiting = others
    while waiting:
        nearest = []
        for numbers in waiting:
            rows = (row for number in numbers for row in problem.instances[number].rows[: 2 * _SEEDS])
            shared = max((common & problem.features(row) for row in rows), key=len)
            nearest.append((shared, numbers))
        nearest.sort(key=lambda near: -len(near[0]))
        for place, (shared, _) in enumerate(nearest):
            if shared and problem.is_precise(shared):
                common = shared
                waiting = [numbers for _, numbers in nearest[place + 1 :]]
                break
        else:
            break
    return common


def _counted_once(common: Features) -> Features:
    """Without the places from the end that are the same from the start.

    Only where lists of different lengths are known can it be that the last item is meant. A list
    always has a last item, so that all pages would support it, also those that lack the value.
    """
    counted = {feature.distance for feature in common if feature.column == "position"}
    return frozenset(
        feature for feature in common if feature.column != "last-position" or feature.distance not in counted
    )


class _Candidate(NamedTuple):
    """Features by their numbers, the labelled rows that have them, and what these say of them."""

    wrong: int
    uncovered: int
    cost: float
    members: tuple[int, ...]
    mask: int


def _smallest(problem: Problem, common: Features, uncovered: set[int]) -> list[Found]:
    """The best small sets of common features, the best first."""
    features = sorted(common, key=lambda feature: (problem.cost(feature), feature))
    costs = [problem.cost(feature) for feature in features]
    masks = [problem.mask(feature) for feature in features]
    precise: list[_Candidate] = []
    imprecise: list[_Candidate] = []
    frontier = [_Candidate(0, 0, 0.0, (), -1)]
    all_of_them = reduce(and_, masks, -1)
    units = {problem.instances[number].unit for number in problem.covered(all_of_them) & uncovered}
    # With few examples a small set may be precise by chance: then look one level farther.
    levels_after_first = 1 if len(units) <= _FEW_UNITS else 0
    for _ in range(_MOST_FEATURES):
        grown: list[_Candidate] = []
        seen = set()
        for smaller in frontier:
            for number in range(len(features)):
                members = tuple(sorted({*smaller.members, number}))
                mask = smaller.mask & masks[number]
                if members in seen or mask == smaller.mask:
                    continue
                seen.add(members)
                left = len(uncovered - problem.covered(mask))
                cost = sum(costs[member] for member in members)
                candidate = _Candidate(problem.wrong(mask), left, cost, members, mask)
                (grown if candidate.wrong else precise).append(candidate)
        frontier = sorted(grown)[:_BEAM]
        imprecise += frontier
        if precise:
            if not levels_after_first:
                break
            levels_after_first -= 1
    best = sorted(precise)[: 3 * _BEAM] if precise else sorted(imprecise)[:_BEAM]
    found = [
        problem.judge(tuple(features[member] for member in candidate.members), candidate.mask)
        for candidate in best
    ]
    return sorted(found, key=lambda one: (one.rank, one.features))


def _independent(ranked: list[Found]) -> list[Found]:
    """Up to two other rules that find the same instances by something else."""
    best = ranked[0]
    used = {_source(feature) for feature in best.features}
    voters: list[Found] = []
    for other in ranked[1:]:
        is_as_good = (
            other.wrong <= best.wrong
            and other.covered >= best.covered
            and other.filled >= 0.8 * best.filled
            and other.repeated <= best.repeated + 0.1
            and not other.is_constant
        )
        sources = {_source(feature) for feature in other.features}
        if is_as_good and not used & sources:
            voters.append(other)
            used |= sources
        if len(voters) == _MOST_VOTERS:
            break
    return voters


def _source(feature: ColumnFeature) -> tuple[str, int]:
    """What a feature hangs on: rules that hang on the same fail together."""
    if feature.column in _TEXTS:
        return "text", feature.value
    if feature.column in ("shape", "text-number"):
        return feature.column, 0
    if feature.column in ("tag", "position", "last-position"):
        return "tag", feature.distance
    return "name", 0  # who renames one class renames all


def _bits(flags: Flags) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
