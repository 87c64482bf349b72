"""A small logistic regression that chooses among the nodes which an imprecise rule selects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from siteloom.wrapper.language import Scorer
from siteloom.wrapper.scoring import probability, weak_features, winners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.learning.search import Found, Problem

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
