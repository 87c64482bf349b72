"""How pages are fetched: politely, within limits, and from nowhere that is not public.

Scrapy does the work. What it is told besides its settings: which page comes next (`Schedule`), what is done
to each request and answer (`siteloom.sources.crawling.middlewares`), and which addresses hosts have
(`siteloom.sources.crawling.url_filters`).
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import CrawlerProcess
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import DownloadFailedError, ResponseDataLossError, StopDownload
from scrapy.http import TextResponse

from siteloom.core.errors import SiteloomError, UsageError
from siteloom.core.model import Failure, Page, Resource, Skipped, Validators
from siteloom.core.urls import oversized_url, site_of
from siteloom.sources.crawling.crawl_journal import Done, Found, Links
from siteloom.sources.crawling.crawl_problems import problem_of
from siteloom.sources.crawling.crawl_source import FORBIDDEN, NOT_MODIFIED, WALKED, Ended
from siteloom.sources.crawling.frontier import FOUND, Frontier
from siteloom.sources.crawling.links import (
    DEEPEST,
    DEEPEST_IMPORT,
    LARGEST_STYLESHEET,
    MOST_BYTES,
    MOST_SITEMAPS,
    MOST_STYLESHEETS,
    REQUISITE,
    STYLESHEET,
    imports_of,
    links_of,
    read_sitemap,
    stylesheets_of,
)
from siteloom.sources.crawling.middlewares import (
    CONDITIONS,
    LONGEST_WAIT,
    MOST_REDIRECTS,
    SITEMAP,
    Doors,
    Gate,
    Patience,
    Redirects,
    Robots,
    Unpacking,
    origin_of,
)
from siteloom.sources.crawling.url_filters import AnyAddresses, PublicAddresses, checked_url
from siteloom.sources.source_formats import content_type
from siteloom.sources.warc import HTML_TYPES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response
    from twisted.python.failure import Failure as TwistedFailure

    from siteloom.sources.crawling.crawl_source import Crawl

    Event = Page | Resource | Failure | Skipped | Links | Done | Ended

# A page that goes on to another after so many seconds is a door to it; after more, it only renews itself.
_DOOR_SECONDS = 5
# Those of usual servers have less than 100 characters.
_LONGEST_VALIDATOR = 1_000
# Of several sites, as many as Scrapy fetches at once by default.
_AT_ONCE = 16
# Of one site, the next is ready when one has come; what is taken later is chosen knowing more.
_OF_ONE_SITE = 2
# So many addresses are listed by a crawl that only looks ahead: as many as fit into memory with ease.
_MOST_LISTED = 1_000_000


def run_crawl(crawl: Crawl, tell: Callable[[Event], None]) -> None:
    """Fetch all pages of a crawl and tell of each; once in a process, in its main thread."""
    process = CrawlerProcess(_scrapy_settings(crawl))
    problems: list[TwistedFailure] = []
    process.crawl(PageSpider, crawl=crawl, tell=tell).addErrback(problems.append)
    process.start(install_signal_handlers=False)
    if problems:
        problems[0].raiseException()


def _scrapy_settings(crawl: Crawl) -> dict[str, Any]:
    settings = crawl.settings
    contact = f" (+{settings.contact})" if settings.contact else ""
    return {
        "USER_AGENT": f"Siteloom/{version('siteloom')}{contact}",
        "DOWNLOAD_DELAY": settings.delay,
        "DOWNLOAD_DELAY_JITTER": 0,
        "CONCURRENT_REQUESTS": _AT_ONCE if len({site_of(url) for url in crawl.urls}) > 1 else _OF_ONE_SITE,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "AUTOTHROTTLE_ENABLED": True,  # slows down for slow sites, and gets back to speed after `Patience`
        "AUTOTHROTTLE_START_DELAY": settings.delay,
        "AUTOTHROTTLE_MAX_DELAY": LONGEST_WAIT,
        "DOWNLOAD_TIMEOUT": settings.timeout,
        "DOWNLOAD_MAXSIZE": crawl.pages.max_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOAD_VERIFY_CERTIFICATES": True,
        # What was too slow or not there will be so again; a connection that broke may not.
        "RETRY_EXCEPTIONS": [DownloadFailedError, ResponseDataLossError],
        "REDIRECT_MAX_TIMES": MOST_REDIRECTS,
        "METAREFRESH_MAXDELAY": _DOOR_SECONDS,
        "DOWNLOAD_HANDLERS": dict.fromkeys(("data", "file", "ftp", "s3")),
        # Behind a proxy, it is the proxy that finds the addresses of hosts, and cannot be asked about them.
        "HTTPPROXY_ENABLED": settings.private,
        "CHROMIUM_SANDBOX": settings.sandbox,  # for `Rendering` alone
        "TWISTED_DNS_RESOLVER": AnyAddresses if settings.private else PublicAddresses,
        "SCHEDULER": Schedule,
        "DOWNLOADER_MIDDLEWARES": {
            Gate: 50,  # before anything else, such as a look at the robots.txt of another site
            RobotsTxtMiddleware: None,
            Robots: 100,
            RetryMiddleware: None,
            Patience: 550,
            **_rendering(crawl),
            # Each where the one stands that it is made of.
            MetaRefreshMiddleware: None,
            Doors: 580,
            HttpCompressionMiddleware: None,
            Unpacking: 590,
            RedirectMiddleware: None,
            Redirects: 600,
        },
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
    }


def _rendering(crawl: Crawl) -> dict[Any, int]:
    """What opens pages in a browser, once they are where redirects lead to, and unpacked."""
    if not crawl.renders:
        return {}
    from siteloom.sources.crawling.chromium import Rendering  # noqa: PLC0415 - an extra of its own

    return {Rendering: 540}


class PageSpider(Spider):
    """Gives pages, and what became of all else, to `tell`."""

    name = "siteloom"

    def __init__(self, crawl: Crawl, tell: Callable[[Event], None]) -> None:
        super().__init__()
        self.frontier = Frontier(
            crawl.most_pages,
            crawl.patterns,
            most_known=_MOST_LISTED if crawl.looks_ahead else None,
            is_only_asked=crawl.looks_ahead,
        )
        self.sites = {site_of(url) for url in crawl.urls}
        """The sites that links are followed on: those that were asked for, and where these led to."""
        self.patterns = crawl.patterns
        self._follows = crawl.follows
        self._looks_ahead = crawl.looks_ahead
        self._validators = crawl.validators
        self._as_asked = crawl.as_asked
        self._stylesheets: set[str] | None = set() if crawl.with_requisites else None
        self._limit = crawl.pages.max_bytes
        self._tell = tell
        self._fetched: set[str] = set()
        self._with_sitemaps = crawl.with_sitemaps
        self._sitemaps: set[str] = set()
        self._sitemaps_there: dict[str, list[str]] = {}  # of hosts that redirects have come by
        self._begun: dict[str, None] = {}  # where start pages are that were fetched before
        self._take_up(crawl)

    def _take_up(self, crawl: Crawl) -> None:
        """Begin, or go on where an earlier part of the crawl was."""
        self.frontier.take_up(crawl.progress)
        asked = (Found(url, 0) for url in crawl.urls)
        self._know(tuple(found for found in asked if self.frontier.add(found)))
        starts = {found.url for found in crawl.progress.found if found.clicks == 0}
        for url, at, _ in crawl.progress.done:
            if at:
                self._fetched.add(at)
            if url in starts:
                self.sites.add(site_of(at or url))
                self._begun[origin_of(at or url)] = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """As Scrapy makes it."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin_body, signal=signals.headers_received)
        return spider

    def begin_body(self, headers: Headers, request: Request) -> None:
        """Do not load what is no page."""
        media_type = content_type(headers.get("Content-Type")).media_type
        if FOUND in request.meta and media_type not in HTML_TYPES:
            raise StopDownload(fail=False)
        if REQUISITE in request.meta and media_type != STYLESHEET:
            raise StopDownload(fail=False)

    def arrived(self, response: Response) -> None:
        """Tell of what a server answered."""
        assert response.request is not None
        found: Found = response.request.meta[FOUND]
        at = ""
        is_kept = False
        try:
            item = self._item(response, found)
            if isinstance(item, Page):
                at = item.url
                is_kept = self.patterns.keeps(at)
                self._tell(item if is_kept else Skipped(found.url, WALKED))
                if is_kept:
                    self._ask(self._stylesheets_of(stylesheets_of(response)))
            else:
                self._tell(item)
            if at and self._follows:
                if found.clicks == 0:  # else it is on one of them
                    self.sites.add(site_of(response.url))
                    self._ask(self._sitemaps_of(self._sitemaps_there.pop(origin_of(response.url), ()), 1))
                self._know_links(self.frontier.add_links(self._of_the_sites(links_of(response)), found))
        finally:
            self._end(Done(found.url, at, is_kept))

    def failed(self, failure: TwistedFailure) -> None:
        """Tell why there is no answer."""
        request: Request = failure.request  # type: ignore[attr-defined]
        found: Found = request.meta[FOUND]
        if isinstance(failure.value, SiteloomError):  # it is the same for all pages
            self._tell(Ended(error=failure.value))
        problem = problem_of(failure.value, self._limit)
        try:
            if problem.is_expected and found.clicks > 0:
                self._tell(Skipped(found.url, problem.reason))
            else:
                is_moved = "redirect_urls" in request.meta
                details = [problem.detail, f"redirected to {request.url}" if is_moved else ""]
                self._tell(Failure(found.url, problem.reason, "; ".join(filter(None, details))))
        finally:
            self._end(Done(found.url, "", is_kept=False))

    async def start(self) -> AsyncIterator[Request]:
        """Look for the sitemaps of start pages that were fetched before: not all may have been read."""
        if self._follows and self._with_sitemaps:
            for request in self._sitemaps_of([f"{origin}/sitemap.xml" for origin in self._begun], 1):
                yield request

    def look_for_sitemaps(self, origin: str, urls: Iterable[str], request: Request) -> None:
        """Fetch the sitemaps of a host that was asked for, or that one which was asked for led to.

        Redirects may come by hosts of other sites: their sitemaps are wanted if a start page is there.
        """
        is_asked = FOUND in request.meta and request.meta[FOUND].clicks == 0
        if self._follows and self._with_sitemaps and (is_asked or SITEMAP in request.meta):
            there = [*urls, f"{origin}/sitemap.xml"]
            if site_of(origin) in self.sites:
                self._ask(self._sitemaps_of(there, 1))
            else:
                self._sitemaps_there[origin] = there

    def sitemap_arrived(self, response: Response) -> None:
        """Take in what a sitemap lists."""
        listed = read_sitemap(response.body)
        self._know_links(self.frontier.add_links(self._of_the_sites(listed.pages)))
        depth: int = response.meta[SITEMAP]
        if depth < DEEPEST:
            self._ask(self._sitemaps_of(listed.sitemaps, depth + 1))

    def sitemap_failed(self, _: TwistedFailure) -> None:
        """Do without it: no one has promised that it is there."""

    def _sitemaps_of(self, urls: Iterable[str], depth: int) -> Iterator[Request]:
        for url in self._of_the_sites(urls):
            if url not in self._sitemaps and len(self._sitemaps) < MOST_SITEMAPS:
                self._sitemaps.add(url)
                meta = {SITEMAP: depth, "download_maxsize": MOST_BYTES}
                yield Request(url, self.sitemap_arrived, errback=self.sitemap_failed, meta=meta)

    def _ask(self, requests: Iterable[Request]) -> None:
        """Make requests before the next page is fetched."""
        assert self.crawler.engine is not None
        for request in requests:
            self.crawler.engine.crawl(request)

    def requisite_arrived(self, response: Response) -> None:
        """Tell of a stylesheet, and fetch what it imports."""
        url, depth = response.meta[REQUISITE]
        media_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
        if content_type(response.headers.get("Content-Type")).media_type != STYLESHEET:
            self._tell(Skipped(url, f"not a stylesheet but {media_type or 'of unknown type'}"))
            return
        self._tell(Resource(url, response.body, media_type, datetime.now(UTC)))
        if depth < DEEPEST_IMPORT and isinstance(response, TextResponse):
            self._ask(self._stylesheets_of(imports_of(response.text, response.url), depth + 1))

    def requisite_failed(self, failure: TwistedFailure) -> None:
        """Do without it: the page is there."""
        url, _ = failure.request.meta[REQUISITE]  # type: ignore[attr-defined]
        self._tell(Skipped(url, f"stylesheet: {problem_of(failure.value, LARGEST_STYLESHEET).reason}"))

    def _stylesheets_of(self, urls: Iterable[str], depth: int = 0) -> Iterator[Request]:
        if self._stylesheets is None:
            return
        for url in urls:
            if url not in self._stylesheets and len(self._stylesheets) < MOST_STYLESHEETS:
                self._stylesheets.add(url)
                meta = {REQUISITE: (url, depth), "download_maxsize": LARGEST_STYLESHEET}
                yield Request(url, self.requisite_arrived, errback=self.requisite_failed, meta=meta)

    def _of_the_sites(self, urls: Iterable[str]) -> Iterator[str]:
        for url in urls:
            with suppress(UsageError):
                address = urldefrag(checked_url(url)).url
                if site_of(address) in self.sites:
                    yield address

    def _know(self, found: tuple[Found, ...]) -> None:
        if found:
            self._tell(Links(found))

    def _know_links(self, found: tuple[Found, ...]) -> None:
        """The same for what will be followed later; if that is never, it is told what could not be."""
        self._know(found)
        if self._looks_ahead:
            robots = self.crawler.get_downloader_middleware(Robots)
            assert robots is not None
            for one in found:
                if robots.forbids(one.url):
                    self._tell(Skipped(one.url, FORBIDDEN))

    def _end(self, done: Done) -> None:
        self.frontier.ended(is_kept=done.is_kept)
        self._tell(done)

    def _item(self, response: Response, found: Found) -> Page | Failure | Skipped:
        url = urldefrag(response.url).url
        media_type, charset = content_type(response.headers.get("Content-Type"))
        if response.status == 304 and response.request is not None and _is_conditional(response.request):
            return Skipped(found.url, NOT_MODIFIED)
        if response.status != 200:
            return Failure(found.url, f"status {response.status}")
        if media_type not in HTML_TYPES:
            what = media_type or "of unknown type"
            return (
                Skipped(found.url, f"not HTML but {what}")
                if found.clicks > 0
                else Failure(found.url, "not HTML", f"it is {what}")
            )
        if failure := oversized_url(found.url if self._as_asked else url):  # where a redirection led
            return failure
        if self._as_asked:
            validators = _validators(response.headers) if url == urldefrag(found.url).url else None
            return Page(found.url, response.body, datetime.now(UTC), charset, validators)
        if url in self._fetched:
            return Skipped(found.url, "redirected to a page that was fetched before")
        self._fetched.add(url)
        return Page(url, response.body, datetime.now(UTC), charset, _validators(response.headers))

    def request(self, found: Found) -> Request:
        """How to fetch what the frontier gave."""
        known = self._validators.get(found.url, Validators())
        conditions = {name: value for name, value in zip(CONDITIONS, known, strict=True) if value}
        meta = {FOUND: found, "handle_httpstatus_list": [304] if conditions else []}
        return Request(found.url, headers=conditions, callback=self.arrived, errback=self.failed, meta=meta)


class Schedule(BaseScheduler):
    """Hands out what the frontier says is next; redirected and repeated requests come first."""

    def __init__(self) -> None:
        self._again: deque[Request] = deque()

    def open(self, spider: Spider) -> None:
        """Begin."""
        assert isinstance(spider, PageSpider)
        self._spider = spider

    def has_pending_requests(self) -> bool:
        """Whether there is anything to do, perhaps later."""
        return bool(self._again) or self._spider.frontier.has_more

    def enqueue_request(self, request: Request) -> bool:
        """Take a request that is to be made again, or at another address."""
        self._again.append(request)
        return True

    def next_request(self) -> Request | None:
        """What is to be fetched now."""
        if self._again:
            return self._again.popleft()
        found = self._spider.frontier.next()
        return None if found is None else self._spider.request(found)


def _is_conditional(request: Request) -> bool:
    return any(name in request.headers for name in CONDITIONS)


def _validators(headers: Headers) -> Validators | None:
    """What a server says to ask it by, unless it is such that it could not be said back."""
    said = ((headers.get(name) or b"").decode("latin-1") for name in ("ETag", "Last-Modified"))
    usable = [
        text if text.isascii() and text.isprintable() and len(text) <= _LONGEST_VALIDATOR else ""
        for text in said
    ]
    return Validators(*usable) if any(usable) else None
