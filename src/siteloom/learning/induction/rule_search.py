"""Finding the rules of one attribute: sequential covering over its example values.

Each round begins at one example node, gathers similar nodes of other values, and searches level by level
(Apriori) for a small set of features that they share and that nothing else on the example pages has. Results
on pages without examples decide between the remaining sets.
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

# A high cost means that a feature is likely to change or to be accidental; each step of distance adds to it.
# The figures were found by trying rules on the pages of many sites; see docs/explanation/learning.md.
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

# Points of cost gained by finding a value on all unlabelled units instead of none, and on all examples
# instead of none. Coverage counts less, since another rule can cover the remaining examples.
_SUPPORT_WEIGHT = 12.0
_COVERAGE_WEIGHT = 4.0
_CONSTANT_PENALTY = 1.5  # in shares of pages: navigation is the same everywhere, values are not
_CONSTANT_SHARE = 0.9
_LEAST_SHARE = 0.05  # a feature on fewer pages belongs to records, not to the template
# About the same share of units as of examples should have a value. With a far smaller share, a rule depends
# on an accidental common feature of its examples, such as the district that a list page is about.
_LEAST_SUPPORT = 0.2
_BEAM = 90
_SEEDS = 6
_MOST_RULES = 6
_MOST_VOTERS = 2
_MOST_FEATURES = 3
_FEW_UNITS = 2


class Instance(NamedTuple):
    """One known value of a unit: the unit, and the rows that show the value."""

    unit: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CandidateRule:
    """A set of features and its effect: wrong nodes, covered instances, and support on unlabelled units."""

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
        """The sort key of candidates; lower is better."""
        support = self.filled - (0 if self.is_multi else self.repeated)
        support -= _CONSTANT_PENALTY * self.is_constant
        score = self.cost - _SUPPORT_WEIGHT * support - _COVERAGE_WEIGHT * self.share_covered
        return (self.wrong, self.is_unsupported, score)


class CoverProblem:
    """The covering problem of one attribute on the rows of one target.

    `neutral` rows show a true value; all other rows of labelled units are wrong. Rows that show one of the
    `labels` are never selected. On unlabelled units, texts with impossible shapes do not count as support.
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
        self._wrong_mask = _as_bits(is_wrong[self._labelled_rows])
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
        """Return the features of a node that occur often enough to belong to the template.

        For multi-valued attributes, features that number the values are left out.
        """
        if row not in self._features_of:
            self._features_of[row] = frozenset(
                feature
                for feature in self.rows.features(row)
                if self._frequent(feature) and not (self.is_multi and feature[:2] in _ITEM_FEATURES)
            )
        return self._features_of[row]

    def mask(self, feature: ColumnFeature) -> int:
        """Return the labelled rows that have a feature, as bits."""
        if feature not in self._masks:
            self._masks[feature] = _as_bits(self.rows.having(feature)[self._labelled_rows])
        return self._masks[feature]

    def wrong(self, mask: int) -> int:
        """Return how many of the labelled rows in a mask are wrong."""
        return (mask & self._wrong_mask).bit_count()

    def covered(self, mask: int) -> frozenset[int]:
        """Return the instances that the labelled rows in a mask show."""
        return frozenset(number for number, shown in enumerate(self._instance_masks) if mask & shown)

    def is_wrong_row(self, row: int) -> bool:
        """Return whether a row of a labelled unit shows no true value."""
        return bool(self._is_wrong[row])

    def is_precise(self, features: Features) -> bool:
        """Return whether no wrong row has all of these features."""
        mask = self._wrong_mask
        for feature in features:
            mask &= self.mask(feature)
            if not mask:
                return True
        return False

    def hits(self, features: tuple[ColumnFeature, ...]) -> Ints:
        """Return the rows that have all of these features."""
        return np.flatnonzero(self.rows.having_all(features) & self._is_value).astype(np.int32)

    def judge(self, features: tuple[ColumnFeature, ...], mask: int) -> CandidateRule:
        """Evaluate features on all units; `mask` has the labelled rows that have them."""
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
                highest_count = np.unique(pairs & 0xFFFFFFFF, return_counts=True)[1].max()
                is_constant = bool(highest_count >= _CONSTANT_SHARE * units)
        covered = self.covered(mask)
        covered_units = {self.instances[number].unit for number in covered}
        return CandidateRule(
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
        """Return the cost of a feature; less reliable features cost more."""
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
            # Names with digits often number records or are generated.
            cost += 0.5 * any(map(str.isdigit, self.rows.table.words.texts[feature.value]))
        return cost

    def _frequent(self, feature: ColumnFeature) -> bool:
        if feature not in self._is_frequent:
            units = np.unique(self.rows.unit[self.rows.having(feature)])
            self._is_frequent[feature] = len(units) >= self._least_units
        return self._is_frequent[feature]


class Covering(NamedTuple):
    """The chosen rules, and independent rules that cover the same instances as the first of them."""

    rules: list[CandidateRule]
    voters: list[CandidateRule]


def cover(problem: CoverProblem) -> Covering:
    """Find rules that together cover the instances.

    The rule with the best coverage comes first, on examples and then on unlabelled units: a rule for one
    unusual example must not take precedence over the rule for most pages.
    """
    uncovered = set(range(len(problem.instances)))
    chosen: list[tuple[CandidateRule, list[CandidateRule]]] = []
    while uncovered and len(chosen) < _MOST_RULES:
        ranked = _ranked_rules(problem, uncovered)
        if not ranked:
            break
        best = ranked[0]
        gained = best.covered & uncovered
        # Every further rule must gain more than it gets wrong, and so must the first.
        if not gained or best.wrong * (4 if problem.is_multi else 2) > len(gained):
            break
        chosen.append((best, ranked))
        uncovered -= gained
    if not chosen:
        return Covering([], [])
    chosen.sort(key=lambda pair: (pair[0].wrong, -len(pair[0].covered), -pair[0].filled))
    return Covering([rule for rule, _ in chosen], _independent_voters(chosen[0][1]))


def _ranked_rules(problem: CoverProblem, uncovered: set[int]) -> list[CandidateRule]:
    """Return rules that cover one of the uncovered instances, the best first."""
    by_unit: dict[int, list[int]] = {}
    for number in sorted(uncovered):
        by_unit.setdefault(problem.instances[number].unit, []).append(number)
    unit = min(by_unit, key=lambda unit: (len(by_unit[unit]), unit))
    first_number = by_unit[unit][0]
    if problem.is_multi:
        other_groups = [[number] for number in sorted(uncovered) if number != first_number]
    else:
        other_groups = [numbers for other_unit, numbers in by_unit.items() if other_unit != unit]
    rankings = []
    searched = set()
    for seed in problem.instances[first_number].rows[:_SEEDS]:
        for shared in (_grow_common_features(problem, seed, other_groups), problem.features(seed)):
            common = _drop_redundant_positions(shared)
            if common not in searched:
                searched.add(common)
                rankings.append(_search_feature_sets(problem, common, uncovered))
            if rankings[-1] and not rankings[-1][0].is_unsupported:
                break
    return min((ranked for ranked in rankings if ranked), key=lambda ranked: ranked[0].rank, default=[])


def _grow_common_features(problem: CoverProblem, seed: int, other_groups: list[list[int]]) -> Features:
    """Return the features that a node shares with nodes of other values, as long as no wrong node has them.

    The most similar node is added first, so that variants of a template separate by themselves.
    """
    common = problem.features(seed)
    remaining_groups = other_groups
    while remaining_groups:
        nearest_groups = []
        for numbers in remaining_groups:
            rows = (row for number in numbers for row in problem.instances[number].rows[: 2 * _SEEDS])
            shared = max((common & problem.features(row) for row in rows), key=len)
            nearest_groups.append((shared, numbers))
        nearest_groups.sort(key=lambda pair: -len(pair[0]))
        for index, (shared, _) in enumerate(nearest_groups):
            if shared and problem.is_precise(shared):
                common = shared
                remaining_groups = [numbers for _, numbers in nearest_groups[index + 1 :]]
                break
        else:
            break
    return common


def _drop_redundant_positions(common: Features) -> Features:
    """Drop positions from the end of elements that also have the same position from the start.

    Only lists of different lengths show that the last item is meant. Every list has a last item, so pages
    without the value would support such a rule as well.
    """
    counted = {feature.distance for feature in common if feature.column == "position"}
    return frozenset(
        feature for feature in common if feature.column != "last-position" or feature.distance not in counted
    )


class _FeatureSet(NamedTuple):
    """Features by their numbers, the mask of labelled rows that have them, and the resulting counts."""

    wrong: int
    uncovered: int
    cost: float
    members: tuple[int, ...]
    mask: int


def _search_feature_sets(problem: CoverProblem, common: Features, uncovered: set[int]) -> list[CandidateRule]:
    """Search for the best small sets of common features; the best come first."""
    features = sorted(common, key=lambda feature: (problem.cost(feature), feature))
    costs = [problem.cost(feature) for feature in features]
    masks = [problem.mask(feature) for feature in features]
    precise: list[_FeatureSet] = []
    imprecise: list[_FeatureSet] = []
    frontier = [_FeatureSet(0, 0, 0.0, (), -1)]
    common_mask = reduce(and_, masks, -1)
    units = {problem.instances[number].unit for number in problem.covered(common_mask) & uncovered}
    # With few examples a small set may be precise by chance, so search one more level.
    levels_after_first = 1 if len(units) <= _FEW_UNITS else 0
    for _ in range(_MOST_FEATURES):
        grown: list[_FeatureSet] = []
        tried = set()
        for smaller in frontier:
            for number in range(len(features)):
                members = tuple(sorted({*smaller.members, number}))
                mask = smaller.mask & masks[number]
                if members in tried or mask == smaller.mask:
                    continue
                tried.add(members)
                uncovered_count = len(uncovered - problem.covered(mask))
                cost = sum(costs[member] for member in members)
                candidate = _FeatureSet(problem.wrong(mask), uncovered_count, cost, members, mask)
                (grown if candidate.wrong else precise).append(candidate)
        frontier = sorted(grown)[:_BEAM]
        imprecise += frontier
        if precise:
            if not levels_after_first:
                break
            levels_after_first -= 1
    best = sorted(precise)[: 3 * _BEAM] if precise else sorted(imprecise)[:_BEAM]
    candidates = [
        problem.judge(tuple(features[member] for member in candidate.members), candidate.mask)
        for candidate in best
    ]
    return sorted(candidates, key=lambda candidate: (candidate.rank, candidate.features))


def _independent_voters(ranked: list[CandidateRule]) -> list[CandidateRule]:
    """Return up to two other rules that cover the same instances by independent features."""
    best = ranked[0]
    used = {_source(feature) for feature in best.features}
    voters: list[CandidateRule] = []
    for candidate in ranked[1:]:
        is_as_good = (
            candidate.wrong <= best.wrong
            and candidate.covered >= best.covered
            and candidate.filled >= 0.8 * best.filled
            and candidate.repeated <= best.repeated + 0.1
            and not candidate.is_constant
        )
        sources = {_source(feature) for feature in candidate.features}
        if is_as_good and not used & sources:
            voters.append(candidate)
            used |= sources
        if len(voters) == _MOST_VOTERS:
            break
    return voters


def _source(feature: ColumnFeature) -> tuple[str, int]:
    """Return the part of the page that a feature depends on: rules with the same source fail together."""
    if feature.column in _TEXTS:
        return "text", feature.value
    if feature.column in ("shape", "text-number"):
        return feature.column, 0
    if feature.column in ("tag", "position", "last-position"):
        return "tag", feature.distance
    return "name", 0  # a redesign that renames one class renames all


def _as_bits(flags: Flags) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
