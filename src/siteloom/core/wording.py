"""Numbers, names and texts as sentences tell them, in the terminal and in reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES_TOLD = 8  # in a sentence that people still read to its end


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


def some_names(names: Sequence[str]) -> str:
    """The first few names, in one line."""
    return ", ".join(names[:_NAMES_TOLD]) + (", ..." if len(names) > _NAMES_TOLD else "")


def quoted(value: object) -> str:
    """A value as a sentence can quote it."""
    told = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return told if len(told) <= 80 else f"{told[:77]}..."
