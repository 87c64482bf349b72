"""How far a crawl has come: which addresses it knows, and what became of those that it has fetched."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """An address that was found, and how many links away from those that were asked for; 0 for these.

    `chain` counts the last of these links: those between pages of one shape that led to nothing else.
    """

    url: str
    clicks: int
    chain: int = 0


class Links(NamedTuple):
    """Addresses that are known from now on."""

    found: tuple[Found, ...]


class Done(NamedTuple):
    """An address that need not be fetched again.

    `at` is where a page was in the end, empty if there was none; `is_kept` says whether it is one of those
    that are wanted.
    """

    url: str
    at: str
    is_kept: bool


class Progress(NamedTuple):
    """What is known from an earlier part of the same crawl."""

    found: tuple[Found, ...] = ()
    done: tuple[Done, ...] = ()

    @property
    def pages(self) -> int:
        """How many pages were fetched and kept."""
        return sum(one.is_kept for one in self.done)
