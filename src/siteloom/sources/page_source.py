"""The PageSource protocol that every format implements, and the fields of a page in tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from siteloom.core.model import Failure, Page, Resource, Skipped, in_utc
from siteloom.core.storable_text import is_storable
from siteloom.core.urls import oversized_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


# Bytes: the longest name of a host; PostgreSQL refuses to index far longer ones.
_LONGEST_SITE_NAME = 255
_LONGEST_TIME = 100  # characters; usual times have some thirty

SourceItem: TypeAlias = Page | Resource | Failure | Skipped


class PageSource(Protocol):
    """Anything that pages are read from: a file, a folder, a workspace."""

    def read(self) -> Iterator[SourceItem]:
        """Yield all items of the source, from the start at each call."""
        ...

    def shards(self) -> Sequence[PageSource]:
        """Split the source into parts that can be read separately, in order; each part pickles."""
        ...


@dataclass(frozen=True, slots=True)
class Items:
    """A source of given items."""

    items: Sequence[SourceItem]

    def read(self) -> Iterator[SourceItem]:
        """Yield the items."""
        return iter(self.items)

    def shards(self) -> tuple[Items]:
        """All in one: they are few."""
        return (self,)


@runtime_checkable
class SourceWithSites(Protocol):
    """A source that knows the site of each page, which may differ from that of its URL."""

    def read_with_sites(self) -> Iterator[tuple[str, Page]]:
        """The pages, each with its site."""
        ...


def page_from_fields(
    url: object, html: object, fetched_at: object, place: str, max_bytes: int
) -> Page | Failure:
    """A page from one row or line; `place` says where it stands, for the failure."""
    if not isinstance(url, str) or not url.strip():
        return Failure(place, "no URL", "the field url is missing or empty")
    url = url.strip()
    if any("\ud800" <= character <= "\udfff" for character in url):  # JSON can write them, UTF-8 cannot
        return Failure(place, "bad URL", f"{url!a} holds half a character")
    if failure := oversized_url(url):
        return failure
    if not isinstance(html, str | bytes):
        return Failure(url, "no HTML", f"the field html is missing or no text ({place})")
    try:
        time = time_from_field(fetched_at)
    except ValueError as error:
        return Failure(url, "bad fetched_at", f"{error} ({place})")
    page = Page.from_text(url, html, time) if isinstance(html, str) else Page(url, html, time)
    if len(page.html) > max_bytes:
        return Failure(url, "page too large", f"{len(page.html):,} bytes; at most {max_bytes:,} are taken")
    return page


def time_from_field(value: object) -> datetime | None:
    """Convert a time, an ISO 8601 text or seconds since 1970 to a time; without a zone it is UTC."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        if len(value) > _LONGEST_TIME:  # the error message would repeat it
            raise ValueError(f"a text of {len(value):,} characters is no time")
        value = datetime.fromisoformat(value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (OverflowError, OSError) as error:
            raise ValueError(f"{value} is no time") from error
    if not isinstance(value, datetime):
        raise ValueError(f"{value!r} is no time")  # noqa: TRY004 - data of the wrong kind, not a wrong call
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError as error:  # the first and last hours of the calendar, in some zones
        raise ValueError(f"{value} is no time") from error


def renamed_items(
    place: str, items: Iterable[Page | Resource | Failure | Skipped], copy: Path
) -> Iterator[Page | Resource | Failure | Skipped]:
    """Yield the items of a copy, with the original location instead of the copy's path in their messages."""
    for item in items:
        if isinstance(item, Failure):
            url, detail = (text.replace(str(copy), place) for text in (item.url, item.detail))
            yield replace(item, url=url, detail=detail)
        elif isinstance(item, Skipped):
            yield replace(item, url=item.url.replace(str(copy), place))
        else:
            yield item


def refusal(item: Page | Resource, site: str) -> Failure | None:
    """Return why a page or a resource cannot be stored under a site, or None if it can."""
    if failure := oversized_url(item.url):
        return failure
    if item.fetched_at is not None:
        try:
            in_utc(item.fetched_at)
        except OverflowError:
            return Failure(item.url, "bad fetched_at", f"{item.fetched_at} is off the calendar in UTC")
    media_type = item.media_type if isinstance(item, Resource) else ""
    texts = {"URL": item.url, "media type": media_type, "site name": site}
    for field_name, text in texts.items():
        if not is_storable(text):
            return Failure(item.url, f"bad {field_name}", f"{text!r} holds a character that databases refuse")
    if len(site.encode()) > _LONGEST_SITE_NAME:
        return Failure(item.url, "bad site name", f"it is longer than {_LONGEST_SITE_NAME} bytes")
    return None
