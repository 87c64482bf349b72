"""Watched pages fetched again from the web."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.urls import site_of
from siteloom.operations.page_import import import_pages
from siteloom.operations.stored_wrappers import newest_pages
from siteloom.operations.watch import chosen_watches, stored_watch
from siteloom.sources.crawling.crawl_source import NOT_MODIFIED, Crawl
from siteloom.sources.crawling.url_filters import checked_url
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Validators
    from siteloom.core.settings import Settings
    from siteloom.maintenance.watched_pages import Watch
    from siteloom.sources.page_source import SourceItem
    from siteloom.store.store import Store

_FETCHED = "fetched"
# By these a server says that it has a page no more; 403 or 503 may be about who asks, or when.
_GONE = ("status 404", "status 410")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of each URL that was fetched again: `fetched`, `not modified`, or why there is no page."""

    outcomes: Mapping[str, str]

    @property
    def seen(self) -> set[str]:
        """The URLs of pages of which it is known how they are now."""
        return {url for url, came in self.outcomes.items() if came in (_FETCHED, NOT_MODIFIED)}

    @property
    def gone(self) -> set[str]:
        """The URLs of pages that are no more by the word of their server."""
        return {url for url, came in self.outcomes.items() if came in _GONE}

    def counts(self) -> dict[str, int]:
        """How many there are of each outcome, as it is told."""
        count = Counter(self.outcomes.values())
        told = {came: count.pop(came) for came in (_FETCHED, NOT_MODIFIED) if came in count}
        told |= {f"gone: {came}": count.pop(came) for came in _GONE if came in count}
        return told | {f"failed: {came}": number for came, number in count.most_common()}

    def unreachable(self) -> dict[str, Counter[str]]:
        """The sites of which nothing is known now of any page, each with the reasons."""
        reachable = {site_of(url) for url in self.seen | self.gone}
        reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for url, came in self.outcomes.items():
            if (site := site_of(url)) not in reachable:
                reasons[site][came] += 1
        return dict(reasons)


def fetch_watched(
    store: Store,
    names: Collection[str],
    settings: Settings,
    *,
    renders: bool = False,
    on_page: Callable[[int], object] = lambda _: None,
) -> Fetched:
    """Fetch the bellwethers of wrappers, of all unless some are named, and put them into the store.

    Servers are told which versions the store has, and send what is another. `on_page` is called for each
    with 1.
    """
    by_site: defaultdict[str | None, dict[str, PageAddress]] = defaultdict(dict)
    for name in chosen_watches(store, names):
        home, watch = stored_watch(store, name)
        for one in watch.bellwethers:
            url = one.page.url
            # Those that are kept under the site of their URLs are fetched together, site beside site.
            by_site[None if home == site_of(url) else home][url] = PageAddress(home, url)
    outcomes: dict[str, str] = {}
    for site, addresses in by_site.items():
        visit = _StoredVisit(store, addresses, settings, renders, outcomes)
        import_pages(
            store,
            [visit],
            site=site,
            jobs=settings.run.jobs,
            names=["watched pages, from the web"],
            on_item=lambda _: on_page(1),
            verb="fetch",
        )
    return Fetched(outcomes)


def fetch_pages(
    watches: Iterable[Watch],
    settings: Settings,
    *,
    renders: bool = False,
    on_page: Callable[[int], object] = lambda _: None,
) -> tuple[list[Page], Fetched]:
    """Fetch the bellwethers of watches that are in no workspace."""
    urls = dict.fromkeys(one.page.url for watch in watches for one in watch.bellwethers)
    outcomes: dict[str, str] = {}
    pages = []
    for item in _visited(list(urls), settings, renders, {}, outcomes):
        on_page(1)
        if isinstance(item, Page):
            pages.append(item)
    return pages, Fetched(outcomes)


@dataclass(frozen=True, slots=True)
class _StoredVisit:
    """Pages of a store as the web has them now: a source for ingesting; what came of each is noted."""

    store: Store
    addresses: Mapping[str, PageAddress]
    settings: Settings
    renders: bool
    outcomes: dict[str, str]

    def read(self) -> Iterator[SourceItem]:
        validators = self.store.validators(self.addresses.values())
        for item in _visited(list(self.addresses), self.settings, self.renders, validators, self.outcomes):
            if isinstance(item, Skipped) and item.reason == NOT_MODIFIED:
                # Seen again now, which is what tells the newest version.
                (page,) = newest_pages(self.store, self.addresses[item.url].site, [item.url])
                yield replace(page, fetched_at=datetime.now(UTC))
            else:
                yield item

    def shards(self) -> Sequence[_StoredVisit]:
        return (self,)


def _visited(
    urls: Sequence[str],
    settings: Settings,
    renders: bool,
    validators: Mapping[str, Validators],
    outcomes: dict[str, str],
) -> Iterator[SourceItem]:
    of_web = []
    for url in urls:
        if _is_of_web(url):
            outcomes[url] = "no answer"  # unless one comes
            of_web.append(url)
        else:
            outcomes[url] = "no address of the web"
            yield Failure(url, outcomes[url])
    if not of_web:
        return
    crawl = Crawl(
        tuple(of_web),
        len(of_web),
        settings=settings.crawl,
        pages=settings.pages,
        # What scripts make of a page may change while all that the server sends stays the same.
        validators={} if renders else validators,
        as_asked=True,
        renders=renders,
    )
    for item in crawl.read():
        if not isinstance(item, Resource):
            outcomes[item.url] = _FETCHED if isinstance(item, Page) else item.reason
        yield item


def _is_of_web(url: str) -> bool:
    """Pages that were read from a folder may have addresses that only that knows."""
    try:
        return checked_url(url) == url
    except UsageError:
        return False
