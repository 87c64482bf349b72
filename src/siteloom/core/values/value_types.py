"""The values that texts become, and their JSON form."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Price:
    """An amount of money.

    `currency` is an ISO 4217 code where the text says which one it is, the symbol
    as seen where several countries use it (`$`, `¥`, `kr`), None where there is none.
    """

    amount: Decimal
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image's absolute address, and the text that stands in for it."""

    url: str
    alt: str | None = None


@dataclass(frozen=True, slots=True)
class Rating:
    """How good something is said to be; `best` is the most it could be, where the text says so."""

    value: Decimal
    best: Decimal | None = None


def to_plain(value: object) -> object:
    """The JSON form of a typed value: decimals are texts, for JSON numbers lose digits."""
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
    """A Decimal without an exponent, which not every reader of decimal texts knows."""
    return format(number, "f")
