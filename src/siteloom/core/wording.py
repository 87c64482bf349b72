"""Format numbers, names and texts for sentences, in the terminal and in reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LISTED_NAMES = 8  # more would make a sentence hard to read
_WORD_START = 400  # characters of a long word, such as a URL, that are shown
_WORD_END = 20  # characters of its end, with the closing quotation mark or full stop
_LONG_WORD = re.compile(rf"\S{{{_WORD_START + _WORD_END + 1},}}")
_LONGEST_SENTENCE = 8_000


def plural(count: int, singular: str, plural_noun: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {singular if count == 1 else plural_noun or singular + 's'}"


def percent(share: float) -> str:
    """Format a share in percent; "0" and "100" only stand for exactly none and all."""
    if 0 < share < 0.01:
        return "less than 1 %"
    if 0.99 < share < 1:
        return "more than 99 %"
    return f"{share:.0%}".replace("%", " %")


def shortened(text: str, length: int) -> str:
    """Shorten a text to a length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def bounded(sentence: str) -> str:
    """Shorten a sentence, whatever it quotes: long words are cut in the middle, and so is a long sentence."""
    shortened_words = _LONG_WORD.sub(lambda word: f"{word[0][:_WORD_START]}…{word[0][-_WORD_END:]}", sentence)
    if len(shortened_words) <= _LONGEST_SENTENCE:
        return shortened_words
    return f"{shortened_words[: _LONGEST_SENTENCE // 2]} … {shortened_words[-_LONGEST_SENTENCE // 2 :]}"


def some_names(names: Sequence[str]) -> str:
    """Join the first few names on one line."""
    return ", ".join(names[:_LISTED_NAMES]) + (", ..." if len(names) > _LISTED_NAMES else "")


def quoted(value: object) -> str:
    """Quote a value for a sentence."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
