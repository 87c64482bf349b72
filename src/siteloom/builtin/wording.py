"""How facts read on a page: prices, dates, stars, and names as they stand in addresses."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
_LETTERS_WITHOUT_DECOMPOSITION = str.maketrans({"ø": "o", "Ø": "o", "æ": "ae", "Æ": "ae", "&": "and"})


def price_text(pence: int) -> str:
    """1450 as "£14.50"."""
    return f"£{pence // 100}.{pence % 100:02d}"


def star_count(half_stars: int) -> str:
    """9 as "4.5", 8 as "4"."""
    return f"{half_stars // 2}.5" if half_stars % 2 else str(half_stars // 2)


def stars_text(half_stars: int) -> str:
    """What stands in the alt text of a row of stars."""
    return f"{star_count(half_stars)} out of 5 stars"


def long_date(day: date) -> str:
    """A date as "12 March 2009"; strftime would speak the language of the machine."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def day_and_date(day: date) -> str:
    """A date as "Saturday 14 June 2025"."""
    return f"{WEEKDAYS[day.weekday()]} {long_date(day)}"


@cache  # a few hundred names, which every page links to
def slug(name: str) -> str:
    """A name as it stands in a web address: ASCII, lower case, hyphens."""
    plain = unicodedata.normalize("NFKD", name.translate(_LETTERS_WITHOUT_DECOMPOSITION))
    letters = "".join(c for c in plain.lower() if (c.isascii() and c.isalnum()) or c in " -")
    return "-".join(letters.replace("-", " ").split())
