"""Read ratings from texts, characters of stars, styles, classes and file names."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from siteloom.core.values.numbers import number
from siteloom.core.values.value_types import Rating

MAX_LENGTH = 300
_BESTS = frozenset(map(Decimal, (3, 4, 5, 6, 7, 8, 10, 20, 100)))
"""Scales in use; "3 of 12 people" is not a rating."""

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
# The value after its key word or before it: rating-4, stars45, icon-star-4-5, 4halfstars, 4.5stars.
_VALUE_AFTER_KEY = re.compile(
    rf"(?<![a-z])({_KEY})(\d{{1,2}})(?:[-_.]?(half)|[-_.](\d))?(?![\da-z])(?![-_.]\d)"
)
_VALUE_BEFORE_KEY = re.compile(rf"(?<![\w.-])(\d)(?:[-_.]?(half)|[-_.](\d))?[-_]?{_KEY}(?![a-z\d])")
_OUT_OF = re.compile(r"(?<!\d)(\d{1,2})[-_](?:out[-_])?of[-_](\d{1,2})(?!\d)")
_WORD_SEPARATORS = re.compile(r"[-_\s]+")
_NUMBER_WORDS = {
    word: Decimal(value)
    for value, word in enumerate("zero one two three four five six seven eight nine ten".split())
}
_HALF = Decimal("0.5")


def rating(text: str) -> Rating | None:
    """Read the rating from a text, a style, a class or an image's file name."""
    return _read(text) if len(text) <= MAX_LENGTH else None


@lru_cache(maxsize=65_536)  # there are few, and each occurs on many pages
def _read(text: str) -> Rating | None:
    if width := _WIDTH.search(text):
        return _rating(width[1], "100")
    if unambiguous := unambiguous_rating(text):
        return unambiguous
    if _STYLE.search(text):
        return None
    if percent := _PERCENT.fullmatch(text):
        return _rating(percent[1], "100")
    value = number(_VOTES.sub("", text))
    return Rating(value) if value is not None and 0 <= value <= 100 else None


def unambiguous_rating(text: str) -> Rating | None:
    """Read a rating that cannot be anything else, unlike `4.5` alone."""
    if len(text) > MAX_LENGTH:
        return None
    if _WIDTH.search(text):
        return rating(text)
    if image := _IMAGE.search(text):
        return _rating_in_name(image[1])
    return explicit_rating(text) or _rating_in_name(text)


def explicit_rating(text: str) -> Rating | None:
    """Read a rating that is given with its maximum, or drawn with stars."""
    return _rating_out_of(text) or _stars(text) if len(text) <= MAX_LENGTH else None


def _rating(value: str, best: str) -> Rating | None:
    number, maximum = Decimal(value.replace(",", ".")), Decimal(best.replace(",", "."))
    return Rating(number, maximum) if number <= maximum else None


def _rating_out_of(text: str) -> Rating | None:
    matches = _OF.findall(text)
    if len(matches) != 1:
        return None
    value, best = matches[0]
    maximum = Decimal(best.replace(",", ".")).to_integral_value()
    return _rating(value, str(maximum)) if maximum in _BESTS else None


def _stars(text: str) -> Rating | None:
    """Read stars as characters; if none is empty, the maximum is unknown."""
    match = _DRAWN.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        return None
    full, empty = len(match[1]), len(match[2])
    return Rating(Decimal(full), Decimal(full + empty) if empty else None)


def _rating_in_name(name: str) -> Rating | None:
    """Read a rating from a class or a file name."""
    name = name.lower()
    if match := _OUT_OF.search(name):
        return _rating(match[1], match[2]) if re.search(_KEY, name) else None
    values = {_value_after_key(match) for match in _VALUE_AFTER_KEY.finditer(name)}
    values |= {_with_fraction(match[1], match[2], match[3]) for match in _VALUE_BEFORE_KEY.finditer(name)}
    values |= _number_words(name)
    if len(values) != 1:  # none, or ambiguous
        return None
    value = values.pop()
    return None if value is None else Rating(value)


def _value_after_key(match: re.Match[str]) -> Decimal | None:
    key, digits, half, fraction = match.groups()
    if len(digits) == 1 or digits == "10":
        return _with_fraction(digits, half, fraction)
    # 45 is always 4.5; 40 is 4.0 if stars are counted, but may be percent elsewhere.
    tenths = int(digits)
    if (
        half
        or fraction
        or tenths > 50
        or tenths % 5
        or (tenths % 10 == 0 and not re.search("star|bubble", key))
    ):
        return None
    return Decimal(tenths) / 10


def _with_fraction(digits: str, half: str | None, fraction: str | None) -> Decimal | None:
    value = Decimal(digits)
    if half or fraction == "5":
        # stars-5-5 is five of five, and then stars-4-5 is four; but only stars-5-5 shows that.
        return None if digits == "5" else value + _HALF
    return value if fraction in {None, "0"} else None


def _number_words(name: str) -> set[Decimal | None]:
    """Read numbers written as words: `star-rating Three`, `rating-three`."""
    if not re.search(r"star|rating|rated", name):
        return set()
    separate_words = name.split()
    key_words = [
        word for token in separate_words if re.search(_KEY, token) for word in _WORD_SEPARATORS.split(token)
    ]
    return {_NUMBER_WORDS[word] for word in {*separate_words, *key_words} if word in _NUMBER_WORDS}
