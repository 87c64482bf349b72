"""Numbers, names and texts as sentences tell them, in the terminal and in reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES_TOLD = 8  # in a sentence that people still read to its end
_LETTERS_TOLD = 400  # of a word, which may be a URL
_LETTERS_AT_END = 20  # with what closes a quotation or the sentence
_LONG_WORD = re.compile(rf"\S{{{_LETTERS_TOLD + _LETTERS_AT_END + 1},}}")
_LONGEST_SENTENCE = 8_000


def plural(count: int, one: str, more: str | None = None) -> str:
    """A number with the word for what is counted."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def percent(share: float) -> str:
    """A share in words; nothing and everything are said only if they are."""
    if 0 < share < 0.01:
        return "less than 1 %"
    if 0.99 < share < 1:
        return "more than 99 %"
    return f"{share:.0%}".replace("%", " %")


def shortened(text: str, length: int) -> str:
    """A text, cut if it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def bounded(sentence: str) -> str:
    """A sentence that people still read, whatever it quotes: what is too long in it is cut in its middle."""
    told = _LONG_WORD.sub(lambda word: f"{word[0][:_LETTERS_TOLD]}…{word[0][-_LETTERS_AT_END:]}", sentence)
    if len(told) <= _LONGEST_SENTENCE:
        return told
    return f"{told[: _LONGEST_SENTENCE // 2]} … {told[-_LONGEST_SENTENCE // 2 :]}"


def some_names(names: Sequence[str]) -> str:
    """The first few names, in one line."""
    return ", ".join(names[:_NAMES_TOLD]) + (", ..." if len(names) > _NAMES_TOLD else "")


def quoted(value: object) -> str:
    """A value as a sentence can quote it."""
    told = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return told if len(told) <= 80 else f"{told[:77]}..."
