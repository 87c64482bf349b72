"""Many things, some at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_T = TypeVar("_T")


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """The same items in lists of a size; the last may be shorter."""
    following = iter(items)
    while batch := list(islice(following, size)):
        yield batch
