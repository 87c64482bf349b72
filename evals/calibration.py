"""Learns how likely a value is right from what speaks for and against it: the weights of confidence.json.

    python -m evals.calibration DATA [--write]

The protocol is that of evals.learning. Wrappers of both methods are used: they
share the weights, and by `united` alone hardly any value is wrong. Attributes of
pages where a true value is not on the page are left out, for there the truth is broken.
Printed are figures for values of verticals that the weights were not learned on.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

import siteloom.wrappers
from evals.learners import METHODS, Found, learned
from evals.learning_runs import PROCESSES, LoadedSite
from evals.learning_scores import CONFIDENT, counted, reliability_of
from evals.swde import swde_sites
from siteloom.wrappers.value_contract import Signs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from evals.learners import Method
    from evals.swde import SwdeSite
    from siteloom.core.model import Page, Record
    from siteloom.wrappers.wrapper import Wrapper

WEIGHTS = Path(siteloom.wrappers.__file__).with_name("confidence.json")
COUNTS = (1, 3, 5)

# What is for a value can only raise its confidence, what is against it only lower it.
_IS_FOR = {"filled": True, "imprecise": False, "several": False, "agreeing": True, "disagreeing": False}


class Value(NamedTuple):
    """A value that a wrapper found, and whether it is a true one of its page."""

    vertical: str
    method: Method
    signs: Signs
    is_right: bool


class Weights(NamedTuple):
    """The weights of the signs, in their order."""

    intercept: float
    of_signs: tuple[float, ...]

    def confidence(self, signs: Signs) -> float:
        """The estimated probability that a value with these signs is right."""
        score = self.intercept + sum(
            weight * value for weight, value in zip(self.of_signs, signs, strict=True)
        )
        return 1 / (1 + math.exp(-score))


def main(data: Path, is_written: bool) -> None:
    values = collected(list(swde_sites(data)))
    weights = fitted(values)
    unseen = of_unseen_verticals(values, fitted)
    shares = of_unseen_verticals(values, _share_alone)
    for name in ("both methods", *METHODS):
        chosen = [number for number, value in enumerate(values) if name in ("both methods", value.method)]
        is_right = [values[number].is_right for number in chosen]
        print(f"{name}: {len(chosen):,} values, {len(chosen) - sum(is_right):,} of them wrong\n")
        _print_figures("learned", [unseen[number] for number in chosen], is_right)
        _print_figures(
            "share of right values alone", [shares[number] for number in chosen], is_right, has_order=False
        )
        print("\nReliability of what was learned")
        for part in reliability_of([(unseen[number], values[number].is_right) for number in chosen]):
            share = f"{part.share:.4f}" if part.values else ""
            print(f"{part.low:6g} to {part.high:<5g} {part.values:7,} {share}")
        print()
    content = _content(weights, values)
    print(content)
    if is_written:
        WEIGHTS.write_text(content, encoding="utf-8")


def collected(sites: Sequence[SwdeSite]) -> list[Value]:
    """The values that wrappers find on the test pages of sites."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context) as pool:
        return [value for values in pool.map(_values_of_site, sites) for value in values]


def fitted(values: Sequence[Value]) -> Weights:
    """The weights by which the values are most likely, those that make no sense left out.

    A few wrong values may share a sign by chance, and then it would count the wrong way round.
    """
    signs, is_right = _matrix(values), np.array([value.is_right for value in values])
    used = list(range(len(Signs._fields)))
    while True:
        model = LogisticRegression(C=1.0, max_iter=1000).fit(signs[:, used], is_right)
        weights = dict(zip(used, model.coef_[0].tolist(), strict=True))
        sensible = [
            number for number in used if weights[number] == 0 or (weights[number] > 0) == _is_for(number)
        ]
        if sensible == used:
            break
        used = sensible
    return Weights(
        float(model.intercept_[0]), tuple(weights.get(number, 0.0) for number in range(len(Signs._fields)))
    )


def of_unseen_verticals(values: Sequence[Value], learn: Callable[[Sequence[Value]], Weights]) -> list[float]:
    """The confidence of each value by weights that were learned on the other verticals."""
    weights = {
        vertical: learn([value for value in values if value.vertical != vertical])
        for vertical in {value.vertical for value in values}
    }
    return [weights[value.vertical].confidence(value.signs) for value in values]


def _share_alone(values: Sequence[Value]) -> Weights:
    right = sum(value.is_right for value in values)
    return Weights(math.log(right / (len(values) - right)), (0.0,) * len(Signs._fields))


def _values_of_site(site: SwdeSite) -> list[Value]:
    loaded = LoadedSite(site, max(COUNTS))
    values: list[Value] = []
    for method in METHODS:
        for count in COUNTS:
            examples, unlabelled = loaded.examples(count)
            wrapper, _ = learned(examples, unlabelled, method)
            records, signs = zip(*(_extracted(wrapper, page) for page in loaded.tests), strict=True)
            found = [Found(record.values, record.confidence) for record in records]
            values += [
                Value(site.vertical, method, signs_of_value, value in answer.truth)
                for row in loaded.rows(method, count, len(examples), found)
                for answer, of_page in zip(row.answers, signs, strict=True)
                if answer.is_possible
                for value, signs_of_value in zip(answer.found, of_page.get(row.attribute, ()), strict=True)
            ]
    return values


def _extracted(wrapper: Wrapper, page: Page) -> tuple[Record, dict[str, list[Signs]]]:
    """The record of a page, and the signs of each of its values."""
    seen: list[Signs] = []

    def remember(signs: Signs) -> float:
        seen.append(signs)
        return 0.0

    with patch("siteloom.wrappers.wrapper.confidence", remember):
        record = wrapper.extract(page)
    in_order = iter(seen)
    return record, {name: [next(in_order) for _ in texts] for name, texts in record.values.items()}


def _is_for(number: int) -> bool:
    return _IS_FOR[Signs._fields[number]]


def _matrix(values: Sequence[Value]) -> NDArray[np.float64]:
    return np.array([value.signs for value in values], np.float64)


def _print_figures(
    name: str, confidences: Sequence[float], is_right: Sequence[bool], *, has_order: bool = True
) -> None:
    sure = counted(list(zip(confidences, is_right, strict=True)), CONFIDENT, 1)
    # The area under the curve: how often a right value has more confidence than a wrong one.
    area = f"AUC {roc_auc_score(is_right, confidences):.3f}; " if has_order else ""
    print(
        f"{name:30} Brier score {brier_score_loss(is_right, confidences):.5f}; {area}"
        f"confidence >= {CONFIDENT:g}: {sure.values:,} values, {sure.share:.2%} right"
    )


def _content(weights: Weights, values: Sequence[Value]) -> str:
    wrong = sum(not value.is_right for value in values)
    comment = (
        f"Made by python -m evals.calibration --write: logistic regression over {len(values):,} values "
        f"of the development sites, {wrong:,} of them wrong. See siteloom.wrappers.value_contract.Signs."
    )
    rounded = {
        "intercept": round(weights.intercept, 3),
        **{name: round(weight, 3) for name, weight in zip(Signs._fields, weights.of_signs, strict=True)},
    }
    return json.dumps({"comment": comment, "weights": rounded}, indent=2) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m evals.calibration", description="How likely extracted values are right."
    )
    parser.add_argument("data", type=Path, help="where scripts/unpack-data put the pages")
    parser.add_argument("--write", action="store_true", help="make the learned weights those of the package")
    arguments = parser.parse_args()
    main(arguments.data, arguments.write)
