"""What values of an attribute look like, which values are withheld, and the confidence of the others.

A contract cannot say that a value is right, but that it is unlike all values
before. A single such value may be right all the same, so nothing is withheld
for it; that many values break their contract is a sign that a rule finds
something else.

The weights are those of a logistic regression over the values that wrappers
extracted from the development sites (`python -m evals.calibration`); they are
shipped as data.
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


# A claim that no value contradicted is wrong about one in n + 2 others (rule of succession): with five
# values a length says something, but several claims about characters together need more.
_LEAST_VALUES = 5
_LEAST_VALUES_FOR_CHARACTERS = 20
# An odd value or two must not make a claim void.
_ALMOST_ALL = 0.98
# Values that come back so often are chosen from a list, such as parties and cuisines.
_LEAST_REPEATS = 4
_MOST_CHOICES = 50
# Prices of one shop differ by some tens, but a phone number is no price.
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

    They are between `shortest` and `longest` characters long. `always` are classes of characters that
    each has at least one of, `never` those that none has. `choices`, if any, are all values that there are;
    `least` and `most` is the range of numbers. `commonest` is the share of the most frequent value.
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
    """What values of an attribute of some type are like; None if they are too few to tell."""
    if len(texts) < _LEAST_VALUES:
        return None
    amounts = [_amount(_read(text, kind)) for text in texts] if kind in _NUMERIC else []
    numbers = [amount for amount in amounts if amount is not None]
    has_range = len(numbers) == len(texts) and any(numbers)  # nothing but 0 has no order of magnitude
    count = Counter(texts)
    return Contract(
        len(texts),
        min(map(len, texts)),
        max(map(len, texts)),
        *_claims(texts),
        _choices(count, len(texts)),
        min(numbers) if has_range else None,
        max(numbers) if has_range else None,
        round(max(count.values()) / len(texts), 4),
    )


def breach(contract: Contract, text: str, typed: object | None = None) -> str | None:
    """How a value is unlike those that a contract was learned from; None if it is like them."""
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
        least = min(contract.least / _RANGE_FACTOR, contract.least * _RANGE_FACTOR)  # it may be negative
        most = max(contract.most / _RANGE_FACTOR, contract.most * _RANGE_FACTOR)
        if not least <= amount <= most:
            return f"{amount:g} instead of {contract.least:g} to {contract.most:g}"
    return None


def possible_lengths(contract: Contract) -> tuple[int, int]:
    """How many characters a value may have at least and at most, with some room beyond those known."""
    return contract.shortest // 2, 2 * contract.longest + _LEAST_VALUES


def _claims(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if len(texts) < _LEAST_VALUES_FOR_CHARACTERS:
        return (), ()
    shares = {
        name: sum(any(map(is_one, text)) for text in texts) / len(texts) for name, is_one in _CLASSES.items()
    }
    always = tuple(name for name, share in shares.items() if share >= _ALMOST_ALL)
    never = tuple(name for name, share in shares.items() if share <= 1 - _ALMOST_ALL)
    return always, never


def _choices(count: Counter[str], total: int) -> tuple[str, ...]:
    """All values, if they are words from a list; dates of the same day and numbers are none."""
    if total < _LEAST_REPEATS * max(len(count), _LEAST_VALUES) or len(count) > _MOST_CHOICES:
        return ()
    if any(character.isdigit() for text in count for character in text):
        return ()
    return tuple(sorted(count))


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
    content = files("siteloom.wrappers").joinpath("confidence.json").read_text(encoding="utf-8")
    found: dict[str, float] = json.loads(content)["weights"]
    return found
