"""Convert values of tables to texts as a page might show them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


_WHOLE_BELOW = 1e15  # floats beyond that are no longer exact

# What tables write for missing values, in any case. Not "na", which is Namibia, nor 0 and "unknown".
_MISSING_VALUES = frozenset(
    ("n/a", "#n/a", "<na>", "nan", "null", "none", "-", "--", "\N{EN DASH}", "\N{EM DASH}")
)


def texts_of(values: Mapping[Any, object]) -> dict[str, tuple[str, ...]]:
    """Return the distinct texts of all values by attribute, without empty ones."""
    texts: dict[str, tuple[str, ...]] = {}
    for key, value in values.items():
        name = shown_text(key)
        if not name:
            continue
        if isinstance(value, str | int | float) and name not in texts:  # the common case
            if text := value_text(value):
                texts[name] = (text,)
            continue
        nested_texts: dict[str, dict[str, None]] = {}  # of each attribute, in order
        for inner, text in _within(name, value):
            nested_texts.setdefault(inner, dict.fromkeys(texts.get(inner, ())))[text] = None
        texts |= {inner: tuple(values_by_text) for inner, values_by_text in nested_texts.items()}
    return texts


def _within(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield all texts inside a value, each with the name of its attribute."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if inner := shown_text(key):
                yield from _within(f"{name}.{inner}", item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _within(name, item)
    elif isinstance(value, set | frozenset):
        yield from sorted(text for item in value for text in _within(name, item))
    elif getattr(value, "ndim", 0):  # a NumPy array or similar
        yield from _within(name, list(value))  # type: ignore[call-overload]
    elif text := value_text(value):
        yield name, text


def value_text(value: object) -> str:
    """Return the text of a value; empty for one that stands for a missing value."""
    text = shown_text(value)
    return "" if text.casefold() in _MISSING_VALUES else text


def shown_text(value: object) -> str:
    """Return a value as a page might show it; empty if it is missing or cannot be shown."""
    if isinstance(value, str):
        return normalize_blanks(value)
    if _is_missing(value):
        return ""
    try:
        return normalize_blanks(_text_of_kind(value))
    except (ValueError, ArithmeticError):  # a number of thousands of digits
        return ""


def _is_missing(value: object) -> bool:
    """Return whether a value is None, or a missing value of a table, which is not equal to itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # some refuse to be compared
        return True


def _text_of_kind(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Real():
            number = float(value)
            if not math.isfinite(number):
                return ""
            is_whole = number.is_integer() and abs(number) < _WHOLE_BELOW
            return str(int(number)) if is_whole else str(value)
        case Decimal():
            return f"{value:f}" if value.is_finite() else ""
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case bytes():
            return _decoded(value)
    text = str(value)
    return text.lower() if text in ("True", "False") else text  # the truths of NumPy


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:  # an image, perhaps
        return ""


def normalize_blanks(text: str) -> str:
    """Replace runs of white space by single blanks."""
    return " ".join(text.split())
