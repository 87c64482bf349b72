"""Contracts, which describe valid values of an attribute, and the confidence of a value.

A contract cannot tell that a value is right, only that it is unlike all previous values. A single such value
may still be right, so it is not withheld; but if many values break their contract, a rule probably finds
something else.

The weights of the confidence come from a logistic regression over the values that wrappers extracted from the
development sites (`python -m evals.calibration`); they are shipped as data.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import MissingExtra
from siteloom.core.values import typed_value
from siteloom.core.values.value_types import Price, Rating

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from siteloom.core.model import ValueType
    from siteloom.wrappers.rule_features import Rule


# A claim that none of n values contradicts is wrong for about one in n + 2 further values (rule of
# succession): five values are enough for a length, but several claims about characters together need more.
_LEAST_VALUES = 5
_LEAST_VALUES_FOR_CHARACTERS = 20
# One or two odd values must not invalidate a claim.
_ALMOST_ALL = 0.98
# Values that repeat this often are chosen from a list, such as parties and cuisines.
_LEAST_REPEATS = 4
_MOST_CHOICES = 50
# Prices of one shop differ by a factor of some tens, but a phone number is not a price.
_RANGE_FACTOR = 10

_NUMERIC = frozenset({"number", "price", "rating"})

_CLASSES: dict[str, Callable[[str], bool]] = {
    "digits": str.isdigit,
    "capitals": str.isupper,
    "small letters": str.islower,
    "blanks": str.isspace,
    "@": "@".__eq__,
    "/": "/".__eq__,
    "currency signs": "$€£¥".__contains__,
}
CHARACTERS = tuple(_CLASSES)
"""The classes of characters that claims are made about."""


@dataclass(frozen=True, slots=True)
class Contract:
    """Claims about the values of an attribute, learned from `values` of them.

    Values are between `shortest` and `longest` characters long. `always` are the classes of characters that
    occur in every value, `never` those that occur in none. `choices`, if any, are all possible values;
    `least` and `most` are the range of numbers. `commonest` is the share of the most frequent value.
    """

    values: int
    shortest: int
    longest: int
    always: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    commonest: float = 1.0


def learned_contract(texts: Sequence[str], kind: ValueType | None = None) -> Contract | None:
    """Learn the contract of an attribute from its values; None if there are too few."""
    if len(texts) < _LEAST_VALUES:
        return None
    amounts = [_amount(_read(text, kind)) for text in texts] if kind in _NUMERIC else []
    numbers = [amount for amount in amounts if amount is not None]
    has_range = len(numbers) == len(texts) and any(numbers)  # nothing but 0 has no order of magnitude
    value_counts = Counter(texts)
    return Contract(
        len(texts),
        min(map(len, texts)),
        max(map(len, texts)),
        *_claims(texts),
        _choices(value_counts, len(texts)),
        min(numbers) if has_range else None,
        max(numbers) if has_range else None,
        round(max(value_counts.values()) / len(texts), 4),
    )


def breach(contract: Contract, text: str, typed: object | None = None) -> str | None:
    """Return how a value breaks a contract, or None if it does not."""
    shortest, longest = possible_lengths(contract)
    if not shortest <= len(text) <= longest:
        return f"{len(text)} characters instead of {contract.shortest} to {contract.longest}"
    if contract.choices and text not in contract.choices:
        return f"none of the {len(contract.choices)} values known"
    for name in contract.always:
        if not any(map(_CLASSES[name], text)):
            return f"no {name}"
    for name in contract.never:
        if any(map(_CLASSES[name], text)):
            return f"{name}, which no value had"
    amount = _amount(typed)
    if amount is not None and contract.least is not None and contract.most is not None:
        lower = min(contract.least / _RANGE_FACTOR, contract.least * _RANGE_FACTOR)  # it may be negative
        upper = max(contract.most / _RANGE_FACTOR, contract.most * _RANGE_FACTOR)
        if not lower <= amount <= upper:
            return f"{amount:g} instead of {contract.least:g} to {contract.most:g}"
    return None


def possible_lengths(contract: Contract) -> tuple[int, int]:
    """Return the minimum and maximum length of a value, with some tolerance beyond the learned lengths."""
    return contract.shortest // 2, 2 * contract.longest + _LEAST_VALUES


def _claims(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if len(texts) < _LEAST_VALUES_FOR_CHARACTERS:
        return (), ()
    shares = {
        name: sum(any(map(has_class, text)) for text in texts) / len(texts)
        for name, has_class in _CLASSES.items()
    }
    always = tuple(name for name, share in shares.items() if share >= _ALMOST_ALL)
    never = tuple(name for name, share in shares.items() if share <= 1 - _ALMOST_ALL)
    return always, never


def _choices(value_counts: Counter[str], total: int) -> tuple[str, ...]:
    """Return all values if they are words from a list; repeated dates and numbers do not count."""
    if total < _LEAST_REPEATS * max(len(value_counts), _LEAST_VALUES) or len(value_counts) > _MOST_CHOICES:
        return ()
    if any(character.isdigit() for text in value_counts for character in text):
        return ()
    return tuple(sorted(value_counts))


def _read(text: str, kind: ValueType | None) -> object | None:
    try:
        return None if kind is None else typed_value(text, kind)
    except MissingExtra:
        return None


def _amount(typed: object | None) -> float | None:
    match typed:
        case Price(amount=amount) | Rating(value=amount):
            return float(amount)
        case Decimal() | int() | float():
            return float(typed)
        case _:
            return None


class Signs(NamedTuple):
    """Evidence for and against a value, each from 0 to 1.

    The number of examples, the order of rules, and whether a rule depends on names were tried, too; they add
    nothing to these signs.
    """

    filled: float  # share of unlabelled pages on which the rule finds something
    imprecise: float  # whether something wrong on the example pages has all features of the rule
    several: float  # whether the attribute has further values on this page
    agreeing: float  # share of the voters that find this value
    disagreeing: float  # share of the voters that should find this value and do not


def signs(rule: Rule, *, is_one_of_several: bool, agreeing: int, disagreeing: int, voters: int) -> Signs:
    """Return the signs of a value that a rule found."""
    return Signs(
        filled=rule.evidence.filled,
        # Rules get a scorer only where features do not tell values from other nodes.
        imprecise=float(rule.evidence.wrong > 0 or rule.scorer is not None),
        several=float(is_one_of_several),
        agreeing=agreeing / voters if voters else 0.0,
        disagreeing=disagreeing / voters if voters else 0.0,
    )


@lru_cache(maxsize=1_024)
def confidence(value_signs: Signs) -> float:
    """Return the estimated probability that a value with these signs is right."""
    sign_weights = weights()
    score = sign_weights["intercept"] + sum(
        sign_weights[name] * value for name, value in zip(Signs._fields, value_signs, strict=True)
    )
    return round(1 / (1 + math.exp(-score)), 4)


@cache
def weights() -> Mapping[str, float]:
    """Load the weight of each sign, and the intercept."""
    content = files("siteloom.wrappers").joinpath("confidence.json").read_text(encoding="utf-8")
    weights_by_sign: dict[str, float] = json.loads(content)["weights"]
    return weights_by_sign
