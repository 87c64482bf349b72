"""How likely a value is right, judged by how its rule was learned and by who agrees with it.

The weights are those of a logistic regression over the values that wrappers
extracted from the development sites (`python -m evals.calibration`); they are
shipped as data.
"""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.wrapper.language import Rule


class Signs(NamedTuple):
    """What speaks for and against a value: from 0, not at all, to 1.

    Whether many examples show it, whether other rules come first, and whether
    the rule hangs on names were tried, too; they tell nothing besides these.
    """

    filled: float  # share of unlabelled pages on which the rule finds something
    imprecise: float  # whether something wrong on the example pages has all features of the rule
    several: float  # whether the attribute has further values on this page
    agreeing: float  # share of the voters that find this value
    disagreeing: float  # share of the voters that should find this value and do not


def signs(rule: Rule, *, is_one_of_several: bool, agreeing: int, disagreeing: int, voters: int) -> Signs:
    """The signs of a value that a rule found."""
    return Signs(
        filled=rule.evidence.filled,
        # Rules get a scorer only where features do not tell values from other nodes.
        imprecise=float(rule.evidence.wrong > 0 or rule.scorer is not None),
        several=float(is_one_of_several),
        agreeing=agreeing / voters if voters else 0.0,
        disagreeing=disagreeing / voters if voters else 0.0,
    )


@lru_cache(maxsize=1_024)
def confidence(found: Signs) -> float:
    """The estimated probability that a value with these signs is right."""
    known = weights()
    score = known["intercept"] + sum(
        known[name] * value for name, value in zip(Signs._fields, found, strict=True)
    )
    return round(1 / (1 + math.exp(-score)), 4)


@cache
def weights() -> Mapping[str, float]:
    """The weight of each sign, and the intercept."""
    content = files("siteloom.wrapper").joinpath("confidence.json").read_text(encoding="utf-8")
    found: dict[str, float] = json.loads(content)["weights"]
    return found
