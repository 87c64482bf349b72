"""One number in a text, however its thousands and decimals are separated."""

# ruff: noqa: RUF001 - signs and letters that look like others are what is read here

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

MAX_LENGTH = 200
"""A longer text is prose: the one number in it is not its value."""

# Digits with one separator at a time between them, so that no text makes the search go back over itself.
_RUN = re.compile(r"\d+(?:[.,'’ \u00a0\u2009\u202f]\d+)*")
_SPACES = str.maketrans({"\u00a0": " ", "\u2009": " ", "\u202f": " ", "’": "'"})

_GROUPED = re.compile(
    r"""
      \d{1,3} (?: (?:[ ]\d{3})+ | (?:'\d{3})+ ) (?:[.,]\d+)?    # 1 234,56   1'234.50
    | \d{1,3} (?:,\d{3})+ (?:\.\d+)?                            # 1,234      1,234.56   1,234,567
    | \d{1,3} (?:\.\d{3})+ ,\d+                                 # 1.234,56
    | \d{1,3} (?:\.\d{3}){2,}                                   # 1.234.567
    | \d{1,2} (?:,\d{2})+ ,\d{3} (?:\.\d+)?                     # 1,23,456.00, as in India
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(r"\d*(?:[.,]\d+)?")
DOT_AND_THREE = re.compile(r"[1-9]\d{0,2}\.\d{3}")

UNITS = frozenset(
    """
    % ‰ ° °c °f g gr gram grams gramm kg kgs kilo mg µg lb lbs oz tons
    m mm cm km µm nm in inch inches ft feet foot yd yard yards mi mile miles
    m² m³ cm² cm³ km² ft² sqft sqm qm ha acre acres
    l ml cl dl ltr liter litre liters litres gal pt qt
    sec secs second seconds min mins minute minutes minuten h hr hrs hour hours std stunden
    day days tage week weeks month months year years yrs jahre
    w kw kwh wh v mv ma mah hz khz mhz ghz db kb mb gb tb bit bits dpi px mp
    kcal cal kj bar psi pa hpa mph kmh km/h m/s rpm mpg
    page pages seiten piece pieces pcs pc stk stück
    """.split()
)
"""Units that may follow a number directly; the letter of `12a` is not one."""

_SCALE = re.compile(
    r"""
    [ \u00a0\u202f]? (?: [kKM](?![\w²³/]) | [万萬億亿千百]
    | (?i: (?:million|billion|milliard|trillion)[^\W\d_]* | (?: mill|mio|mln|mn|mil|bn|mrd|mld|thousand
    | tausend|tsd|lakhs?|crores?|dozens?|dutzend|млн|млрд|тыс )(?![^\W\d_]) ) )
    """,
    re.VERBOSE,
)
"""Scales that multiply the number: 5k, 1.2 million."""

_INEXACT = tuple("<>≤≥±~≈")
_LEADING_POINT = re.compile(r"(?:^|[\s€$£¥-])[.,]$")  # .5
_FRACTIONS = re.compile(r"[¼-¾⅐-⅞]|\d\s*⁄\s*\d")
_ATTACHED = re.compile(r"[^\W\d_]+[²³]?(?:/[a-z]+)?|[²³]")


class NumberMatch(NamedTuple):
    """A number in a text: its position, its digits and separators, and whether it is negative."""

    start: int
    end: int
    digits: str
    negative: bool


def number(text: str) -> Decimal | None:
    """Read the only number of a text, which may have words and a unit around it; None if it has several."""
    match = only_number(text)
    if match is None or not _stands_alone(text, match):
        return None
    # 1.234 is a thousand in Berlin and a bit more than one in Boston.
    return None if DOT_AND_THREE.fullmatch(match.digits) else value_of(match)


def only_number(text: str) -> NumberMatch | None:
    """Return the number of a text that has exactly one, without a mark of inexactness."""
    if len(text) > MAX_LENGTH or _FRACTIONS.search(text):
        return None
    runs = list(_RUN.finditer(text))
    if len(runs) != 1:
        return None
    start, end = runs[0].span()
    if text[:start].rstrip().endswith(_INEXACT) or text[end : end + 1] == "+" or _SCALE.match(text, end):
        return None
    digits = runs[0][0].translate(_SPACES)
    if _LEADING_POINT.search(text, 0, start):
        start, digits = start - 1, f"0.{digits}"
    return NumberMatch(start, end, digits, _has_minus(text, start))


def value_of(match: NumberMatch, *, dot_groups: bool = False) -> Decimal | None:
    """Return the value of digits and separators; with `dot_groups`, `1.234` is a thousand."""
    digits = match.digits
    if dot_groups and DOT_AND_THREE.fullmatch(digits):
        digits = digits.replace(".", "")
    elif _GROUPED.fullmatch(digits) and not digits.startswith("0"):
        digits = _without_groups(digits)
    elif _PLAIN.fullmatch(digits):
        digits = digits.replace(",", ".")
    else:
        return None
    value = Decimal(digits)
    return -value if match.negative else value


def _without_groups(digits: str) -> str:
    """Remove the separators of groups; a last separator unlike the others is the decimal point."""
    separators = [character for character in digits if not character.isdigit()]
    last_separator = separators[-1]
    if last_separator in ".," and separators.count(last_separator) == 1 and len(separators) > 1:
        integer, _, decimals = digits.rpartition(last_separator)
    else:
        integer, decimals = digits, ""
    return "".join(filter(str.isdigit, integer)) + (f".{decimals}" if decimals else "")


def _has_minus(text: str, start: int) -> bool:
    """Return whether a minus precedes a number, without a word or number before it as in `AB-12`."""
    prefix = text[:start].rstrip(" \u00a0€$£¥")
    return prefix.endswith(("-", "−", "–")) and (len(prefix) == 1 or prefix[-2] in " \u00a0(:€$£¥")


def _stands_alone(text: str, match: NumberMatch) -> bool:
    """Return whether the digits are a separate number, not part of a name such as `A4` or `12a`."""
    preceding = text[match.start - 1] if match.start else " "
    if preceding.isalpha() or preceding in "_.,/":
        return False
    if preceding in "-−–" and not match.negative:
        return False
    attached = _ATTACHED.match(text, match.end)
    if attached is not None:
        return attached[0].lower() in UNITS
    return text[match.end : match.end + 1] not in {"_", "/", "-"}
