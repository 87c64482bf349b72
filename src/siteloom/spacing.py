"""Choosing some of many, from all over."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def evenly_spaced(items: Sequence[T], most: int) -> list[T]:
    """All items, or as many of them as may be, evenly spaced."""
    count = min(len(items), most)
    return [items[len(items) * number // count] for number in range(count)]
