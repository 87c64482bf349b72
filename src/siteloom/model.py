"""The values that cross from one stage to the next: frozen, picklable, free of behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Page:
    """One HTML document as it was fetched.

    `charset` is what the HTTP header said, if it said anything; what the
    document itself says is found out when it is parsed.
    """

    url: str
    html: bytes
    fetched_at: datetime | None = None
    charset: str | None = None

    def __post_init__(self) -> None:
        html: object = self.html  # callers that are not type-checked pass text
        if not isinstance(html, bytes):
            kind = type(html).__name__
            raise TypeError(f"Page.html must be bytes, not {kind}: use Page.from_text for decoded text")

    @classmethod
    def from_text(cls, url: str, text: str, fetched_at: datetime | None = None) -> Page:
        """A page whose HTML is already decoded; lone surrogates become question marks."""
        return cls(url, text.encode("utf-8", "replace"), fetched_at, "utf-8")


@dataclass(frozen=True, slots=True)
class Resource:
    """A stylesheet or image of a page, kept so that the page can be shown as it looked."""

    url: str
    body: bytes
    media_type: str
    fetched_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A page that gave nothing, and why.

    `url` is the page's address, or the place in the source where no address
    could be read. `reason` is one of a few fixed phrases, so that failures can
    be counted; `detail` is for the person who looks at this one.
    """

    url: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a source that is no page and was not meant to be one."""

    url: str
    reason: str
