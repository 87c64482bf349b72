"""Normalise texts that are only written differently."""

# ruff: noqa: RUF001 - the patterns below contain ambiguous characters on purpose

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from typing import TYPE_CHECKING

from siteloom.core.values.dates import full_year, months_called
from siteloom.core.values.numbers import DOT_AND_THREE, UNITS, only_number, value_of

if TYPE_CHECKING:
    from decimal import Decimal

LONGEST_KEYED_TEXT = 200
"""Longer values have no key, except for a few URLs."""

_LONGEST_BUT_URLS = 50

_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_ASCII_FOLDS = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))

_MAY_HAVE_KEY = re.compile(r"[0-9@]|www\.|://|[a-z]\.(?:com|org|net|edu|gov|info|biz)\b", re.IGNORECASE)
_SIGNS = str.maketrans("‐‑‒–—−’‘′“”″", "------'''\"\"\"")
_AROUND = " \t\r\n|;,•·"
_LABEL = re.compile(r"(?:[^\W\d](?:[^\d:\n]|\d(?=\d?:)){0,30})?:(?!//)\s*")  # Pub. Date:   ISBN-13:   :

_EMAIL = re.compile(r"(?:mailto:)?(?P<address>[^\s@:?<>]+@[\w-]+(?:\.[\w-]+)+)(?:\?\S*)?", re.IGNORECASE)
# Country codes as the ITU assigns them: all that are not listed have three digits.
_COUNTRY_CODE = re.compile(
    r"\+\s*(?:[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\d{3})", re.ASCII
)
_URL = re.compile(
    r"(?:https?://(?:www\.)?|www\.)(?P<host>[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?P<path>[/?][^\s#]*)?(?:#\S*)?"
    r"|(?P<bare>[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|info|biz))(?P<bare_path>/[^\s#]*)?(?:#\S*)?",
    re.IGNORECASE,
)

_ISBN = re.compile(
    r"(?P<label>ISBN(?:[- ]?1[03])?\s*[:#]?\s*)?"
    r"(?P<digits>\d{9}[\dX]|97[89][- ]?\d{10}|\d{1,5}[- ]\d{1,7}[- ]\d{1,7}[- ][\dX]"
    r"|97[89][- ]\d{1,5}[- ]\d{1,7}[- ]\d{1,7}[- ]\d)",
    re.IGNORECASE | re.ASCII,
)

_PHONE = re.compile(
    r"""
    (?P<label> (?:tele)?phone|(?:tel|ph|fax|mobile|cell|call)\b )? [.:#\s]*
    (?P<digits> \+?[\d(] [\d().\s/-]{5,22} \d )
    (?: [\s,;]* (?:x|ext\.?|extension) [.:\s]* \d{1,6} )?
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_NAMES_PHONE = re.compile(r"phone|\b(?:tel|ph|fax|mobile|cell|call)\b", re.IGNORECASE)
# Signs of a phone number: an area code in parentheses, a plus, a call prefix, or known groups of digits.
_WRITTEN_AS_PHONE = re.compile(
    r"""
      (?:1[-./\s]{0,3})? \(\d{2,5}\) .*
    | \+ .*
    | (?:1[-./\s])? [2-9]\d\d [-./\s]{1,3} \d{3} [-.\s]{1,3} \d{4}
    | 1?[2-9]\d\d[2-9]\d{6}
    | [2-9]\d\d[-.]\d{4}
    | 0\d{1,4} [\s/-]{1,3} \d[\d\s/-]{4,}
    """,
    re.VERBOSE | re.ASCII,
)

_DAY_TIME = re.compile(
    r"[T ,]\s*\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?\s?(?:[ap]\.?m\.?)?\s?(?:Z|[+-]\d\d:?\d\d)?$", re.IGNORECASE
)
_NUMERIC_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d\d)", re.ASCII)
_YEAR_FIRST = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})", re.ASCII)
_YEAR_FIRST_IN_CHINESE = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日", re.ASCII)
_MONTH_OF_YEAR = re.compile(r"(\d{1,2})/(\d{4})", re.ASCII)
_YEAR_AND_MONTH = re.compile(r"((?:19|20)\d\d)-(\d\d)", re.ASCII)
_NAMED_MONTH = re.compile(
    r"""
    (?: [^\W\d_]{2,12}\.?,\s+ )?                                       # Friday,
    (?: (?P<day>\d{1,2})(?:st|nd|rd|th|er|º)?\.?[\s-]+ (?:(?:of|de)\s+)? (?P<month>[^\W\d_]{3,12})\.?
    | (?P<first>[^\W\d_]{3,12})\.? (?: [\s-]+(?P<second>\d{1,2})(?:st|nd|rd|th)? )? )
    (?:,\s*|\s+|-) (?:(?:of|de)\s+)? (?P<year>\d{4})
    """,
    re.VERBOSE | re.IGNORECASE,
)

_FEET = re.compile(
    r"(?P<feet>\d)\s?(?:'|ft\.?|feet|foot)\s*(?:(?P<inches>1[01]|\d)\s?(?:\"|''|in\.?|inch(?:es)?)?)?"
    r"|(?P<plain_feet>[3-8])-(?P<plain_inches>1[01]|\d)(?:\s?[/(]\s?[12]\.\d\d?(?:\s?m\.?)?\)?)?",
    re.IGNORECASE,
)
_METRES = re.compile(r"(?:(?P<cm>\d{2,3}(?:\.\d)?)\s?cm|(?P<m>[12][.,]\d\d)\s?m)\.?", re.IGNORECASE)

_CURRENCY = (
    r"(?:(?:US|CA|AU|NZ|HK|C|A|R)?\s?\$|[€£¥₹₽₩]|(?:USD|EUR|GBP|CAD|AUD|CHF|JPY|INR|Rs\.?|kr\.?|zł)(?!\w))"
)
_AMOUNT = re.compile(
    rf"(?P<before>{_CURRENCY})?\s?(?P<digits>[+-]?(?:\d[\d.,' ]*\d|\.?\d))"
    rf"\s?(?:(?P<behind>{_CURRENCY})|(?P<unit>[^\W\d_]+|%|°)\.?)?(?P<again>\s?[/(]\s?[\d.,]+\s?[a-z]+\.?\)?)?",
    re.IGNORECASE,
)


def folded(text: str) -> str:
    """Return a text in lower case without accents and signs, its words separated by single blanks."""
    if text.isascii():
        return " ".join(text.translate(_ASCII_FOLDS).split())
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(sign for sign in decomposed if unicodedata.category(sign)[0] != "M")
    return _NOT_ALPHANUMERIC.sub(" ", plain).strip()


def canonical_key(text: str, *, day_first: bool = False) -> str | None:
    """Return the canonical form of a value of a kind that is written in many ways: `phone:4155551212`.

    The kinds are `isbn`, `url`, `email`, `date` (`date:2008-05-01`, `date:2008-05`), `length` in inches,
    `phone` without its country code, `price` without its currency, and `number`. Texts with the same meaning
    have the same key. A label may precede the value; a text with anything else beside its value has no key.
    `day_first` decides ambiguous dates such as `03/04/2011`.
    """
    if len(text) > LONGEST_KEYED_TEXT or _MAY_HAVE_KEY.search(text) is None:
        return None
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    text = text.strip(_AROUND)
    labelled = _LABEL.match(text)
    label = labelled[0] if labelled else ""
    value = text[len(label) :].rstrip(".")
    if len(value) > _LONGEST_BUT_URLS:
        return _url_key(value)
    return (
        _url_key(value)
        or _email_key(value)
        or _isbn_key(value, label)
        or _date_key(value, day_first=day_first)
        or _length_key(value)
        or _phone_key(value, label)
        or _amount_key(value)
    )


def _url_key(text: str) -> str | None:
    match = _URL.fullmatch(text)
    if match is None:
        return None
    host = (match["host"] or match["bare"]).lower()
    path = match["path"] or match["bare_path"] or ""
    return f"url:{host}{path.rstrip('/')}"


def _email_key(text: str) -> str | None:
    match = _EMAIL.fullmatch(text)
    return f"email:{match['address'].lower()}" if match else None


def _isbn_key(text: str, label: str) -> str | None:
    match = _ISBN.fullmatch(text)
    if match is None:
        return None
    digits = re.sub("[- ]", "", match["digits"]).upper()
    if len(digits) == 13:
        return f"isbn:{digits}" if _check_digit(digits[:12]) == digits[12] else None
    if len(digits) != 10:
        return None
    # Ten digits in a row are a North American phone, unless they begin with a digit that no phone there has.
    is_named = match["label"] or "isbn" in label.lower()
    if not is_named and match["digits"].isdigit() and digits[0] not in "01":
        return None
    total = sum((10 - place) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits))
    return None if total % 11 else f"isbn:978{digits[:9]}{_check_digit('978' + digits[:9])}"


def _check_digit(digits: str) -> str:
    """Return the last digit of a thirteen-digit ISBN from the first twelve."""
    return str(-sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10)


def _date_key(text: str, *, day_first: bool) -> str | None:
    text = _DAY_TIME.sub("", text)
    if match := _NUMERIC_DATE.fullmatch(text):
        first_number, separator, second_number, year = match.groups()
        month, day = int(first_number), int(second_number)
        if separator == "." or month > 12 or (day_first and day <= 12):
            month, day = day, month
        return _day_key(full_year(year), month, day)
    if match := _YEAR_FIRST.fullmatch(text):
        return _day_key(int(match[1]), int(match[3]), int(match[4]))
    if match := _YEAR_FIRST_IN_CHINESE.fullmatch(text):
        return _day_key(int(match[1]), int(match[2]), int(match[3]))
    if match := _MONTH_OF_YEAR.fullmatch(text):
        return _month_key(int(match[2]), int(match[1]))
    if match := _YEAR_AND_MONTH.fullmatch(text):
        return _month_key(int(match[1]), int(match[2]))
    if match := _NAMED_MONTH.fullmatch(text):
        months = months_called((match["month"] or match["first"]).lower())
        if len(months) != 1:
            return None
        day_text = match["day"] or match["second"]
        year_number, month = int(match["year"]), next(iter(months))
        return _day_key(year_number, month, int(day_text)) if day_text else _month_key(year_number, month)
    return None


def _day_key(year: int, month: int, day: int) -> str | None:
    try:
        return f"date:{dt.date(year, month, day).isoformat()}" if 1000 <= year < 2200 else None
    except ValueError:  # not a valid date
        return None


def _month_key(year: int, month: int) -> str | None:
    return f"date:{year}-{month:02}" if 1 <= month <= 12 and 1000 <= year < 2200 else None


def _length_key(text: str) -> str | None:
    """Return the key of a person's height, in inches: the one length written in two units at once."""
    if match := _FEET.fullmatch(text):
        feet, inches = match["feet"] or match["plain_feet"], match["inches"] or match["plain_inches"] or "0"
        return f"length:{12 * int(feet) + int(inches)}"
    if match := _METRES.fullmatch(text):
        centimetres = float(match["cm"]) if match["cm"] else 100 * float(match["m"].replace(",", "."))
        return f"length:{round(centimetres / 2.54)}"
    return None


def _phone_key(text: str, label: str) -> str | None:
    match = _PHONE.fullmatch(text)
    if match is None:
        return None
    written = match["digits"].strip()
    is_named = match["label"] or _NAMES_PHONE.search(label)
    if not is_named and _WRITTEN_AS_PHONE.fullmatch(written) is None:
        return None
    if written.startswith("00"):
        written = "+" + written[2:]
    # An international number has a country code; in most countries, a local one has a 0 in its place.
    digits = "".join(filter(str.isdecimal, _COUNTRY_CODE.sub("", written)))
    if len(digits) == 11 and digits[0] == "1":  # the country code of North America
        digits = digits[1:]
    digits = digits.removeprefix("0")
    return f"phone:{digits}" if 7 <= len(digits) <= 15 else None


def _amount_key(text: str) -> str | None:
    match = _AMOUNT.fullmatch(text)
    if match is None or (match["unit"] and match["unit"].lower() not in UNITS):
        return None
    is_price = match["before"] or match["behind"]
    if match["again"] and (is_price or not match["unit"]):
        return None
    digits = match["digits"]
    amount = _amount(digits, is_price=bool(is_price))
    if amount is None:
        return None
    return f"{'price' if is_price else 'number'}:{amount.normalize():f}"


def _amount(digits: str, *, is_price: bool) -> Decimal | None:
    """Return the number that digits and separators denote; digits with a leading zero are a code."""
    if re.match(r"[+-]?0\d", digits):
        return None
    number = only_number(digits)
    if number is None or (DOT_AND_THREE.fullmatch(number.digits) and not is_price):
        return None
    return value_of(number)
