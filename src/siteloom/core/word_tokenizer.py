"""Split texts into the words that search uses: without case and accents, in any script.

Both databases index only these words, so that they return the same results.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Text in these scripts has no blanks between words, or words with endings that nobody searches for. Each
# character is a word of its own, and a search term matches a sequence of them.
_WORDS_OF_ONE_LETTER = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # marks of repetition, the Chinese nought
    (0x3040, 0x312F),  # Japanese syllables, Bopomofo
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),  # Chinese characters
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),  # Korean syllables
    (0xF900, 0xFAFF),
    (0xFF66, 0xFFDC),  # half-width forms
    (0x20000, 0x3FFFF),
)
_LAST_WITH_MARKS = 0xFFFF  # later ones belong to scripts without web pages
_ACCENTS = dict.fromkeys(range(0x0300, 0x0370))
# Letters that are not another letter with an accent, but are typed as one by people without them.
_LIKE = str.maketrans(
    {
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ħ": "h",
        "\N{LATIN SMALL LETTER DOTLESS I}": "i",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
    }
)
_LONGEST = 64  # letters; longer ones are not words, and databases refuse to index far longer ones
_LONGEST_WITH_MARKS = 2 * _LONGEST
_CACHED_WORDS = 100_000

_plain_word = re.compile("[0-9a-z]+")

VERSION = 2
"""Changes when the same text may be split into other words than before."""


class Word(NamedTuple):
    """A word of a text: its position, and its search terms; usually one."""

    start: int
    end: int
    terms: tuple[str, ...]


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text in their order."""
    for match in _any_word().finditer(text):
        if term_variants := _folded(match[0][:_LONGEST_WITH_MARKS]):
            yield Word(match.start(), match.end(), term_variants)


def terms(text: str) -> list[str]:
    """Return the search terms of a text in their order."""
    if text.isascii():
        return [word[:_LONGEST] for word in _plain_word.findall(text.lower())]
    return [term for word in _any_word().findall(text) for term in _folded(word[:_LONGEST_WITH_MARKS])]


@lru_cache(_CACHED_WORDS)
def _folded(word: str) -> tuple[str, ...]:
    if word.isascii():
        return (word.lower()[:_LONGEST],)
    letters = unicodedata.normalize("NFKD", word).casefold().translate(_ACCENTS).translate(_LIKE)
    # A fraction such as one half is split into two numbers.
    return tuple(part[:_LONGEST] for part in _any_word().findall(unicodedata.normalize("NFC", letters)))


@cache
def _any_word() -> re.Pattern[str]:
    single = "".join(f"{chr(first)}-{chr(last)}" for first, last in _WORDS_OF_ONE_LETTER)
    # Marks are part of their letter: Indian scripts write vowels as marks.
    marks = "".join(
        re.escape(chr(code))
        for code in range(0x0300, _LAST_WITH_MARKS)
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
    )
    return re.compile(rf"[^\W_](?<=[{single}])[{marks}]*|[^\W_{single}]+(?:[{marks}]+[^\W_{single}]*)*")
