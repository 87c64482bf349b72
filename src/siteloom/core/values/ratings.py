"""Ratings, as they are written, drawn and named."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from siteloom.core.values.numbers import number
from siteloom.core.values.value_types import Rating

MAX_LENGTH = 300
_BESTS = frozenset(map(Decimal, (3, 4, 5, 6, 7, 8, 10, 20, 100)))
"""Scales in use; "3 of 12 people" is none."""

_NUMBER = r"(?<![\d.,/-])(\d{1,3}(?:[.,]\d{1,2})?)"
_OF = re.compile(
    rf"{_NUMBER}\s?(?:stars?\s)?(?:/|out of|of|von|sur|de|su|van|av|af|z|из)\s?(\d{{1,3}}(?:[.,]0)?)"
    r"(?![/.,-]?\d)",
    re.IGNORECASE,
)
_PERCENT = re.compile(rf"\D*{_NUMBER}\s?%\D*")
_WIDTH = re.compile(r"(?<![\w-])width\s{0,3}:\s{0,3}(\d{1,3}(?:\.\d{1,6})?)\s{0,3}%", re.IGNORECASE)
_STYLE = re.compile(r"(?:width|height|margin|padding|position|left|top)[a-z-]*\s{0,3}:", re.IGNORECASE)
_DRAWN = re.compile(r"\s*([★⭐]{0,10})\s*([☆✩]{0,10})\s*")
_VOTES = re.compile(r"\s*\([^()]*\)\s*$")  # 4.5 (123 reviews)

_IMAGE = re.compile(r"([^/?#\s]+)\.(?:gif|png|jpe?g|webp|svg)(?:[?#]\S*)?$", re.IGNORECASE)
_KEY = r"(?:(?:stars?|ratings?|rated|rate|score|bubbles?)[-_]?)+"
# The value behind its word or before it: rating-4, stars45, icon-star-4-5, 4halfstars, 4.5stars.
_BEHIND = re.compile(rf"(?<![a-z])({_KEY})(\d{{1,2}})(?:[-_.]?(half)|[-_.](\d))?(?![\da-z])(?![-_.]\d)")
_BEFORE = re.compile(rf"(?<![\w.-])(\d)(?:[-_.]?(half)|[-_.](\d))?[-_]?{_KEY}(?![a-z\d])")
_OUT_OF = re.compile(r"(?<!\d)(\d{1,2})[-_](?:out[-_])?of[-_](\d{1,2})(?!\d)")
_PARTS = re.compile(r"[-_\s]+")
_NUMBER_WORDS = {
    word: Decimal(value)
    for value, word in enumerate("zero one two three four five six seven eight nine ten".split())
}
_HALF = Decimal("0.5")


def rating(text: str) -> Rating | None:
    """The rating that a text, a style, a class or an image's file name tells."""
    return _read(text) if len(text) <= MAX_LENGTH else None


@lru_cache(maxsize=65_536)  # there are few, and each stands on many pages
def _read(text: str) -> Rating | None:
    if width := _WIDTH.search(text):
        return _rating(width[1], "100")
    if told := told_rating(text):
        return told
    if _STYLE.search(text):
        return None
    if percent := _PERCENT.fullmatch(text):
        return _rating(percent[1], "100")
    value = number(_VOTES.sub("", text))
    return Rating(value) if value is not None and 0 <= value <= 100 else None


def told_rating(text: str) -> Rating | None:
    """A rating that can be nothing else, as `4.5` alone can."""
    if len(text) > MAX_LENGTH:
        return None
    if _WIDTH.search(text):
        return rating(text)
    if image := _IMAGE.search(text):
        return _named(image[1])
    return said_rating(text) or _named(text)


def said_rating(text: str) -> Rating | None:
    """A rating that is said with the most that could be, or drawn with stars."""
    return _of(text) or _drawn(text) if len(text) <= MAX_LENGTH else None


def _rating(value: str, best: str) -> Rating | None:
    number, most = Decimal(value.replace(",", ".")), Decimal(best.replace(",", "."))
    return Rating(number, most) if number <= most else None


def _of(text: str) -> Rating | None:
    matches = _OF.findall(text)
    if len(matches) != 1:
        return None
    value, best = matches[0]
    most = Decimal(best.replace(",", ".")).to_integral_value()
    return _rating(value, str(most)) if most in _BESTS else None


def _drawn(text: str) -> Rating | None:
    """Stars as characters; where none is empty, there is no telling how many there could be."""
    match = _DRAWN.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        return None
    full, empty = len(match[1]), len(match[2])
    return Rating(Decimal(full), Decimal(full + empty) if empty else None)


def _named(name: str) -> Rating | None:
    """A rating in a class or in the name of a file."""
    name = name.lower()
    if match := _OUT_OF.search(name):
        return _rating(match[1], match[2]) if re.search(_KEY, name) else None
    values = {_behind(match) for match in _BEHIND.finditer(name)}
    values |= {_with_part(match[1], match[2], match[3]) for match in _BEFORE.finditer(name)}
    values |= _in_words(name)
    if len(values) != 1:  # none, or as many as readings
        return None
    value = values.pop()
    return None if value is None else Rating(value)


def _behind(match: re.Match[str]) -> Decimal | None:
    key, digits, half, part = match.groups()
    if len(digits) == 1 or digits == "10":
        return _with_part(digits, half, part)
    # 45 is 4.5 and can be nothing else; 40 is 4.0 where stars are counted, but may be per cent elsewhere.
    tenths = int(digits)
    if half or part or tenths > 50 or tenths % 5 or (tenths % 10 == 0 and not re.search("star|bubble", key)):
        return None
    return Decimal(tenths) / 10


def _with_part(digits: str, half: str | None, part: str | None) -> Decimal | None:
    value = Decimal(digits)
    if half or part == "5":
        # stars-5-5 is five of five, and then stars-4-5 is four; but only stars-5-5 gives itself away.
        return None if digits == "5" else value + _HALF
    return value if part in {None, "0"} else None


def _in_words(name: str) -> set[Decimal | None]:
    """Numbers written out: `star-rating Three`, `rating-three`."""
    if not re.search(r"star|rating|rated", name):
        return set()
    alone = name.split()
    beside = [part for token in alone if re.search(_KEY, token) for part in _PARTS.split(token)]
    return {_NUMBER_WORDS[word] for word in {*alone, *beside} if word in _NUMBER_WORDS}
