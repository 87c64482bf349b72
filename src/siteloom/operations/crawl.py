"""crawl: fetch pages from the web into the workspace or an archive; preview what would be fetched."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import NoPageImported, UsageError
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.wording import plural
from siteloom.operations.context import Context
from siteloom.operations.ingest import NAMES_RECORDED, IngestResult, PageTally, finish_import
from siteloom.operations.page_import import import_pages
from siteloom.operations.request_fields import Flag, Number, Url, Urls
from siteloom.sources.crawling.crawl_journal import CrawlJournal, DiscoveredLinks, FetchedUrl
from siteloom.sources.crawling.crawl_source import FORBIDDEN, Crawl, CrawlEnded
from siteloom.sources.crawling.url_filters import UrlPatterns, checked_pattern, checked_url

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from siteloom.core.progress import Progress
    from siteloom.core.settings import Settings
    from siteloom.operations.page_import import ImportReport
    from siteloom.sources.crawling.crawl_journal import CrawlProgress, DiscoveredUrl
    from siteloom.sources.page_source import SourceItem
    from siteloom.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlRequest:
    """Which pages to fetch.

    Links are followed from `start`, and with `follow` from all `urls`; also to what `sitemaps` list. At most
    `most_pages` are fetched: without it, as many as the settings say, or all `urls` if no link is followed.
    `include` and `exclude` are patterns of URLs. `delay` in seconds, `private` and `sandbox` override the
    settings. With `render`, pages are what their scripts make of them; with `requisites`, stylesheets are
    fetched, too. Pages go to the site of their URL, or to `site`. With `cluster`, the templates of sites
    without templates are found.
    """

    urls: Urls = ()
    start: Url | None = None
    follow: Flag = False
    most_pages: Number | None = None
    cluster: Flag = False
    site: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    sitemaps: bool = False
    render: bool = False
    requisites: bool = False
    delay: float | None = None
    private: bool | None = None
    sandbox: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlResult(IngestResult):
    """The outcome of a crawl into the workspace.

    `is_finished` is false if it ended early; the same request then goes on where it was. `pages_before` were
    fetched by an earlier part of the same crawl.
    """

    is_finished: bool
    pages_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedCrawl:
    """The outcome of a crawl into an archive."""

    pages: int
    resources: int
    failures: tuple[Failure, ...]
    skipped: Mapping[str, int]
    is_finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlGroup:
    """URLs of one pattern: how many are known, one of them, and how many of them would be fetched.

    `is_kept` says whether their pages would be kept, or only searched for links.
    """

    pattern: str
    urls: int
    example: str
    fetched: int
    is_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPreview:
    """What a crawl would fetch, the patterns with the most URLs first, and what failed."""

    starts: int
    most_pages: int
    url_groups: tuple[UrlGroup, ...]
    failures: tuple[Failure, ...]


def planned_crawl(settings: Settings, request: CrawlRequest) -> Crawl:
    """The crawl that a request asks for, with all that the settings say."""
    starts = [request.start] if request.start else []
    urls = tuple(dict.fromkeys(map(checked_url, [*starts, *request.urls])))
    if not urls:
        raise UsageError("There is nothing to fetch: name URLs, or a start page.")
    if request.most_pages is not None and request.most_pages < 1:
        raise UsageError("At least one page must be fetched: raise most_pages.")
    follows = request.follow or request.start is not None
    limit = max(len(urls), settings.crawl.most_pages) if follows else len(urls)
    overrides = {
        name: value
        for name in ("delay", "private", "sandbox")
        if (value := getattr(request, name)) is not None
    }
    return Crawl(
        urls,
        request.most_pages or limit,
        follows=follows,
        settings=replace(settings.crawl, **overrides),
        pages=settings.pages,
        patterns=UrlPatterns(
            tuple(map(checked_pattern, request.include)), tuple(map(checked_pattern, request.exclude))
        ),
        with_sitemaps=request.sitemaps,
        renders=request.render,
        with_requisites=request.requisites,
    )


def crawl(context: Context, request: CrawlRequest) -> CrawlResult:
    """Fetch pages into the workspace, or the missing ones if the same crawl was stopped before its end.

    Others can write to the workspace meanwhile, but not another crawl. If no document could be imported, this
    raises a NoPageImported with the result so far.
    """
    plan = planned_crawl(context.settings, request)
    tally = PageTally(context, request.site)
    source = _JournaledCrawl(
        plan, CrawlJournal.of(context.store.folder, plan, request.site), context.progress
    )
    report = _import_crawl(context, source, tally, request.site)

    def result_of(imported: IngestResult) -> CrawlResult:
        values = {part.name: getattr(imported, part.name) for part in fields(imported)}
        return CrawlResult(**values, is_finished=source.is_finished, pages_before=source.pages_before)

    try:
        imported = finish_import(
            context, tally, report, cluster=request.cluster, pages_before=source.pages_before
        )
    except NoPageImported as error:
        raise NoPageImported(str(error), result_of(error.result)) from None
    return result_of(imported)


def journal_file(store: Store, plan: Crawl, site: str | None) -> Path:
    """The file that says how far a crawl has come; it exists as long as the crawl is unfinished."""
    return CrawlJournal.of(store.folder, plan, site).file


def _import_crawl(
    context: Context, source: _JournaledCrawl, tally: PageTally, site: str | None
) -> ImportReport:
    """Import the pages of a crawl, and note in its journal what is safely in the store."""

    def commit() -> None:
        source.journal.append(source.uncommitted)
        source.uncommitted.clear()

    report = import_pages(
        context.store,
        [source],
        site=site,
        jobs=context.settings.run.jobs,
        names=source.crawl.urls[:NAMES_RECORDED],
        on_item=tally.count,
        verb="crawl",
        on_commit=commit,
    )
    if source.is_finished:
        source.journal.remove()
    return report


@dataclass(slots=True)
class _JournaledCrawl:
    """A crawl as a source of pages, which also notes how far the crawl has come."""

    crawl: Crawl
    journal: CrawlJournal
    progress: Progress
    uncommitted: list[DiscoveredLinks | FetchedUrl] = field(default_factory=list)
    is_finished: bool = False
    pages_before: int = 0

    def read(self) -> Iterator[SourceItem]:
        """The pages as they arrive."""
        earlier = self.journal.read()  # only now, or another crawl could write to it meanwhile
        self.pages_before = earlier.pages
        self._report_begin(earlier)
        with closing(replace(self.crawl, progress=earlier).events()) as events:
            for event in events:
                match event:
                    case DiscoveredLinks() | FetchedUrl():
                        self.uncommitted.append(event)
                    case CrawlEnded():
                        self.is_finished = True
                    case _:
                        yield event

    def shards(self) -> Sequence[_JournaledCrawl]:
        """The whole crawl as one shard."""
        return (self,)

    def _report_begin(self, earlier: CrawlProgress) -> None:
        if earlier.fetched:
            left = len(earlier.discovered) - len(earlier.fetched)
            self.progress.message(
                f"The same crawl was stopped after {plural(earlier.pages, 'page')}: going on from there, "
                f"with {left:,} known URLs left."
            )
        self.progress.start("Fetching", self.crawl.most_pages, done=earlier.pages)


def archive_crawl(plan: Crawl, file: Path, progress: Progress) -> ArchivedCrawl:
    """Fetch pages into a new WARC file, which is removed if no page comes; no workspace is needed."""
    from siteloom.sources.warc_writer import open_warc  # noqa: PLC0415 - warcio is slow to load

    progress.start("Fetching", plan.most_pages)
    failures: list[Failure] = []
    skipped: Counter[str] = Counter()
    pages = resources = 0
    is_finished = False
    try:
        with open_warc(file) as archive, closing(plan.events()) as events:
            for event in events:
                match event:
                    case Page():
                        archive.write_page(event)
                        pages += 1
                        progress.advance()
                    case Resource():
                        archive.write_resource(event)
                        resources += 1
                    case Failure():
                        failures.append(event)
                    case Skipped():
                        skipped[event.reason] += 1
                    case CrawlEnded():
                        is_finished = True
    finally:
        if not pages:
            file.unlink(missing_ok=True)
    return ArchivedCrawl(
        pages=pages,
        resources=resources,
        failures=tuple(failures),
        skipped=skipped,
        is_finished=is_finished,
    )


def preview_crawl(plan: Crawl) -> CrawlPreview:
    """Show what a crawl would fetch, judging by its first pages and the sitemaps of its hosts.

    No workspace is needed, and nothing is kept.
    """
    links: list[DiscoveredUrl] = []
    failures: list[Failure] = []
    forbidden: set[str] = set()
    for event in replace(plan, looks_ahead=True).events():
        if isinstance(event, DiscoveredLinks):
            links.extend(event.urls)
        elif isinstance(event, Failure):
            failures.append(event)
        if isinstance(event, Failure | Skipped) and event.reason == FORBIDDEN:
            forbidden.add(event.url)
    return CrawlPreview(
        starts=len(plan.urls),
        most_pages=plan.most_pages,
        url_groups=_url_groups(plan, links, forbidden),
        failures=tuple(failures),
    )


class _GroupKey(NamedTuple):
    pattern: str
    is_kept: bool


def _url_groups(
    plan: Crawl, links: Sequence[DiscoveredUrl], forbidden: Collection[str]
) -> tuple[UrlGroup, ...]:
    from siteloom.sources.crawling.frontier import Frontier, template_shape  # noqa: PLC0415 - needs the extra

    def key_of(url: str) -> _GroupKey:
        return _GroupKey(template_shape(url), plan.patterns.includes(url))

    frontier = Frontier(plan.most_pages, plan.patterns, max_known_urls=len(links))
    urls_by_key: dict[_GroupKey, list[str]] = {}
    for address in links:
        if address.url not in forbidden:
            frontier.add(address)
        urls_by_key.setdefault(key_of(address.url), []).append(address.url)
    fetched = Counter(dict.fromkeys(urls_by_key, 0))
    while (link := frontier.next_url()) is not None:
        key = key_of(link.url)
        fetched[key] += 1
        frontier.ended(is_collected=key.is_kept)
    groups = [
        UrlGroup(
            pattern=key.pattern, urls=len(urls), example=urls[0], fetched=fetched[key], is_kept=key.is_kept
        )
        for key, urls in urls_by_key.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.urls, group.pattern)))
