"""How likely a value is right, judged by how its rule was learned and by who agrees with it.

The weights are those of a logistic regression over the values that wrappers
extracted from the development sites (`python -m evals.calibration`); they are
shipped as data.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.wrapper.language import Evidence


class Signs(NamedTuple):
    """What speaks for and against a value."""

    examples: float  # example values that the rule found, on a scale that saturates
    filled: float  # share of unlabelled pages on which the rule finds something
    wrong: float  # whether the rule also found something wrong on the example pages
    repeated: float  # share of unlabelled pages with more than one value of a single-valued attribute
    later: float  # whether it is not the attribute's first rule
    agreeing: float  # share of the voters that found this value
    disagreeing: float  # share of the voters that found only others


def signs(
    evidence: Evidence, *, is_multi: bool, is_first_rule: bool, agreeing: int, disagreeing: int, voters: int
) -> Signs:
    """The signs of one value."""
    return Signs(
        examples=1 - 1 / (1 + evidence.examples),
        filled=evidence.filled,
        wrong=float(evidence.wrong > 0),
        repeated=0.0 if is_multi else evidence.repeated,
        later=float(not is_first_rule),
        agreeing=agreeing / voters if voters else 0.0,
        disagreeing=disagreeing / voters if voters else 0.0,
    )


def confidence(found: Signs) -> float:
    """The estimated probability that a value with these signs is right."""
    weights = _weights()
    score = weights["intercept"] + sum(
        weights[name] * value for name, value in zip(Signs._fields, found, strict=True)
    )
    return round(1 / (1 + math.exp(-score)), 3)


@cache
def _weights() -> Mapping[str, float]:
    content = files("siteloom.wrapper").joinpath("confidence.json").read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(content)
    return weights
