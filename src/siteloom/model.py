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


@dataclass(frozen=True, slots=True)
class TemplatePath:
    """A path that most pages of a cluster have; with `text`, it goes on to a text that they share."""

    tags: str
    text: str | None
    support: int

    def __str__(self) -> str:
        """The tags, and behind them the text in quotes."""
        return self.tags if self.text is None else f'{self.tags}/"{self.text}"'


@dataclass(frozen=True, slots=True)
class Template:
    """What the pages of a cluster share, in the order in which it stands on them.

    `pages` is how many pages were looked at; the support of a path is how many of them have it.
    """

    essential: tuple[TemplatePath, ...]
    pages: int

    @property
    def paths(self) -> tuple[str, ...]:
        """The essential paths."""
        return tuple(str(path) for path in self.essential)

    @property
    def text(self) -> tuple[str, ...]:
        """The template text: the texts that most pages have at the same path."""
        return tuple(path.text for path in self.essential if path.text is not None)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Pages that were made from one template.

    `members` are indices into the pages that were clustered, ascending. `mask`
    is the signature of most of them with its wildcards (`**`), `mask_pages` how
    many pages chose it, `accepted` all signatures that occur, in hexadecimal.
    `importance` grows with the size and with how much the pages tell.
    """

    id: str
    site: str
    members: tuple[int, ...]
    mask: str
    mask_pages: int
    accepted: tuple[str, ...]
    importance: float
    url_patterns: tuple[str, ...]
    template: Template

    @property
    def size(self) -> int:
        """The number of pages."""
        return len(self.members)


@dataclass(frozen=True, slots=True)
class Clustering:
    """The clusters of some pages, those of a site together, the largest first.

    `plain_coverage` is the share of pages that the method as published puts
    into clusters, `coverage` the share after leftovers have joined.
    """

    clusters: tuple[Cluster, ...]
    unclustered: tuple[int, ...]
    plain_coverage: float
    coverage: float
