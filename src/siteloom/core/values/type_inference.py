"""Infer the type that texts share, by their shapes alone; needs no extra."""

# ruff: noqa: RUF001 - signs and letters that look like others are what is read here

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.core.values.dates import months_called
from siteloom.core.values.numbers import UNITS, number, only_number
from siteloom.core.values.ratings import explicit_rating, unambiguous_rating
from siteloom.core.values.urls_and_images import looks_like_image, looks_like_url

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from siteloom.core.model import ValueType

_CODE = (
    r"(?:AED|ARS|AUD|BGN|BHD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JOD|JPY|KRW|KWD|MAD"
    r"|MXN|MYR|NGN|NOK|NZD|OMR|PEN|PHP|PKR|PLN|QAR|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR)"
)
_CURRENCY = (
    rf"(?:[A-Z]{{0,3}}\s?[€$£¥￥₹₽₩₺₪₴₫฿₦₱₡₲₸₾₼]|{_CODE}|(?:[Ee]uros?|zł|Kč|Ft|kr|Rs|lei|лв|руб|грн|円)"
    r"(?![^\W\d_])\.?)"
)
_AMOUNT = r"[-−]?\d[\d.,'’ \u00a0\u202f]{0,20}(?:[-–—]{1,2})?"
_LEAD = r"(?:(?i:from|ab|only|nur|now|was|our price|price|preis|à partir de|desde|da)\b:?\s?)?"
_PRICE = re.compile(rf"{_LEAD}(?:[-−]?{_CURRENCY}\s?{_AMOUNT}(?:\s?{_CODE})?|{_AMOUNT}\s?{_CURRENCY})")

_STARS = re.compile(r"star|rat|stern|étoile|estrella|stell|/|out of|★|☆", re.IGNORECASE)

_TIME = (
    r"(?:[T,]?\s?(?:at |um )?\d{1,2}:\d\d(?::\d\d)?(?:\.\d{1,6})?\s?(?:[AaPp]\.?[Mm]\.?|Uhr)?"
    r"\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)?)?"
)
_NUMERIC_DATE = re.compile(
    rf"(?:[12]\d{{3}}([./-])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])"
    rf"|(?:0?[1-9]|[12]\d|3[01])([./-])(?:0?[1-9]|[12]\d|3[01])\2[12]\d{{3}}"
    rf"|[12]\d{{3}}\s?[年년]\s?\d{{1,2}}\s?[月월]\s?\d{{1,2}}\s?[日일]){_TIME}"
)
_NAMED_DATE = re.compile(
    r"(?:[^\W\d_]{2,12}\.?,?\s)?"
    r"(?:\d{1,2}(?:st|nd|rd|th|er|\.|º)?[\s-](?:(?:of|de)\s)?(?P<middle>[^\W\d_]{3,14})\.?,?[\s-](?:del?\s)?[12]\d{3}"
    rf"|(?P<first>[^\W\d_]{{3,14}})\.?\s\d{{1,2}}(?:st|nd|rd|th)?,?\s[12]\d{{3}})(?:\sг\.?)?{_TIME}"
)

_NUMBER = re.compile(r"(?P<sign>[-−+]?)(?P<digits>\d[\d.,'’ \u00a0\u202f]{0,30})(?P<unit>[^\d\s]{0,10})")
_WORD = re.compile(r"[^\W\d_]+")
_SPACES = re.compile(r"[ \u00a0\u202f]")


def infer_type(texts: Sequence[str], sources: Collection[str] = ()) -> ValueType:
    """Return the most specific type that all texts have; "text" when in doubt.

    `sources` are the targets they come from, such as `text`, `@src`, `@href`, `@class` or `@style`.
    """
    present = [stripped for text in texts if (stripped := text.strip())]
    if not present:
        return "text"
    checks: list[tuple[ValueType, Callable[[], bool]]] = [
        ("rating", lambda: all(_is_rating(text, sources) for text in present)),
        ("image", lambda: _are_images(present, sources)),
        ("url", lambda: all(looks_like_url(text, relative=_from_attributes(sources)) for text in present)),
        ("price", lambda: all(_is_price(text) for text in present)),
        ("date", lambda: all(_is_date(text) for text in present)),
        ("number", lambda: _are_numbers(present)),
    ]
    return next((name for name, holds in checks if holds()), "text")


def _from_attributes(sources: Collection[str]) -> bool:
    return bool(sources) and all(source.startswith("@") for source in sources)


def _is_rating(text: str, sources: Collection[str]) -> bool:
    """Return whether a text is surely a rating: `page 1 of 5` and `The 5-star hotel` are not."""
    if _from_attributes(sources):
        return unambiguous_rating(text) is not None
    has_stars = _STARS.search(text) is not None and len(_WORD.findall(text)) <= 5
    return has_stars and explicit_rating(text) is not None


def _are_images(texts: Sequence[str], sources: Collection[str]) -> bool:
    """Return whether texts are addresses from `src`, or of image files from another attribute than `href`."""
    if not _from_attributes(sources) or "@href" in sources:
        return False
    if all(source in {"@src", "@data-src"} for source in sources):
        return all(looks_like_url(text, relative=True) for text in texts)
    return all(looks_like_image(text) for text in texts)


def _is_price(text: str) -> bool:
    return _PRICE.fullmatch(text) is not None and only_number(text) is not None


def _is_date(text: str) -> bool:
    if len(text) > 60:
        return False
    if _NUMERIC_DATE.fullmatch(text):
        return True
    match = _NAMED_DATE.fullmatch(text)
    return match is not None and bool(months_called((match["middle"] or match["first"]).lower()))


def _are_numbers(texts: Sequence[str]) -> bool:
    """Return whether texts are quantities, and not identifying numbers such as telephones, codes, ISBNs."""
    matches = [_NUMBER.fullmatch(text) for text in texts]
    digits: list[str] = []
    for match in matches:
        if match is None or not _is_quantity(match):
            return False
        if not match["unit"]:
            digits.append(match["digits"])
    return not _are_codes(digits)


def _is_quantity(match: re.Match[str]) -> bool:
    digits = match["digits"].rstrip()
    unit = match["unit"].lower()
    if number(match[0]) is None or (unit and unit not in UNITS):
        return False
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in ".,":  # 01907: the zero matters
        return False
    count = sum(map(str.isdigit, digits))
    return not (digits.isdigit() and count > 7) and not (_SPACES.search(digits) and count >= 9)


def _are_codes(digits: Sequence[str]) -> bool:
    """Return whether numbers of equal length are probably codes: five digits, or groups between spaces."""
    lengths = {len(text) for text in digits}
    if len(digits) == 0 or len(lengths) > 1:
        return False
    return all((len(text) == 5 and text.isdigit()) or _SPACES.search(text.strip()) for text in digits)
