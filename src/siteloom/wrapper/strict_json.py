"""Values of plain types in a wrapper file, read strictly: what they are not is said in a sentence.

`where` is the place of a value in the file, as a person would name it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from siteloom.errors import WrapperError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Read = TypeVar("Read")


def without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """The keys and values of an object, to be given to `json.loads`: a key that stands twice is refused."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise unreadable(f"the key {quoted(key)}", "stands twice in the same object")
        found[key] = value
    return found


def an_object(value: object, where: str, required: str = "", optional: str = "") -> dict[str, Any]:
    """An object with the keys that it must and may have; without any named, it may have all."""
    if not isinstance(value, dict):
        raise unreadable(where, "must be an object")
    must = required.split()
    may = [*must, *optional.split()]
    for key in must:
        if key not in value:
            raise unreadable(where, f"lacks {key!r}")
    for key in value:
        if may and key not in may:
            raise unreadable(where, f"has the unknown key {quoted(key)}")
    return value


def a_list(value: object, where: str, read: Callable[[object, str], Read]) -> tuple[Read, ...]:
    """The items of a list, each read with its number from 1 on as its place."""
    if not isinstance(value, list):
        raise unreadable(f"{where}s", "must be a list")
    return tuple(read(item, f"{where} {number}") for number, item in enumerate(value, 1))


def a_text(value: object, where: str) -> str:
    """A value that must be a text."""
    if not isinstance(value, str):
        raise unreadable(where, "must be a text")
    return value


def a_choice(known: dict[str, Any], key: str, choices: Sequence[str], where: str) -> str:
    """The text of a key, which must be one of some."""
    value: object = known[key]
    if not isinstance(value, str) or value not in choices:
        raise unreadable(where, f"has the unknown {key} {quoted(value)}, for there are {', '.join(choices)}")
    return value


def a_flag(known: dict[str, Any], key: str, where: str) -> bool | None:
    """True or false, or None where the key is left out."""
    value: object = known.get(key)
    if key in known and not isinstance(value, bool):
        raise unreadable(where, f"must have true or false as {key!r}")
    return cast("bool | None", value)


def a_count(known: dict[str, Any], key: str, where: str, least: int = 0) -> int:
    """The whole number of a key, from the least on."""
    value: Any = known[key]
    if not is_integer(value) or value < least:
        raise unreadable(where, f"must have a whole number from {least} on as {key!r}")
    return int(value)


def a_share(known: dict[str, Any], key: str, where: str) -> float:
    """The number of a key, from 0 to 1."""
    value: Any = known[key]
    if not (is_integer(value) or isinstance(value, float)) or not 0 <= value <= 1:
        raise unreadable(where, f"must have a number from 0 to 1 as {key!r}")
    return float(value)


def a_number(known: dict[str, Any], key: str, where: str) -> float:
    """The finite number of a key."""
    value: Any = known[key]
    try:
        number = float(value) if is_integer(value) or isinstance(value, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise unreadable(where, f"must have a number as {key!r}")
    return number


def is_integer(value: object) -> bool:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def quoted(value: object) -> str:
    """A value as a sentence can quote it."""
    told = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return told if len(told) <= 80 else f"{told[:77]}..."


def unreadable(where: str, what: str) -> WrapperError:
    """The error that a wrapper cannot be read, because of what is wrong at a place."""
    return WrapperError(f"The wrapper cannot be read: {where} {what}.")
