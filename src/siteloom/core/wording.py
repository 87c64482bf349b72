"""Format numbers, names and texts for sentences, in the terminal and in reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LISTED_NAMES = 8  # more would make a sentence hard to read
_LETTERS_TOLD = 400  # of a word, which may be a URL
_LETTERS_AT_END = 20  # with what closes a quotation or the sentence
_LONG_WORD = re.compile(rf"\S{{{_LETTERS_TOLD + _LETTERS_AT_END + 1},}}")
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
    """A sentence that people still read, whatever it quotes: what is too long in it is cut in its middle."""
    told = _LONG_WORD.sub(lambda word: f"{word[0][:_LETTERS_TOLD]}…{word[0][-_LETTERS_AT_END:]}", sentence)
    if len(told) <= _LONGEST_SENTENCE:
        return told
    return f"{told[: _LONGEST_SENTENCE // 2]} … {told[-_LONGEST_SENTENCE // 2 :]}"


def some_names(names: Sequence[str]) -> str:
    """Join the first few names on one line."""
    return ", ".join(names[:_LISTED_NAMES]) + (", ..." if len(names) > _LISTED_NAMES else "")


def quoted(value: object) -> str:
    """Quote a value for a sentence."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
