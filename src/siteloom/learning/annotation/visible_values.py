"""Find the visible text of a value that is given in machine-readable form."""

from __future__ import annotations

import datetime as dt
import re
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from siteloom.core.errors import MissingExtra
from siteloom.core.values import typed_value
from siteloom.html.visible_text import normalize, text_nodes, visible_text
from siteloom.learning.induction.tree_walk import LONGEST_TEXT
from siteloom.learning.value_search.text_equality import fold
from siteloom.learning.value_search.value_locations import ValueIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteloom.html.parser import Element

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SHOWN_NUMBER = re.compile(r"\d+(?:[.,'\u00a0\u202f ]\d+)*")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ].*)?")
_PHONE = re.compile(r"[+(]?[0-9][0-9 ().+/\u2010-\u2015-]{5,30}[0-9]")
_NO_DIGIT = re.compile(r"[^0-9]+")
_LEAST_PHONE_DIGITS = 7
_LONGEST_DATE = 60

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


class ShownTexts:
    """The visible texts of a page, for the root of its tree."""

    def __init__(self, root: Element) -> None:
        self._root = root
        self._index = ValueIndex(root)

    def as_shown(self, value: str) -> str | None:
        """Return the text that shows a value on the page; None if there is none.

        It is the value itself if the page has it, or the same number, date, telephone number or URL of this
        site in the page's spelling.
        """
        return next(filter(self._is_shown, (value, *self._other_forms(value))), None)

    def _is_shown(self, text: str) -> bool:
        return bool(fold(text)) and any(len(place.text) <= LONGEST_TEXT for place in self._index.find(text))

    def _other_forms(self, value: str) -> Iterator[str]:
        if _NUMBER.fullmatch(value):
            number = typed_value(value, "number")
            yield from (text for text in self._numbers if typed_value(text, "number") == number)
        if (match := _DATE.fullmatch(value)) is not None:
            try:
                day = dt.date(int(match[1]), int(match[2]), int(match[3]))
            except ValueError:
                return
            yield from _date_spellings(day)
            yield from self._dates_in_words(day)
        elif _PHONE.fullmatch(value):
            yield from (text for text in self._phones if _is_same_phone(text, value))
        elif value.startswith(("http://", "https://")):
            address = urlsplit(value)
            yield value.partition(":")[2]
            if address.path.strip("/"):
                yield address.path + (f"?{address.query}" if address.query else "")

    def _dates_in_words(self, day: dt.date) -> Iterator[str]:
        """Yield the texts that denote this day, in any language."""
        year = str(day.year)
        for node in text_nodes(self._root):
            text = normalize(node.text)
            if year in text and len(text) <= _LONGEST_DATE:
                try:
                    date = typed_value(text, "date")
                except MissingExtra:
                    return
                if (date.date() if isinstance(date, dt.datetime) else date) == day:
                    yield text

    @cached_property
    def _shown(self) -> str:
        return visible_text(self._root)

    @cached_property
    def _numbers(self) -> dict[str, None]:
        return dict.fromkeys(_SHOWN_NUMBER.findall(self._shown))

    @cached_property
    def _phones(self) -> dict[str, None]:
        return dict.fromkeys(_PHONE.findall(self._shown))


def _date_spellings(day: dt.date) -> Iterator[str]:
    """Yield spellings of a day, the unambiguous ones first."""
    month = _MONTHS[day.month - 1]
    names = dict.fromkeys((month, month[:3], f"{month[:3]}.", *(("Sept", "Sept.") if day.month == 9 else ())))
    for name in names:
        for number in dict.fromkeys((f"{day.day}", f"{day.day:02}", f"{day.day}{_ordinal(day.day)}")):
            yield f"{name} {number}, {day.year}"
            yield f"{name} {number} {day.year}"
            yield f"{number} {name} {day.year}"
            yield f"{number}-{name}-{day.year}"
    for separator in "-/.":
        yield f"{day.year}{separator}{day.month:02}{separator}{day.day:02}"
    for first_number, second_number in ((day.month, day.day), (day.day, day.month)):
        for separator in "/.-":
            yield f"{first_number:02}{separator}{second_number:02}{separator}{day.year}"
            yield f"{first_number}{separator}{second_number}{separator}{day.year}"


def _ordinal(day: int) -> str:
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _is_same_phone(phone: str, other_phone: str) -> bool:
    """Return whether two phone numbers are equal except for a country code."""
    short, long = sorted((_NO_DIGIT.sub("", phone), _NO_DIGIT.sub("", other_phone)), key=len)
    short = short.removeprefix("0") if len(short) < len(long) else short
    return len(short) >= _LEAST_PHONE_DIGITS and long.endswith(short) and len(long) - len(short) <= 4
