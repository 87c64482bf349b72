"""What a built-in site gives out: a page together with the truth about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.core.model import Page

T = TypeVar("T")
Kind = Literal["restaurant", "event", "list"]


@dataclass(frozen=True, slots=True)
class BuiltinPage:
    """A generated page and the values a person sees on it, white space normalised.

    A detail page has `truth`, attribute to values, an empty tuple where the page
    says nothing, and `entity`, the same key wherever the same thing is described.
    A list page has `records`, one per card in page order, sponsored cards included.
    """

    page: Page
    kind: Kind
    truth: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    records: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    entity: str | None = None


def values(*candidates: str | None) -> tuple[str, ...]:
    """The values that are there, as truth holds them."""
    return tuple(candidate for candidate in candidates if candidate)


def even_parts(items: Sequence[T], longest: int) -> list[Sequence[T]]:
    """The items cut into as few parts as will do, all of about the same length."""
    count = -(-len(items) // longest)
    length = -(-len(items) // count)
    return [items[start : start + length] for start in range(0, len(items), length)]
