"""Read prices: the amount by this package's own rules, the currency by `price-parser`."""

# ruff: noqa: RUF001 - signs and letters that look like others are what is read here

from __future__ import annotations

import re
from functools import lru_cache

from siteloom.core.errors import MissingExtra
from siteloom.core.values.numbers import DOT_AND_THREE, MAX_LENGTH, NumberMatch, only_number, value_of
from siteloom.core.values.value_types import Price

# Only symbols and words that stand for a single currency. `$`, `¥`, `kr`, `Rs`, `Fr.`, `C$` (Canada,
# Nicaragua) and the like are kept as shown: only the site tells which currency they are.
_CODES = dict(
    pair.split("=")
    for pair in """
    €=EUR eur=EUR euro=EUR euros=EUR £=GBP ₹=INR ₽=RUB руб=RUB руб.=RUB ₩=KRW ₺=TRY tl=TRY ₪=ILS ₴=UAH грн=UAH
    ₫=VND ฿=THB ₦=NGN ₱=PHP ₡=CRC ₲=PYG ₸=KZT ₾=GEL ₼=AZN zł=PLN kč=CZK ft=HUF лв=BGN лв.=BGN 円=JPY rmb=CNY
    cn¥=CNY us$=USD ca$=CAD au$=AUD a$=AUD nz$=NZD hk$=HKD nt$=TWD s$=SGD sg$=SGD r$=BRL mx$=MXN
    """.split()
)
_THREE_DECIMALS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})
_DOT_IS_OPEN = frozenset({None, "$", "USD", "GBP"})

_COUNTRY_DOLLAR = re.compile(r"\b(US|CA|AU|NZ|HK|NT|SG|MX)\s+\$")
_EURO_AS_POINT = re.compile(r"(\d)€(\d\d)(?!\d)")  # 5€99
_NO_CENTS = re.compile(r"(?<=\d)[.,][-–—]{1,2}")  # 12,-
_SUBUNIT = re.compile(r"\s?(?:p|¢|cents?|ct|pence)(?![^\W\d_])|\s?[%‰]", re.IGNORECASE)
_EURO_WORD = re.compile(r"\beuros?\b", re.IGNORECASE)
_CENTS = re.compile(r".*[.,]\d\d")
_BETWEEN = " \u00a0\u202f.:()-−–+"


def price(text: str) -> Price | None:
    """Read the price in a text; None if it has several, or a number that need not be a price."""
    try:
        import price_parser  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("Typed prices", "values") from error
    return _price(text) if len(text) <= MAX_LENGTH else None


@lru_cache(maxsize=65_536)  # prices repeat, and detecting the currency takes most of the time
def _price(text: str) -> Price | None:
    text = _EURO_AS_POINT.sub(r"\1,\2 €", _NO_CENTS.sub("", _COUNTRY_DOLLAR.sub(r"\1$", text)))
    match = only_number(text)
    if match is None or _SUBUNIT.match(text, match.end):
        return None
    symbol = _currency_at(text, match)
    if symbol is None and not _is_bare_price(text, match):
        return None
    currency = None if symbol is None else _CODES.get(symbol.casefold(), symbol)
    if currency in _DOT_IS_OPEN and DOT_AND_THREE.fullmatch(match.digits):
        return None  # $3.459 is petrol in Ohio, $12.990 a shirt in Chile
    # Elsewhere a dot before three digits separates thousands, except in currencies with three decimals.
    amount = value_of(match, dot_groups=currency not in _THREE_DECIMALS)
    return None if amount is None else Price(amount, currency)


def _currency_at(text: str, match: NumberMatch) -> str | None:
    """Return the currency directly before or after the number."""
    symbol = _currency_in(text)
    if symbol is None:
        return None
    text_before = text[: match.start].rstrip(_BETWEEN).casefold()
    text_after = text[match.end :].lstrip(_BETWEEN).casefold()
    folded = symbol.casefold()
    is_beside = text_before.endswith(folded.rstrip(".")) or text_after.startswith(folded)
    return symbol if is_beside else None


def _currency_in(text: str) -> str | None:
    from price_parser import Price as ParsedPrice  # noqa: PLC0415 - an extra

    if euro := _EURO_WORD.search(text):  # price-parser recognizes it in lower case only
        return euro[0]
    try:
        return ParsedPrice.fromstring(text).currency
    except Exception:  # noqa: BLE001 - a fault of a library in one text must not end an extraction
        return None


def _is_bare_price(text: str, match: NumberMatch) -> bool:
    """Return whether a number without currency may be a price: it is the whole text, or has two decimals."""
    surroundings = text[: match.start] + text[match.end :]
    attached = text[match.start - 1 : match.start].isalpha() or text[match.end : match.end + 1].isalpha()
    has_letters = any(character.isalpha() for character in surroundings)
    return not has_letters or (not attached and _CENTS.fullmatch(match.digits) is not None)
