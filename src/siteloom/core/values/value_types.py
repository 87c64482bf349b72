"""The types of typed values, and their JSON form."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Price:
    """An amount of money.

    `currency` is an ISO 4217 code if the text determines it, the symbol as shown if several countries use it
    (`$`, `¥`, `kr`), and None if there is none.
    """

    amount: Decimal
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image's absolute address, and its alternative text."""

    url: str
    alt: str | None = None


@dataclass(frozen=True, slots=True)
class Rating:
    """A rating; `best` is the maximum, if the text gives it."""

    value: Decimal
    best: Decimal | None = None


def to_plain(value: object) -> object:
    """Convert a typed value for JSON; decimals become texts, because JSON numbers lose digits."""
    match value:
        case Price(amount, currency):
            return {"amount": _digits(amount), "currency": currency}
        case Image(url, alt):
            return {"url": url, "alt": alt}
        case Rating(number, best):
            return {"value": _digits(number), "best": None if best is None else _digits(best)}
        case dt.date():  # a datetime is a date too
            return value.isoformat()
        case Decimal():
            return _digits(value)
        case _:
            return value


def _digits(number: Decimal) -> str:
    """Format a Decimal without an exponent, which not every reader supports."""
    return format(number, "f")
