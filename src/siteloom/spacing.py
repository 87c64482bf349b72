"""Choosing some of many, from all over or the first, to be looked at or told."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

_NAMES_TOLD = 8  # in a sentence that people still read to its end


def evenly_spaced(items: Sequence[T], most: int) -> list[T]:
    """All items, or as many of them as may be, evenly spaced."""
    count = min(len(items), most)
    return [items[len(items) * number // count] for number in range(count)]


def some_names(names: Sequence[str]) -> str:
    """The first few names, in one line."""
    return ", ".join(names[:_NAMES_TOLD]) + (", ..." if len(names) > _NAMES_TOLD else "")
