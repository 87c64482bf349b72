"""Vertex's Algorithm 3, and the logistic regression that chooses among nodes.

All sets of features that the example nodes share are tried, the smallest first.
Every one of them finds all examples; of those that find nothing else, the one with
the nearest features wins, and of several the one that finds something on most other
pages. The paper keeps one record of the best for precise and imprecise sets alike,
so that an imprecise one can shadow all precise ones; here each has its own.

Where no set is precise, the best one only names candidates, and a small classifier
chooses among them (`siteloom.learning.induction.vertex_algorithm`).
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
    from siteloom.learning.induction.rule_search import Features, Found, Problem
    from siteloom.learning.induction.tree_walk import Ints


if TYPE_CHECKING:
    Weak = Mapping[str, float]

_RIDGE = 0.1  # so small that a single telling feature decides, so large that no weight runs away
_STEPS = 500
_CLOSE_ENOUGH = 1e-7
_DIGITS = 6


def with_scorer(problem: Problem, found: Found) -> Found | None:
    """A rule with a scorer that chooses among its nodes, and with what it then does; None if nothing."""
    rows = problem.hits(found.features).tolist()
    weak = {row: _weak(problem, row) for row in rows}
    known = [row for row in rows if not problem.is_unlabelled[problem.rows.unit[row]]]
    scorer = fit(
        [weak[row] for row in known],
        [not problem.is_wrong_row(row) for row in known],
        takes_all=problem.is_multi,
    )
    chosen = _chosen(problem, scorer, weak)
    covered = frozenset(
        number for number in found.covered if not chosen.isdisjoint(problem.instances[number].rows)
    )
    if not covered:
        return None
    units: dict[int, set[int]] = {}
    for row in chosen:
        if problem.is_unlabelled[unit := int(problem.rows.unit[row])]:
            units.setdefault(unit, set()).add(int(problem.rows.value[row]))
    others = int(problem.is_unlabelled.sum())
    return replace(
        found,
        wrong=sum(row in chosen and problem.is_wrong_row(row) for row in known),
        covered=covered,
        filled=len(units) / others if others else 1.0,
        repeated=sum(len(values) > 1 for values in units.values()) / others if others else 0.0,
        scorer=scorer,
    )


def fit(candidates: Sequence[Weak], is_right: Sequence[bool], *, takes_all: bool) -> Scorer:
    """The scorer that tells the right ones of some candidates from the others by their weak features."""
    names = sorted({name for weak in candidates for name in weak})
    column = {name: number for number, name in enumerate(names)}
    inputs = np.zeros((len(candidates), len(names) + 1))
    inputs[:, -1] = 1.0
    for number, weak in enumerate(candidates):
        for name, value in weak.items():
            inputs[number, column[name]] = value
    weights = [round(weight, _DIGITS) for weight in _regression(inputs, np.array(is_right, float)).tolist()]
    return Scorer(
        weights=tuple((name, weight) for name, weight in zip(names, weights[:-1], strict=True) if weight),
        intercept=weights[-1],
        takes_all=takes_all,
    )


def _regression(inputs: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of a logistic regression with a ridge; the last one is the intercept, which has none.

    Each step goes to the minimum of a parabola that lies above the loss everywhere
    (Boehning's bound), so that it can never overshoot as Newton's steps can.
    """
    ridge = np.full(inputs.shape[1], _RIDGE)
    ridge[-1] = _CLOSE_ENOUGH
    inverse = np.linalg.inv(inputs.T @ inputs / 4 + np.diag(ridge))
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        right = 0.5 + 0.5 * np.tanh(inputs @ weights / 2)
        step = inverse @ (inputs.T @ (truth - right) - ridge * weights)
        weights += step
        if np.abs(step).max() < _CLOSE_ENOUGH:
            break
    return weights


def _chosen(problem: Problem, scorer: Scorer, weak: Mapping[int, Weak]) -> set[int]:
    """The rows that a scorer chooses in each unit."""
    by_unit: dict[int, list[int]] = {}
    for row in weak:
        by_unit.setdefault(int(problem.rows.unit[row]), []).append(row)
    return {
        rows[number]
        for rows in by_unit.values()
        for number in winners(scorer, [probability(scorer, weak[row]) for row in rows])
    }


def _weak(problem: Problem, row: int) -> dict[str, float]:
    return weak_features(problem.rows.table.words.texts[problem.rows.value[row]], problem.rows.standing(row))


# Strong features in the order in which equally good ones are preferred; all
# columns that are not named are other HTML attributes. What is weak, because it
# changes often, is left to the classifier.
_ANCHORS = ("text-before", "prefix", "before", "first-text")
_PREFERENCE = {
    kind: number for number, kind in enumerate(("id", "", "class", "class-word", *_ANCHORS, "tag"))
}
_WEAK = frozenset({"position", "last-position", "text-number", "shape"})

_LONGEST_ANCHOR = 50
_LEAST_ANCHOR_SHARE = 0.5  # of the unlabelled units: a text that fewer have is none of the template
_SEEDS = 6
_MOST_COMMON = 60  # they are the bits of one word
_MOST_SETS = 5_000
_MOST_FEATURES = 5


class Choice(NamedTuple):
    """A set of features by their numbers; in the order of the fields, the lower the better."""

    imprecision: float  # the share of wrong nodes among those selected on labelled units
    distance: int
    lack: float  # the share of unlabelled units without a selected node
    size: int
    members: tuple[int, ...]


class Chosen(NamedTuple):
    """The best set of features of one search; where it is imprecise, it is the best there is."""

    is_imprecise: bool
    choice: Choice
    features: tuple[ColumnFeature, ...]


def cover(problem: Problem) -> Covering:
    """One rule that finds all instances, or one for each tag path that they have."""
    found = _rule(problem, problem.instances)
    if found is not None:
        return Covering([found], [])
    groups = (_rule(problem, group) for group in _by_tag_path(problem))
    rules = [rule for rule in groups if rule is not None]
    return Covering(sorted(rules, key=lambda rule: (-rule.filled, -len(rule.covered))), [])


def _rule(problem: Problem, instances: Sequence[Instance]) -> Found | None:
    """The best rule that finds all these instances, if there is one."""
    results: list[Chosen] = []
    searched = set()
    for seed in instances[0].rows[:_SEEDS]:
        common = _common(problem, seed, instances[1:])
        if common and common not in searched:
            searched.add(common)
            results.append(search(problem, common))
    if not results:
        return None
    best = min(results)
    mask = -1
    for feature in best.features:
        mask &= problem.mask(feature)
    found = problem.judge(best.features, mask)
    return with_scorer(problem, found) if found.wrong else found


def _common(problem: Problem, seed: int, others: Iterable[Instance]) -> Features:
    """The strong features that one node of each instance has, always that most similar to the seed."""
    own = common = _strong(problem, seed)
    for instance in others:
        common &= max((own & problem.features(row) for row in instance.rows), key=len)
    return common


def _strong(problem: Problem, row: int) -> Features:
    return frozenset(feature for feature in problem.features(row) if _is_strong(problem, feature))


def _is_strong(problem: Problem, feature: ColumnFeature) -> bool:
    if feature.column not in _ANCHORS:
        return feature.column not in _WEAK
    if len(problem.rows.table.words.texts[feature.value]) > _LONGEST_ANCHOR:
        return False
    is_other = problem.is_unlabelled
    units = np.unique(problem.rows.unit[problem.rows.having(feature)])
    return int(is_other[units].sum()) >= _LEAST_ANCHOR_SHARE * int(is_other.sum())


def search(problem: Problem, common: Features, most_features: int = _MOST_FEATURES) -> Chosen:
    """The best set of some of these features, which one node of each instance has.

    A set is not extended if a larger one cannot be better: if it is precise itself, if
    it is farther or has less support than the best precise one, or if one of its
    features adds nothing. One node has all the features, so no two contradict.
    """
    selections = _Selections(problem, common)
    best: Choice | None = None
    fallback: Choice | None = None
    smaller: dict[tuple[int, ...], int] = {(): -1}  # what may be extended, and how much it selects
    sets: list[tuple[int, ...]] = [(number,) for number in range(len(selections.features))]
    for _ in range(most_features):
        extensible: list[tuple[Choice, int]] = []
        for members in sets:
            choice, selected, is_single = selections.judge(members)
            if not choice.imprecision and (is_single or problem.is_multi):
                best = choice if best is None else min(best, choice)
                continue
            fallback = choice if fallback is None else min(fallback, choice)
            if all(smaller[part] != selected for part in combinations(members, len(members) - 1)):
                extensible.append((choice, selected))
        smaller = {
            choice.members: selected
            for choice, selected in extensible
            if best is None or (choice.distance, choice.lack) < (best.distance, best.lack)
        }
        sets = _extended(smaller)
        if not sets:
            break
    chosen = best or fallback
    assert chosen is not None, "a set of features is precise or it is not"
    return Chosen(best is None, chosen, tuple(selections.features[member] for member in chosen.members))


def _extended(smaller: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sets with one feature more all of whose parts are among these, as many as there is time for."""
    known = set(smaller)
    last_of: dict[tuple[int, ...], list[int]] = {}
    for members in sorted(known):
        last_of.setdefault(members[:-1], []).append(members[-1])
    larger: list[tuple[int, ...]] = []
    for first, last in last_of.items():
        for pair in combinations(last, 2):
            members = (*first, *pair)
            if all(part in known for part in combinations(members, len(first) + 1)):
                larger.append(members)
                if len(larger) == _MOST_SETS:
                    return larger
    return larger


class _Judged(NamedTuple):
    choice: Choice
    selected: int
    is_single: bool  # whether no unlabelled unit has more than one of the selected nodes


class _Selections:
    """What sets of features select.

    Of each node only the common features that it has matter, as the bits of one
    number, and nodes of a unit that have the same ones are counted together.
    """

    def __init__(self, problem: Problem, common: Features) -> None:
        self.features = sorted(common, key=_order)[:_MOST_COMMON]
        self._others = int(problem.is_unlabelled.sum())
        rows, bits = self._bits_of_rows(problem)
        unit = problem.rows.unit[rows]
        is_other = problem.is_unlabelled[unit]
        is_neutral = np.zeros(len(problem.rows), np.bool_)
        is_neutral[list(problem.neutral)] = True
        is_wrong = ~(is_other | is_neutral[rows])
        is_new = np.ones(len(rows), np.bool_)
        is_new[1:] = (bits[1:] != bits[:-1]) | (unit[1:] != unit[:-1])
        starts = np.flatnonzero(is_new)
        self._bits = bits[starts]
        self._count = np.diff(np.append(starts, len(rows)))
        self._wrong = np.diff(np.append(0, np.cumsum(is_wrong))[np.append(starts, len(rows))])
        self._other_unit = np.where(is_other, unit, NONE)[starts]

    def _bits_of_rows(self, problem: Problem) -> tuple[Ints, NDArray[np.uint64]]:
        """The rows that have common features, by their units, and the bits of these features."""
        rows = problem.hits(())
        bits = np.zeros(len(rows), np.uint64)
        for number, feature in enumerate(self.features):
            bits |= problem.rows.having(feature)[rows].astype(np.uint64) << np.uint64(number)
        rows, bits = rows[bits > 0], bits[bits > 0]
        order = np.lexsort((bits, problem.rows.unit[rows]))
        return rows[order], bits[order]

    def judge(self, members: tuple[int, ...]) -> _Judged:
        """What the features of these numbers select."""
        wanted = np.uint64(sum(1 << member for member in members))
        hits = np.flatnonzero((self._bits & wanted) == wanted)
        count, unit = self._count[hits], self._other_unit[hits]
        is_other = unit != NONE
        units = unit[is_other]
        filled = int(np.count_nonzero(np.diff(units))) + bool(len(units))
        selected = int(count.sum())
        elsewhere = int(count[is_other].sum())
        choice = Choice(
            imprecision=int(self._wrong[hits].sum()) / (selected - elsewhere),
            distance=max(self.features[member].distance for member in members),
            lack=1 - filled / self._others if self._others else 0.0,
            size=len(members),
            members=members,
        )
        return _Judged(choice, selected, is_single=elsewhere == filled)


def _order(feature: ColumnFeature) -> tuple[int, int, ColumnFeature]:
    return feature.distance, _PREFERENCE.get(feature.column, _PREFERENCE[""]), feature


def _by_tag_path(problem: Problem) -> list[list[Instance]]:
    """The instances that have a node with the same tags above it, the largest group first."""
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


def _tag_path(problem: Problem, row: int) -> tuple[ColumnFeature, ...]:
    return tuple(sorted(feature for feature in problem.rows.features(row) if feature.column == "tag"))
