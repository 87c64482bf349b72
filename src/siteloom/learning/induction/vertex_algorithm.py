"""Vertex's Algorithm 3, and the logistic regression that chooses among nodes.

The algorithm tries all sets of features that the example nodes share, the smallest first. Every set selects
all examples. Of the precise sets, which select nothing else, the one with the nearest features wins; on a
tie, the one with support on most other pages. The paper keeps a single best set, precise or not, so an
imprecise set can shadow all precise ones; here each kind has its own.

Where no set is precise, the best one only selects candidates, and a small classifier chooses among them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.induction.rule_search import Covering, Instance
from siteloom.learning.induction.tree_walk import NONE
from siteloom.wrappers.rule_features import Scorer
from siteloom.wrappers.value_from_node import probability, weak_features, winners

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.learning.induction.feature_columns import ColumnFeature
    from siteloom.learning.induction.rule_search import CandidateRule, CoverProblem, Features
    from siteloom.learning.induction.tree_walk import Ints


if TYPE_CHECKING:
    Weak = Mapping[str, float]

_RIDGE = 0.1  # small enough that one informative feature decides, large enough that no weight diverges
_STEPS = 500
_CLOSE_ENOUGH = 1e-7
_DIGITS = 6


def with_scorer(problem: CoverProblem, candidate: CandidateRule) -> CandidateRule | None:
    """Add a scorer that chooses among a rule's nodes, and update the counts; None if it covers nothing."""
    rows = problem.hits(candidate.features).tolist()
    weak = {row: _row_weak_features(problem, row) for row in rows}
    labelled_rows = [row for row in rows if not problem.is_unlabelled[problem.rows.unit[row]]]
    scorer = fit(
        [weak[row] for row in labelled_rows],
        [not problem.is_wrong_row(row) for row in labelled_rows],
        takes_all=problem.is_multi,
    )
    chosen = _choose_rows(problem, scorer, weak)
    covered = frozenset(
        number for number in candidate.covered if not chosen.isdisjoint(problem.instances[number].rows)
    )
    if not covered:
        return None
    units: dict[int, set[int]] = {}
    for row in chosen:
        if problem.is_unlabelled[unit := int(problem.rows.unit[row])]:
            units.setdefault(unit, set()).add(int(problem.rows.value[row]))
    unlabelled_count = int(problem.is_unlabelled.sum())
    return replace(
        candidate,
        wrong=sum(row in chosen and problem.is_wrong_row(row) for row in labelled_rows),
        covered=covered,
        filled=len(units) / unlabelled_count if unlabelled_count else 1.0,
        repeated=sum(len(values) > 1 for values in units.values()) / unlabelled_count
        if unlabelled_count
        else 0.0,
        scorer=scorer,
    )


def fit(candidates: Sequence[Weak], is_value: Sequence[bool], *, takes_all: bool) -> Scorer:
    """Fit a scorer that separates values from other candidates by their weak features."""
    names = sorted({name for weak in candidates for name in weak})
    column = {name: number for number, name in enumerate(names)}
    inputs = np.zeros((len(candidates), len(names) + 1))
    inputs[:, -1] = 1.0
    for number, weak in enumerate(candidates):
        for name, value in weak.items():
            inputs[number, column[name]] = value
    weights = [round(weight, _DIGITS) for weight in _regression(inputs, np.array(is_value, float)).tolist()]
    return Scorer(
        weights=tuple((name, weight) for name, weight in zip(names, weights[:-1], strict=True) if weight),
        intercept=weights[-1],
        takes_all=takes_all,
    )


def _regression(inputs: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of a ridge logistic regression; the last is the intercept, which is not penalised.

    Each step goes to the minimum of a parabola that is above the loss everywhere (Boehning's bound), so it
    can never overshoot as Newton's steps can.
    """
    ridge = np.full(inputs.shape[1], _RIDGE)
    ridge[-1] = _CLOSE_ENOUGH
    inverse = np.linalg.inv(inputs.T @ inputs / 4 + np.diag(ridge))
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        predicted = 0.5 + 0.5 * np.tanh(inputs @ weights / 2)
        step = inverse @ (inputs.T @ (truth - predicted) - ridge * weights)
        weights += step
        if np.abs(step).max() < _CLOSE_ENOUGH:
            break
    return weights


def _choose_rows(problem: CoverProblem, scorer: Scorer, weak: Mapping[int, Weak]) -> set[int]:
    """Return the rows that a scorer chooses in each unit."""
    by_unit: dict[int, list[int]] = {}
    for row in weak:
        by_unit.setdefault(int(problem.rows.unit[row]), []).append(row)
    return {
        rows[number]
        for rows in by_unit.values()
        for number in winners(scorer, [probability(scorer, weak[row]) for row in rows])
    }


def _row_weak_features(problem: CoverProblem, row: int) -> dict[str, float]:
    return weak_features(
        problem.rows.table.words.texts[problem.rows.value[row]], problem.rows.node_position(row)
    )


# Strong features in order of preference among equally good ones; "" stands for other HTML attributes. Weak
# features change often and are left to the classifier.
_ANCHORS = ("text-before", "prefix", "before", "first-text")
_PREFERENCE = {
    kind: number for number, kind in enumerate(("id", "", "class", "class-word", *_ANCHORS, "tag"))
}
_WEAK = frozenset({"position", "last-position", "text-number", "shape"})

_LONGEST_ANCHOR = 50
_LEAST_ANCHOR_SHARE = 0.5  # of the unlabelled units; a rarer text is not part of the template
_SEEDS = 6
_MOST_COMMON = 60  # features, one bit each of a 64-bit word
_MOST_SETS = 5_000
_MOST_FEATURES = 5


class Choice(NamedTuple):
    """A set of features by their numbers; choices compare field by field, and lower is better."""

    imprecision: float  # the share of wrong nodes among those selected on labelled units
    distance: int
    lack: float  # the share of unlabelled units without a selected node
    size: int
    members: tuple[int, ...]


class Chosen(NamedTuple):
    """The best set of features of one search; it is imprecise only if no set is precise."""

    is_imprecise: bool
    choice: Choice
    features: tuple[ColumnFeature, ...]


def cover(problem: CoverProblem) -> Covering:
    """Find one rule that covers all instances, or else one rule for each of their tag paths."""
    single_rule = _best_rule(problem, problem.instances)
    if single_rule is not None:
        return Covering([single_rule], [])
    groups = (_best_rule(problem, group) for group in _group_by_tag_path(problem))
    rules = [rule for rule in groups if rule is not None]
    return Covering(sorted(rules, key=lambda rule: (-rule.filled, -len(rule.covered))), [])


def _best_rule(problem: CoverProblem, instances: Sequence[Instance]) -> CandidateRule | None:
    """Return the best rule that covers all these instances, if there is one."""
    results: list[Chosen] = []
    searched = set()
    for seed in instances[0].rows[:_SEEDS]:
        common = _common_features(problem, seed, instances[1:])
        if common and common not in searched:
            searched.add(common)
            results.append(search(problem, common))
    if not results:
        return None
    best = min(results)
    mask = -1
    for feature in best.features:
        mask &= problem.mask(feature)
    candidate = problem.judge(best.features, mask)
    return with_scorer(problem, candidate) if candidate.wrong else candidate


def _common_features(problem: CoverProblem, seed: int, instances: Iterable[Instance]) -> Features:
    """Return the strong features common to the seed and to the most similar node of each instance."""
    own = common = _strong_features(problem, seed)
    for instance in instances:
        common &= max((own & problem.features(row) for row in instance.rows), key=len)
    return common


def _strong_features(problem: CoverProblem, row: int) -> Features:
    return frozenset(feature for feature in problem.features(row) if _is_strong(problem, feature))


def _is_strong(problem: CoverProblem, feature: ColumnFeature) -> bool:
    if feature.column not in _ANCHORS:
        return feature.column not in _WEAK
    if len(problem.rows.table.words.texts[feature.value]) > _LONGEST_ANCHOR:
        return False
    is_unlabelled = problem.is_unlabelled
    units = np.unique(problem.rows.unit[problem.rows.having(feature)])
    return int(is_unlabelled[units].sum()) >= _LEAST_ANCHOR_SHARE * int(is_unlabelled.sum())


def search(problem: CoverProblem, common: Features, most_features: int = _MOST_FEATURES) -> Chosen:
    """Return the best subset of the common features, which one node of each instance has.

    A set is not extended if a larger one cannot be better: if it is precise, if it is farther or has less
    support than the best precise one, or if one of its features adds nothing. All the features belong to one
    node, so no two contradict each other.
    """
    selections = _Selections(problem, common)
    best: Choice | None = None
    fallback: Choice | None = None
    smaller: dict[tuple[int, ...], int] = {(): -1}  # sets to extend, and how many nodes each selects
    sets: list[tuple[int, ...]] = [(number,) for number in range(len(selections.features))]
    for _ in range(most_features):
        extensible: list[tuple[Choice, int]] = []
        for members in sets:
            choice, selected, is_single = selections.judge(members)
            if not choice.imprecision and (is_single or problem.is_multi):
                best = choice if best is None else min(best, choice)
                continue
            fallback = choice if fallback is None else min(fallback, choice)
            if all(smaller[subset] != selected for subset in combinations(members, len(members) - 1)):
                extensible.append((choice, selected))
        smaller = {
            choice.members: selected
            for choice, selected in extensible
            if best is None or (choice.distance, choice.lack) < (best.distance, best.lack)
        }
        sets = _extend_sets(smaller)
        if not sets:
            break
    chosen = best or fallback
    assert chosen is not None, "a set of features is precise or it is not"
    return Chosen(best is None, chosen, tuple(selections.features[member] for member in chosen.members))


def _extend_sets(smaller: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return up to `_MOST_SETS` sets with one more feature, all of whose subsets are among these."""
    smaller_sets = set(smaller)
    last_of: dict[tuple[int, ...], list[int]] = {}
    for members in sorted(smaller_sets):
        last_of.setdefault(members[:-1], []).append(members[-1])
    larger: list[tuple[int, ...]] = []
    for prefix, last_members in last_of.items():
        for pair in combinations(last_members, 2):
            members = (*prefix, *pair)
            if all(subset in smaller_sets for subset in combinations(members, len(prefix) + 1)):
                larger.append(members)
                if len(larger) == _MOST_SETS:
                    return larger
    return larger


class _Judged(NamedTuple):
    choice: Choice
    selected: int
    is_single: bool  # whether no unlabelled unit has more than one of the selected nodes


class _Selections:
    """Evaluates what sets of features select.

    The common features of each node are the bits of one number, and nodes of a unit with the same bits are
    counted together.
    """

    def __init__(self, problem: CoverProblem, common: Features) -> None:
        self.features = sorted(common, key=_preference_order)[:_MOST_COMMON]
        self._unlabelled_count = int(problem.is_unlabelled.sum())
        rows, bits = self._bits_of_rows(problem)
        unit = problem.rows.unit[rows]
        is_unlabelled = problem.is_unlabelled[unit]
        is_neutral = np.zeros(len(problem.rows), np.bool_)
        is_neutral[list(problem.neutral)] = True
        is_wrong = ~(is_unlabelled | is_neutral[rows])
        is_new = np.ones(len(rows), np.bool_)
        is_new[1:] = (bits[1:] != bits[:-1]) | (unit[1:] != unit[:-1])
        starts = np.flatnonzero(is_new)
        self._bits = bits[starts]
        self._count = np.diff(np.append(starts, len(rows)))
        self._wrong = np.diff(np.append(0, np.cumsum(is_wrong))[np.append(starts, len(rows))])
        self._unlabelled_unit = np.where(is_unlabelled, unit, NONE)[starts]

    def _bits_of_rows(self, problem: CoverProblem) -> tuple[Ints, NDArray[np.uint64]]:
        """Return the rows that have common features, ordered by unit, and the bits of these features."""
        rows = problem.hits(())
        bits = np.zeros(len(rows), np.uint64)
        for number, feature in enumerate(self.features):
            bits |= problem.rows.having(feature)[rows].astype(np.uint64) << np.uint64(number)
        rows, bits = rows[bits > 0], bits[bits > 0]
        order = np.lexsort((bits, problem.rows.unit[rows]))
        return rows[order], bits[order]

    def judge(self, members: tuple[int, ...]) -> _Judged:
        """Evaluate the set of features with these numbers."""
        member_bits = np.uint64(sum(1 << member for member in members))
        hits = np.flatnonzero((self._bits & member_bits) == member_bits)
        count, unit = self._count[hits], self._unlabelled_unit[hits]
        is_unlabelled = unit != NONE
        units = unit[is_unlabelled]
        filled = int(np.count_nonzero(np.diff(units))) + bool(len(units))
        selected = int(count.sum())
        elsewhere = int(count[is_unlabelled].sum())
        choice = Choice(
            imprecision=int(self._wrong[hits].sum()) / (selected - elsewhere),
            distance=max(self.features[member].distance for member in members),
            lack=1 - filled / self._unlabelled_count if self._unlabelled_count else 0.0,
            size=len(members),
            members=members,
        )
        return _Judged(choice, selected, is_single=elsewhere == filled)


def _preference_order(feature: ColumnFeature) -> tuple[int, int, ColumnFeature]:
    return feature.distance, _PREFERENCE.get(feature.column, _PREFERENCE[""]), feature


def _group_by_tag_path(problem: CoverProblem) -> list[list[Instance]]:
    """Group the instances that have a node with the same tag path, the largest group first."""
    rows_of: dict[tuple[ColumnFeature, ...], dict[int, list[int]]] = {}
    for number, instance in enumerate(problem.instances):
        for row in instance.rows:
            rows_of.setdefault(_tag_path(problem, row), {}).setdefault(number, []).append(row)
    groups: list[list[Instance]] = []
    waiting = set(range(len(problem.instances)))
    while waiting:
        rows = max(rows_of.values(), key=lambda rows: len(waiting & rows.keys()))
        group = sorted(waiting & rows.keys())
        groups.append([Instance(problem.instances[number].unit, tuple(rows[number])) for number in group])
        waiting.difference_update(group)
    return groups


def _tag_path(problem: CoverProblem, row: int) -> tuple[ColumnFeature, ...]:
    return tuple(sorted(feature for feature in problem.rows.features(row) if feature.column == "tag"))
