"""How similar a known value and a text of a page are, whatever kind of value it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from siteloom.redundancy.folding import folded, telling_key

if TYPE_CHECKING:
    from siteloom.redundancy.weak import WeakIndex

SAME_MONTH = 0.8
SAME_YEAR = 0.6
"""How similar two dates are of which one says less, and the other agrees with what it says."""

_ENDING = re.compile(r"\.\w{2,5}$")
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_YEAR = re.compile(r"[12]\d{3}")


def value_similarity(seed_value: str, text: str, index: WeakIndex) -> float:
    """How similar a seed's value and a text are, from 0 to 1.

    Values of a kind that keys tell (see `telling_key`) are the same or not similar at all: two phones may
    share nine digits of ten. Other texts are as similar as their words, which may stand in another order.
    """
    if (known := folded(seed_value)) and known == folded(text):
        return 1.0
    seed_key = telling_key(seed_value)
    text_key = telling_key(text) if seed_key is not None else None
    if seed_key is not None and text_key is not None:
        told = _of_keys(seed_key, text_key)
        if told is not None:
            return told
    return index.similarity(seed_value, text)


def _of_keys(x: str, y: str) -> float | None:
    """How similar what two keys say is; None if they are of kinds that cannot be compared."""
    if x == y:
        return 1.0
    (x_kind, x_said), (y_kind, y_said) = x.split(":", 1), y.split(":", 1)
    kinds = {x_kind, y_kind}
    if kinds == {"date"}:
        return _of_dates(x_said, y_said)
    if kinds == {"date", "number"}:
        year = x_said if x_kind == "number" else y_said
        return _of_dates(x_said, y_said) if _YEAR.fullmatch(year) else None
    if kinds == {"number", "price"}:  # a table of prices need not name their currency
        return float(x_said == y_said)
    return 0.0 if len(kinds) == 1 else None


def _of_dates(x: str, y: str) -> float:
    """Dates as `2008-05-01`, `2008-05` or `2008`: one that says less agrees with all that begin like it."""
    less, more = sorted((x, y), key=len)
    if not f"{more}-".startswith(f"{less}-"):
        return 0.0
    return SAME_YEAR if len(less) == len("2008") else SAME_MONTH


def file_words(address: str) -> str:
    """What the address of an image says in words: the name of its file, folded."""
    try:
        name = unquote(urlsplit(address.strip()).path).rsplit("/", 1)[-1]
    except ValueError:  # http://[ and the like
        return ""
    return folded(_CAMEL_CASE.sub(" ", _ENDING.sub("", name)))
