"""Fetch pages with Scrapy: politely, within limits, and only from public addresses.

Besides the settings, this module provides the order of pages (`Schedule`);
`siteloom.sources.crawling.middlewares` processes each request and response, and
`siteloom.sources.crawling.url_filters` resolves hosts.
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
from siteloom.sources.crawling.crawl_journal import DiscoveredLinks, DiscoveredUrl, FetchedUrl
from siteloom.sources.crawling.crawl_problems import problem_from_error
from siteloom.sources.crawling.crawl_source import FORBIDDEN, NOT_MODIFIED, WALKED, CrawlEnded
from siteloom.sources.crawling.frontier import DISCOVERED_URL, Frontier
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
    Gate,
    PageRefreshes,
    Redirects,
    Retries,
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

    Event = Page | Resource | Failure | Skipped | DiscoveredLinks | FetchedUrl | CrawlEnded

# A page that refreshes to another within this many seconds is a redirect; later refreshes only reload it.
_DOOR_SECONDS = 5
# Those of common servers have less than 100 characters.
_LONGEST_VALIDATOR = 1_000
# Scrapy's default, for several sites.
_CONCURRENT_REQUESTS = 16
# For one site, the next request is ready when a response arrives; later choices know more links.
_CONCURRENT_REQUESTS_OF_ONE_SITE = 2
# The limit of a crawl that only looks ahead: this many addresses easily fit into memory.
_MAX_LOOKED_AHEAD_URLS = 1_000_000


def run_crawl(crawl: Crawl, emit: Callable[[Event], None]) -> None:
    """Fetch all pages of a crawl and emit each; callable once per process, in its main thread."""
    process = CrawlerProcess(_scrapy_settings(crawl))
    problems: list[TwistedFailure] = []
    process.crawl(PageSpider, crawl=crawl, emit=emit).addErrback(problems.append)
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
        "CONCURRENT_REQUESTS": _CONCURRENT_REQUESTS
        if len({site_of(url) for url in crawl.urls}) > 1
        else _CONCURRENT_REQUESTS_OF_ONE_SITE,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "AUTOTHROTTLE_ENABLED": True,  # slows down for slow sites, and recovers after `Retries`
        "AUTOTHROTTLE_START_DELAY": settings.delay,
        "AUTOTHROTTLE_MAX_DELAY": LONGEST_WAIT,
        "DOWNLOAD_TIMEOUT": settings.timeout,
        "DOWNLOAD_MAXSIZE": crawl.pages.max_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOAD_VERIFY_CERTIFICATES": True,
        # A timeout or an unknown host would recur; a broken connection may not.
        "RETRY_EXCEPTIONS": [DownloadFailedError, ResponseDataLossError],
        "REDIRECT_MAX_TIMES": MOST_REDIRECTS,
        "METAREFRESH_MAXDELAY": _DOOR_SECONDS,
        "DOWNLOAD_HANDLERS": dict.fromkeys(("data", "file", "ftp", "s3")),
        # A proxy resolves hosts itself, so their addresses could not be checked.
        "HTTPPROXY_ENABLED": settings.private,
        "CHROMIUM_SANDBOX": settings.sandbox,  # for `Rendering` alone
        "TWISTED_DNS_RESOLVER": AnyAddresses if settings.private else PublicAddresses,
        "SCHEDULER": Schedule,
        "DOWNLOADER_MIDDLEWARES": {
            Gate: 50,  # before anything else, such as requesting the robots.txt of another site
            RobotsTxtMiddleware: None,
            Robots: 100,
            RetryMiddleware: None,
            Retries: 550,
            **_rendering(crawl),
            # Each at the position of the middleware it replaces.
            MetaRefreshMiddleware: None,
            PageRefreshes: 580,
            HttpCompressionMiddleware: None,
            Unpacking: 590,
            RedirectMiddleware: None,
            Redirects: 600,
        },
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
    }


def _rendering(crawl: Crawl) -> dict[Any, int]:
    """Return the middleware that renders pages, which runs after redirects and decompression."""
    if not crawl.renders:
        return {}
    from siteloom.sources.crawling.chromium import Rendering  # noqa: PLC0415 - an extra of its own

    return {Rendering: 540}


class PageSpider(Spider):
    """Fetches pages and passes them, and the outcome of every other address, to `emit`."""

    name = "siteloom"

    def __init__(self, crawl: Crawl, emit: Callable[[Event], None]) -> None:
        super().__init__()
        self.frontier = Frontier(
            crawl.most_pages,
            crawl.patterns,
            max_known_urls=_MAX_LOOKED_AHEAD_URLS if crawl.looks_ahead else None,
            only_start_urls=crawl.looks_ahead,
        )
        self.sites = {site_of(url) for url in crawl.urls}
        """The sites that links are followed on: those of the start URLs, and of their redirects."""
        self.patterns = crawl.patterns
        self._follows = crawl.follows
        self._looks_ahead = crawl.looks_ahead
        self._validators = crawl.validators
        self._as_asked = crawl.as_asked
        self._stylesheets: set[str] | None = set() if crawl.with_requisites else None
        self._limit = crawl.pages.max_bytes
        self._emit = emit
        self._fetched: set[str] = set()
        self._with_sitemaps = crawl.with_sitemaps
        self._sitemaps: set[str] = set()
        self._sitemaps_by_origin: dict[str, list[str]] = {}  # of hosts that redirects passed through
        self._earlier_origins: dict[str, None] = {}  # of start pages fetched by an earlier crawl
        self._resume(crawl)

    def _resume(self, crawl: Crawl) -> None:
        """Add the start URLs, and continue where an interrupted crawl stopped."""
        self.frontier.resume(crawl.progress)
        start_urls = (DiscoveredUrl(url, 0) for url in crawl.urls)
        self._report_urls(tuple(start_url for start_url in start_urls if self.frontier.add(start_url)))
        starts = {start_url.url for start_url in crawl.progress.discovered if start_url.clicks == 0}
        for url, page_url, _ in crawl.progress.fetched:
            if page_url:
                self._fetched.add(page_url)
            if url in starts:
                self.sites.add(site_of(page_url or url))
                self._earlier_origins[origin_of(page_url or url)] = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Create the spider for a Scrapy crawler."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin_body, signal=signals.headers_received)
        return spider

    def begin_body(self, headers: Headers, request: Request) -> None:
        """Stop downloads that are not pages."""
        media_type = content_type(headers.get("Content-Type")).media_type
        if DISCOVERED_URL in request.meta and media_type not in HTML_TYPES:
            raise StopDownload(fail=False)
        if REQUISITE in request.meta and media_type != STYLESHEET:
            raise StopDownload(fail=False)

    def page_arrived(self, response: Response) -> None:
        """Emit the outcome of a response."""
        assert response.request is not None
        discovered: DiscoveredUrl = response.request.meta[DISCOVERED_URL]
        page_url = ""
        is_collected = False
        try:
            item = self._item(response, discovered)
            if isinstance(item, Page):
                page_url = item.url
                is_collected = self.patterns.includes(page_url)
                self._emit(item if is_collected else Skipped(discovered.url, WALKED))
                if is_collected:
                    self._request_now(self._stylesheets_of(stylesheets_of(response)))
            else:
                self._emit(item)
            if page_url and self._follows:
                if discovered.clicks == 0:  # others are on these sites already
                    self.sites.add(site_of(response.url))
                    self._request_now(
                        self._sitemaps_of(self._sitemaps_by_origin.pop(origin_of(response.url), ()), 1)
                    )
                self._report_links(
                    self.frontier.add_links(self._of_the_sites(links_of(response)), discovered)
                )
        finally:
            self._end(FetchedUrl(discovered.url, page_url, is_collected))

    def page_failed(self, failure: TwistedFailure) -> None:
        """Emit why there is no response."""
        request: Request = failure.request  # type: ignore[attr-defined]
        discovered: DiscoveredUrl = request.meta[DISCOVERED_URL]
        if isinstance(failure.value, SiteloomError):  # it affects all pages
            self._emit(CrawlEnded(error=failure.value))
        problem = problem_from_error(failure.value, self._limit)
        try:
            if problem.is_expected and discovered.clicks > 0:
                self._emit(Skipped(discovered.url, problem.reason))
            else:
                is_moved = "redirect_urls" in request.meta
                details = [problem.detail, f"redirected to {request.url}" if is_moved else ""]
                self._emit(Failure(discovered.url, problem.reason, "; ".join(filter(None, details))))
        finally:
            self._end(FetchedUrl(discovered.url, "", is_collected=False))

    async def start(self) -> AsyncIterator[Request]:
        """Request the sitemaps of start pages fetched by an earlier crawl: it may not have read them all."""
        if self._follows and self._with_sitemaps:
            for request in self._sitemaps_of(
                [f"{origin}/sitemap.xml" for origin in self._earlier_origins], 1
            ):
                yield request

    def look_for_sitemaps(self, origin: str, urls: Iterable[str], request: Request) -> None:
        """Fetch the sitemaps of the host of a start URL or of its redirects.

        Redirects may pass through hosts of other sites; their sitemaps are fetched only if a start page is
        there.
        """
        is_start_url = DISCOVERED_URL in request.meta and request.meta[DISCOVERED_URL].clicks == 0
        if self._follows and self._with_sitemaps and (is_start_url or SITEMAP in request.meta):
            sitemap_urls = [*urls, f"{origin}/sitemap.xml"]
            if site_of(origin) in self.sites:
                self._request_now(self._sitemaps_of(sitemap_urls, 1))
            else:
                self._sitemaps_by_origin[origin] = sitemap_urls

    def sitemap_arrived(self, response: Response) -> None:
        """Add the links of a sitemap."""
        listed = read_sitemap(response.body)
        self._report_links(self.frontier.add_links(self._of_the_sites(listed.pages)))
        depth: int = response.meta[SITEMAP]
        if depth < DEEPEST:
            self._request_now(self._sitemaps_of(listed.sitemaps, depth + 1))

    def sitemap_failed(self, _: TwistedFailure) -> None:
        """Ignore a missing sitemap: hosts need not have one."""

    def _sitemaps_of(self, urls: Iterable[str], depth: int) -> Iterator[Request]:
        for url in self._of_the_sites(urls):
            if url not in self._sitemaps and len(self._sitemaps) < MOST_SITEMAPS:
                self._sitemaps.add(url)
                meta = {SITEMAP: depth, "download_maxsize": MOST_BYTES}
                yield Request(url, self.sitemap_arrived, errback=self.sitemap_failed, meta=meta)

    def _request_now(self, requests: Iterable[Request]) -> None:
        """Send requests before the next page is fetched."""
        assert self.crawler.engine is not None
        for request in requests:
            self.crawler.engine.crawl(request)

    def requisite_arrived(self, response: Response) -> None:
        """Emit a stylesheet, and fetch what it imports."""
        url, depth = response.meta[REQUISITE]
        media_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
        if content_type(response.headers.get("Content-Type")).media_type != STYLESHEET:
            self._emit(Skipped(url, f"not a stylesheet but {media_type or 'of unknown type'}"))
            return
        self._emit(Resource(url, response.body, media_type, datetime.now(UTC)))
        if depth < DEEPEST_IMPORT and isinstance(response, TextResponse):
            self._request_now(self._stylesheets_of(imports_of(response.text, response.url), depth + 1))

    def requisite_failed(self, failure: TwistedFailure) -> None:
        """Report a missing stylesheet; the page itself is complete."""
        url, _ = failure.request.meta[REQUISITE]  # type: ignore[attr-defined]
        self._emit(
            Skipped(url, f"stylesheet: {problem_from_error(failure.value, LARGEST_STYLESHEET).reason}")
        )

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

    def _report_urls(self, urls: tuple[DiscoveredUrl, ...]) -> None:
        if urls:
            self._emit(DiscoveredLinks(urls))

    def _report_links(self, urls: tuple[DiscoveredUrl, ...]) -> None:
        """Emit links that will be followed; a crawl that only looks ahead also emits which are forbidden."""
        self._report_urls(urls)
        if self._looks_ahead:
            robots = self.crawler.get_downloader_middleware(Robots)
            assert robots is not None
            for discovered in urls:
                if robots.forbids(discovered.url):
                    self._emit(Skipped(discovered.url, FORBIDDEN))

    def _end(self, fetched: FetchedUrl) -> None:
        self.frontier.ended(is_collected=fetched.is_collected)
        self._emit(fetched)

    def _item(self, response: Response, discovered: DiscoveredUrl) -> Page | Failure | Skipped:
        url = urldefrag(response.url).url
        media_type, charset = content_type(response.headers.get("Content-Type"))
        if response.status == 304 and response.request is not None and _is_conditional(response.request):
            return Skipped(discovered.url, NOT_MODIFIED)
        if response.status != 200:
            return Failure(discovered.url, f"status {response.status}")
        if media_type not in HTML_TYPES:
            found_type = media_type or "of unknown type"
            return (
                Skipped(discovered.url, f"not HTML but {found_type}")
                if discovered.clicks > 0
                else Failure(discovered.url, "not HTML", f"it is {found_type}")
            )
        if failure := oversized_url(discovered.url if self._as_asked else url):  # the target of a redirect
            return failure
        if self._as_asked:
            validators = _validators(response.headers) if url == urldefrag(discovered.url).url else None
            return Page(discovered.url, response.body, datetime.now(UTC), charset, validators)
        if url in self._fetched:
            return Skipped(discovered.url, "redirected to a page that was fetched before")
        self._fetched.add(url)
        return Page(url, response.body, datetime.now(UTC), charset, _validators(response.headers))

    def request(self, discovered: DiscoveredUrl) -> Request:
        """Return the request for an address of the frontier."""
        validators = self._validators.get(discovered.url, Validators())
        conditions = {name: value for name, value in zip(CONDITIONS, validators, strict=True) if value}
        meta = {DISCOVERED_URL: discovered, "handle_httpstatus_list": [304] if conditions else []}
        return Request(
            discovered.url,
            headers=conditions,
            callback=self.page_arrived,
            errback=self.page_failed,
            meta=meta,
        )


class Schedule(BaseScheduler):
    """Returns requests in the order of the frontier, after redirected and repeated requests."""

    def __init__(self) -> None:
        self._repeated_requests: deque[Request] = deque()

    def open(self, spider: Spider) -> None:
        """Start scheduling for a spider."""
        assert isinstance(spider, PageSpider)
        self._spider = spider

    def has_pending_requests(self) -> bool:
        """Return whether any request is left, perhaps only later."""
        return bool(self._repeated_requests) or self._spider.frontier.has_urls_left

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request that is repeated or redirected."""
        self._repeated_requests.append(request)
        return True

    def next_request(self) -> Request | None:
        """Return the request to send now, if any."""
        if self._repeated_requests:
            return self._repeated_requests.popleft()
        discovered = self._spider.frontier.next_url()
        return None if discovered is None else self._spider.request(discovered)


def _is_conditional(request: Request) -> bool:
    return any(name in request.headers for name in CONDITIONS)


def _validators(headers: Headers) -> Validators | None:
    """Return the validators of a response, unless they could not be sent back."""
    header_texts = ((headers.get(name) or b"").decode("latin-1") for name in ("ETag", "Last-Modified"))
    usable = [
        text if text.isascii() and text.isprintable() and len(text) <= _LONGEST_VALIDATOR else ""
        for text in header_texts
    ]
    return Validators(*usable) if any(usable) else None
