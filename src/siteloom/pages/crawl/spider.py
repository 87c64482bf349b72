"""How pages are fetched: politely, within limits, and from nowhere that is not public.

Scrapy does the work. What it is told besides its settings: which page comes next (`Schedule`), what is done
to each request and answer (`siteloom.pages.crawl.middlewares`), and which addresses hosts have
(`siteloom.pages.crawl.resolving`).
"""

from __future__ import annotations

import codecs
from collections import deque
from datetime import UTC, datetime
from email.message import Message
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urldefrag, urlsplit

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import CrawlerProcess
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import DownloadFailedError, ResponseDataLossError, StopDownload
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor

from siteloom.model import Failure, Page, Skipped
from siteloom.pages.crawl.frontier import FOUND, Found, Frontier
from siteloom.pages.crawl.middlewares import (
    LONGEST_WAIT,
    MOST_REDIRECTS,
    Doors,
    Gate,
    Patience,
    Redirects,
    Robots,
    Unpacking,
)
from siteloom.pages.crawl.problems import problem_of
from siteloom.pages.crawl.resolving import AnyAddresses, PublicAddresses
from siteloom.pages.warc import HTML_TYPES
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response
    from twisted.python.failure import Failure as TwistedFailure

    from siteloom.pages.crawl.source import Crawl

# A page that goes on to another after so many seconds is a door to it; after more, it only renews itself.
_DOOR_SECONDS = 5
# Of several sites, as many as Scrapy fetches at once by default.
_AT_ONCE = 16


def run_crawl(crawl: Crawl, tell: Callable[[Page | Failure | Skipped], None]) -> None:
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
        "ROBOTSTXT_OBEY": True,
        "ROBOTSTXT_USER_AGENT": "Siteloom",
        "DOWNLOAD_DELAY": settings.delay,
        "DOWNLOAD_DELAY_JITTER": 0,
        "CONCURRENT_REQUESTS": _AT_ONCE,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "AUTOTHROTTLE_ENABLED": True,  # slows down for slow sites, and gets back to speed after `Patience`
        "AUTOTHROTTLE_START_DELAY": settings.delay,
        "AUTOTHROTTLE_MAX_DELAY": LONGEST_WAIT,
        "DOWNLOAD_TIMEOUT": settings.timeout,
        "DOWNLOAD_MAXSIZE": crawl.pages.max_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        # What was too slow or not there will be so again; a connection that broke may not.
        "RETRY_EXCEPTIONS": [DownloadFailedError, ResponseDataLossError],
        "REDIRECT_MAX_TIMES": MOST_REDIRECTS,
        "METAREFRESH_MAXDELAY": _DOOR_SECONDS,
        "DOWNLOAD_HANDLERS": dict.fromkeys(("data", "file", "ftp", "s3")),
        # Behind a proxy, it is the proxy that finds the addresses of hosts, and cannot be asked about them.
        "HTTPPROXY_ENABLED": settings.private,
        "TWISTED_DNS_RESOLVER": AnyAddresses if settings.private else PublicAddresses,
        "SCHEDULER": Schedule,
        "DOWNLOADER_MIDDLEWARES": {
            Gate: 50,  # before anything else, such as a look at the robots.txt of another site
            RobotsTxtMiddleware: None,
            Robots: 100,
            RetryMiddleware: None,
            Patience: 550,
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


class PageSpider(Spider):
    """Gives pages, and what became of all else, to `tell`."""

    name = "siteloom"

    def __init__(self, crawl: Crawl, tell: Callable[[Page | Failure | Skipped], None]) -> None:
        super().__init__()
        self.frontier = Frontier(crawl.most_pages)
        self.sites = {site_of(url) for url in crawl.urls}
        """The sites that links are followed on: those that were asked for, and where these led to."""
        self._follows = crawl.follows
        self._limit = crawl.pages.max_bytes
        self._tell = tell
        self._fetched: set[str] = set()
        self._links = LinkExtractor()
        for url in crawl.urls:
            self.frontier.add(url, 0)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """As Scrapy makes it."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin_body, signal=signals.headers_received)
        return spider

    def begin_body(self, headers: Headers, request: Request) -> None:
        """Do not load what is no page."""
        if FOUND in request.meta and _content_type(headers).media_type not in HTML_TYPES:
            raise StopDownload(fail=False)

    def arrived(self, response: Response) -> None:
        """Tell of what a server answered."""
        assert response.request is not None
        found: Found = response.request.meta[FOUND]
        is_page = False
        try:
            item = self._item(response, found)
            is_page = isinstance(item, Page)
            self._tell(item)
            if is_page and self._follows:
                if found.clicks == 0:  # else it is on one of them
                    self.sites.add(site_of(response.url))
                self._follow(response, found.clicks + 1)
        finally:
            self.frontier.ended(is_page=is_page)

    def failed(self, failure: TwistedFailure) -> None:
        """Tell why there is no answer."""
        request: Request = failure.request  # type: ignore[attr-defined]
        found: Found = request.meta[FOUND]
        problem = problem_of(failure.value, self._limit)
        try:
            if problem.is_expected and found.clicks > 0:
                self._tell(Skipped(found.url, problem.reason))
            else:
                is_moved = "redirect_urls" in request.meta
                details = [problem.detail, f"redirected to {request.url}" if is_moved else ""]
                self._tell(Failure(found.url, problem.reason, "; ".join(filter(None, details))))
        finally:
            self.frontier.ended(is_page=False)

    def _item(self, response: Response, found: Found) -> Page | Failure | Skipped:
        url = urldefrag(response.url).url
        media_type, charset = _content_type(response.headers)
        if response.status != 200:
            return Failure(found.url, f"status {response.status}")
        if media_type not in HTML_TYPES:
            what = media_type or "of unknown type"
            return (
                Skipped(found.url, f"not HTML but {what}")
                if found.clicks > 0
                else Failure(found.url, "not HTML", f"it is {what}")
            )
        if url in self._fetched:
            return Skipped(found.url, "redirected to a page that was fetched before")
        self._fetched.add(url)
        return Page(url, response.body, datetime.now(UTC), charset)

    def _follow(self, response: Response, clicks: int) -> None:
        if isinstance(response, TextResponse):
            for link in self._links.extract_links(response):
                if urlsplit(link.url).scheme in ("http", "https") and site_of(link.url) in self.sites:
                    self.frontier.add(urldefrag(link.url).url, clicks)


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
        if found is None:
            return None
        return Request(
            found.url, callback=self._spider.arrived, errback=self._spider.failed, meta={FOUND: found}
        )


class _ContentType(NamedTuple):
    media_type: str
    charset: str | None


def _content_type(headers: Headers) -> _ContentType:
    value = headers.get("Content-Type")
    if not value:
        return _ContentType("", None)
    message = Message()
    message["Content-Type"] = value.decode("latin-1")
    charset = message.get_content_charset()
    try:
        known = charset if charset and codecs.lookup(charset) else None
    except (LookupError, ValueError):
        known = None
    return _ContentType(message.get_content_type(), known)
