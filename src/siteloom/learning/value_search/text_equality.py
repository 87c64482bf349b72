"""Texts as people see them: what looks the same is the same, and where one stands in another.

What is compared is folded. Offsets in a folded text are told as those in the text itself, in normal form.
"""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from typing import TYPE_CHECKING

from siteloom.core.errors import UsageError
from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator

# What is written in several ways and looks the same: one character for one.
_ALIKE = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032\u2035\u02bc\uff07"  # single quotes and primes
    "\u201c\u201d\u201e\u201f\u2033\u2036\uff02"  # double ones
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d",  # hyphens, dashes, minus
    "'" * 8 + '"' * 7 + "-" * 10,
)

UNSEEN = "".join(
    map(
        chr,
        [
            *(0x00AD, 0x034F, 0x061C, 0x180E, 0xFEFF),
            *range(0x200B, 0x2010),
            *range(0x202A, 0x202F),
            *range(0x2060, 0x2065),
            *range(0x2066, 0x206A),
        ],
    )
)
"""What has no width: soft hyphens, joiners, marks of direction, byte order marks."""

_ANY_UNSEEN = re.compile(f"[{UNSEEN}]")


def fold(text: str) -> str:
    """The form in which texts are compared: the same for all that looks the same.

    White space is normalised, quotes, primes and dashes are the ASCII ones,
    what has no width is gone, accents are composed; case stays.
    """
    return folded_with_origins(normalize(text))[0]


def folded_with_origins(normal: str) -> tuple[str, array[int] | None]:
    """A folded text, and the offset in the normal form that each of its characters comes from.

    One more offset, at the end, is the length of the normal form. Where there
    are none, all offsets are the same in both.
    """
    if normal.isascii():
        return normal, None
    text = normal.translate(_ALIKE)
    if not _ANY_UNSEEN.search(text) and unicodedata.is_normalized("NFC", text):
        return text, None
    words: list[str] = []
    origins = array("q")
    start = 0
    for word in text.split(" "):  # a blank takes no accent, so each word is folded by itself
        folded, offsets = _fold_word(word)
        if folded:
            if words:
                origins.append(start - 1)
            words.append(folded)
            origins.extend(
                range(start, start + len(word)) if offsets is None else [start + o for o in offsets]
            )
        start += len(word) + 1
    origins.append(len(normal))
    return " ".join(words), origins


def _fold_word(word: str) -> tuple[str, list[int] | None]:
    if word.isascii() or (not _ANY_UNSEEN.search(word) and unicodedata.is_normalized("NFC", word)):
        return word, None
    # Pieces of the word, each composed by itself, with where they begin.
    pieces: list[tuple[str, int]] = []
    for offset, character in enumerate(word):
        if _ANY_UNSEEN.match(character):
            continue
        alone = unicodedata.normalize("NFC", character)
        if pieces:
            last, begin = pieces[-1]
            joined = unicodedata.normalize("NFC", last + character)
            if unicodedata.combining(character) or joined != last + alone:
                pieces[-1] = joined, begin
                continue
        pieces.append((alone, offset))
    return "".join(piece for piece, _ in pieces), [begin for piece, begin in pieces for _ in piece]


def span_in(whole: str, value: str) -> tuple[int, int] | None:
    """From where to where a value stands in the text of its node, which is in normal form; None if nowhere.

    It is at the edges of words if it can be, else anywhere.
    """
    text, origins = folded_with_origins(whole)
    for folded in readings(value):
        start = _best_occurrence(text, folded)
        if start is not None:
            return span_of(whole, origins, start, start + len(folded))
    return None


def readings(value: str) -> list[str]:
    """A value as it is, folded; and as HTML reads it, for people paste `A &amp; B`."""
    folded = fold(value)
    if not folded:
        raise UsageError(
            "A value in an example is blank: give the text that is on the page, or an empty list for none."
        )
    unescaped = fold(html.unescape(value))
    return [folded, unescaped] if unescaped and unescaped != folded else [folded]


def occurrences(text: str, value: str) -> Iterator[int]:
    """Where a value stands in a text, both folded, between edges of words."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if (at == 0 or is_edge(text[at - 1], value[0])) and (
            end == len(text) or is_edge(value[-1], text[end])
        ):
            yield at
        at = text.find(value, at + 1)


def _best_occurrence(text: str, value: str) -> int | None:
    """Where a value stands in one text: at the edges of words if it can be, else anywhere."""
    at = next(occurrences(text, value), None)
    if at is not None:
        return at
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if not (_is_mark(text[at]) or (end < len(text) and _is_mark(text[end]))):
            return at
        at = text.find(value, at + 1)
    return None


def is_edge(left: str, right: str) -> bool:
    """Whether a word may end or begin between two characters."""
    if left.isspace():
        return True
    if _is_mark(right):  # part of the letter before it
        return False
    return not (right.isalnum() and (left.isalnum() or _is_mark(left)))


def _is_mark(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character).startswith("M")


def span_of(whole: str, origins: array[int] | None, start: int, end: int) -> tuple[int, int]:
    """Offsets in a folded text to those in its normal form."""
    if origins is None:
        return start, end
    begin = origins[start]
    # What folding dropped after the value is no part of it.
    return begin, begin + len(whole[begin : origins[end]].rstrip(" " + UNSEEN))
