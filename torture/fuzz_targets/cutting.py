"""Bytes cut into choices, so that a fuzzer that only knows bytes can write structures."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63, -(2**63) - 1, 10**400),
    *(0.5, -0.0, 1e308, float("inf"), float("nan")),
    *("", " ", "x", "0", "\0", "\ud800", "\udfff\ud800", "\u2028", "é" * 300, "a" * 6_000, "\U0001f33f"),
    *("https://a.example/", "http://[", "/html[1]/body[1]", "//*", "$", "**", "(a+)+$", "text", "2024-02-30"),
    *([], {}, [[]], [None], [0, "x"], {"": ""}, {"x": None}, {"a": {"b": ["c"]}}),
)
"""What JSON may have in any place, and no one expects there."""

_DEEPEST = 100
_TOO_DEEP = 100_000


class Cutter:
    """Takes choices off the front of bytes; where nothing is left, each is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return self._at >= len(self._data)

    def number(self, below: int) -> int:
        """A number from 0 on."""
        self._at += 1
        return self._data[self._at - 1] % below if self._at <= len(self._data) else 0

    def choice(self, choices: Sequence[_T]) -> _T:
        """One of at most 256."""
        return choices[self.number(len(choices))]

    def piece(self) -> bytes:
        """So many bytes as the next byte says."""
        size = self.number(256)
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        """A piece as text; half characters are among it, as JSON has them."""
        return self.piece().decode("utf-8", "surrogatepass" if self.number(2) else "replace")

    def rest(self) -> bytes:
        """All that is left."""
        return self._data[self._at :]


def edited(document: Any, cut: Cutter, most: int = 8) -> Any:
    """A copy of what JSON holds, with some of it replaced, taken out, doubled, or put elsewhere."""
    root = [copy.deepcopy(document)]
    with suppress(RecursionError):  # what was nested deeply is not copied any more
        for _ in range(most):
            if cut.is_empty:
                break
            _edit(root, cut)
    return root[0]


def as_json(document: Any) -> str:
    """What JSON holds as text; for what is nested more deeply than can be written, what is so as well."""
    try:
        return json.dumps(document)
    except RecursionError:
        return "[" * _TOO_DEEP


def _edit(root: list[Any], cut: Cutter) -> None:
    holder, key = _place(root, cut)
    match cut.number(6):
        case 0:
            holder[key] = copy.deepcopy(cut.choice(ODD_VALUES))
        case 1 if isinstance(holder, dict):
            del holder[key]
        case 1 if holder is not root:
            holder.pop(key)
        case 2 if isinstance(holder, dict):
            holder[_text(cut)] = holder.pop(key)
        case 2:
            holder.append(copy.deepcopy(holder[key]))
        case 3:
            other, place = _place(root, cut)
            holder[key] = copy.deepcopy(other[place])
        case 4:
            holder[key] = _text(cut)
        case _:
            nested = holder[key]
            for _ in range(1 + cut.number(_DEEPEST)):
                nested = [nested]
            holder[key] = nested
    if not root:
        root.append(None)


def _place(root: list[Any], cut: Cutter) -> tuple[Any, Any]:
    """A list or an object within, and where in it; not within what was nested very deeply by an edit."""
    holder: Any = root
    key: Any = 0
    for _ in range(12):
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or cut.number(5) == 0:
            break
        holder = inner
        key = cut.choice(list(inner)[:256]) if isinstance(inner, dict) else cut.number(min(len(inner), 256))
    return holder, key


def _text(cut: Cutter) -> str:
    try:
        return cut.text()
    except UnicodeDecodeError:
        return "\udcff"


def json_or_edits(data: bytes, documents: Sequence[Any]) -> str:
    """A text that is read as JSON: as it is, or one of some documents with edits that bytes tell."""
    cut = Cutter(data)
    number = cut.number(len(documents) + 1)
    if number == len(documents):
        return cut.rest().decode("utf-8", "replace")
    return as_json(edited(documents[number], cut))
