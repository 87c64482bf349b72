"""Crawls into a workspace, which go on where they were stopped; and what they would fetch."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.model import Failure, Skipped
from siteloom.operations.ingest import ingest
from siteloom.sources.crawling.crawl_journal import CrawlJournal, DiscoveredLinks, FetchedUrl
from siteloom.sources.crawling.crawl_source import FORBIDDEN, CrawlEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from siteloom.operations.ingest import IngestReport
    from siteloom.sources.crawling.crawl_journal import CrawlProgress, DiscoveredUrl
    from siteloom.sources.crawling.crawl_source import Crawl
    from siteloom.sources.page_source import SourceItem
    from siteloom.store.store import Store


class CrawlReport(NamedTuple):
    """What became of a crawl, whether it came to its end, and how many pages an earlier part of it had."""

    ingested: IngestReport
    is_finished: bool
    pages_before: int


def journal_file(store: Store, crawl: Crawl, site: str | None = None) -> Path:
    """Where what is known of a crawl is kept until its end."""
    return CrawlJournal.of(store.folder, crawl, site).file


def crawl_into(
    store: Store,
    crawl: Crawl,
    *,
    site: str | None = None,
    jobs: int = 1,
    on_begin: Callable[[CrawlProgress], object] = lambda _: None,
    on_item: Callable[[SourceItem], object] = lambda _: None,
) -> CrawlReport:
    """Fetch pages into the store, or the rest of them if the same crawl was stopped before its end.

    Others can write to the store meanwhile, but not another crawl. What is done is written to a journal once
    it is in the store. `on_begin` is called with what an earlier part of the crawl has done, once it is sure
    that no other does the same.
    """
    journal = CrawlJournal.of(store.folder, crawl, site)
    source = _Journaled(crawl, journal, on_begin)

    def commit() -> None:
        journal.append(source.told)
        source.told.clear()

    report = ingest(
        store,
        [source],
        site=site,
        jobs=jobs,
        names=crawl.urls,
        on_item=on_item,
        verb="crawl",
        on_commit=commit,
    )
    if source.is_finished:
        journal.remove()
    return CrawlReport(report, source.is_finished, source.pages_before)


@dataclass(slots=True)
class _Journaled:
    """A crawl as a source; beside its pages, it tells how far they have come."""

    crawl: Crawl
    journal: CrawlJournal
    on_begin: Callable[[CrawlProgress], object]
    told: list[DiscoveredLinks | FetchedUrl] = field(default_factory=list)
    is_finished: bool = False
    pages_before: int = 0

    def read(self) -> Iterator[SourceItem]:
        """The pages as they come."""
        progress = self.journal.read()  # only now, or another crawl could write to it meanwhile
        self.pages_before = progress.pages
        self.on_begin(progress)
        with closing(replace(self.crawl, progress=progress).events()) as events:
            for event in events:
                match event:
                    case DiscoveredLinks() | FetchedUrl():
                        self.told.append(event)
                    case CrawlEnded():
                        self.is_finished = True
                    case _:
                        yield event

    def shards(self) -> Sequence[_Journaled]:
        """All at once."""
        return (self,)


class FoundShape(NamedTuple):
    """Addresses of one shape: how many are known, one of them, and how many of them would be fetched."""

    shape: str
    urls: int
    example: str
    fetched: int
    is_kept: bool


class LookAhead(NamedTuple):
    """What a crawl would fetch, the shapes with the most addresses first, and why not more."""

    shapes: tuple[FoundShape, ...]
    failures: tuple[Failure, ...]


def look_ahead(crawl: Crawl) -> LookAhead:
    """What a crawl would fetch, by what its first pages and the sitemaps of its hosts tell."""
    found: list[DiscoveredUrl] = []
    failures: list[Failure] = []
    forbidden: set[str] = set()
    for event in replace(crawl, looks_ahead=True).events():
        if isinstance(event, DiscoveredLinks):
            found.extend(event.urls)
        elif isinstance(event, Failure):
            failures.append(event)
        if isinstance(event, Failure | Skipped) and event.reason == FORBIDDEN:
            forbidden.add(event.url)
    return LookAhead(_shapes(crawl, found, forbidden), tuple(failures))


def _shapes(
    crawl: Crawl, found: Sequence[DiscoveredUrl], forbidden: Collection[str]
) -> tuple[FoundShape, ...]:
    from siteloom.sources.crawling.frontier import Frontier, template_shape  # noqa: PLC0415 - needs the extra

    frontier = Frontier(crawl.most_pages, crawl.patterns, max_known_urls=len(found))
    by_shape: dict[tuple[str, bool], list[str]] = {}
    for one in found:
        if one.url not in forbidden:
            frontier.add(one)
        by_shape.setdefault((template_shape(one.url), crawl.patterns.includes(one.url)), []).append(one.url)
    taken = dict.fromkeys(by_shape, 0)
    while (following := frontier.next_url()) is not None:
        is_kept = crawl.patterns.includes(following.url)
        taken[template_shape(following.url), is_kept] += 1
        frontier.ended(is_collected=is_kept)
    shapes = [
        FoundShape(shape, len(urls), urls[0], taken[shape, is_kept], is_kept)
        for (shape, is_kept), urls in by_shape.items()
    ]
    return tuple(sorted(shapes, key=lambda one: (-one.urls, one.shape)))
