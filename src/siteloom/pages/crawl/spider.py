"""How pages are fetched: politely, within limits, and from nowhere that is not public.

Scrapy does the work. What it is told besides its settings: which page comes next (`_Schedule`), what may be
fetched at all (`_Gate`, `_Robots`, `_PublicAddresses`), and when to slow down (`_Patience`).
"""

from __future__ import annotations

import asyncio
import codecs
import socket
from collections import defaultdict, deque
from contextlib import contextmanager
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
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    StopDownload,
)
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.internet._resolver import GAIResolver

from siteloom.model import Failure, Page, Skipped
from siteloom.pages.crawl.addresses import is_public
from siteloom.pages.crawl.frontier import Found, Frontier
from siteloom.pages.warc import HTML_TYPES
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response
    from twisted.python.failure import Failure as TwistedFailure

    from siteloom.pages.crawl.source import Crawl

# More than any sound page takes; browsers take 20.
_MOST_REDIRECTS = 10
# A page that goes on to another after so many seconds is a door to it; after more, it only renews itself.
_DOOR_SECONDS = 5
# Of several sites, as many as Scrapy fetches at once by default.
_AT_ONCE = 16
# A site that says it has enough is left alone for at least and at most so many seconds.
_SHORTEST_WAIT = 1.0
_LONGEST_WAIT = 60.0
_HAS_ENOUGH = (429, 503)
_WITHIN = (
    "is within a private network: to allow this, set private = true under [crawl] in siteloom.toml, "
    "or SITELOOM_CRAWL_PRIVATE=true, and start Siteloom again"
)

_FOUND = "siteloom_found"


def run_crawl(crawl: Crawl, tell: Callable[[Page | Failure | Skipped], None]) -> None:
    """Fetch all pages of a crawl and tell of each; once in a process, in its main thread."""
    process = CrawlerProcess(_scrapy_settings(crawl))
    problems: list[TwistedFailure] = []
    process.crawl(_PageSpider, crawl=crawl, tell=tell).addErrback(problems.append)
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
        "AUTOTHROTTLE_ENABLED": True,  # slows down for slow sites, and gets back to speed after `_Patience`
        "AUTOTHROTTLE_START_DELAY": settings.delay,
        "AUTOTHROTTLE_MAX_DELAY": _LONGEST_WAIT,
        "DOWNLOAD_TIMEOUT": settings.timeout,
        "DOWNLOAD_MAXSIZE": crawl.pages.max_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        # What was too slow or not there will be so again; a connection that broke may not.
        "RETRY_EXCEPTIONS": [DownloadFailedError, ResponseDataLossError],
        "REDIRECT_MAX_TIMES": _MOST_REDIRECTS,
        "METAREFRESH_MAXDELAY": _DOOR_SECONDS,
        "DOWNLOAD_HANDLERS": dict.fromkeys(("data", "file", "ftp", "s3")),
        # Behind a proxy, it is the proxy that finds the addresses of hosts, and cannot be asked about them.
        "HTTPPROXY_ENABLED": settings.private,
        "TWISTED_DNS_RESOLVER": _AnyAddresses if settings.private else _PublicAddresses,
        "SCHEDULER": _Schedule,
        "DOWNLOADER_MIDDLEWARES": {
            _Gate: 50,  # before anything else, such as a look at the robots.txt of another site
            RobotsTxtMiddleware: None,
            _Robots: 100,
            RetryMiddleware: None,
            _Patience: 550,
            # Each where the one stands that it is made of.
            MetaRefreshMiddleware: None,
            _Doors: 580,
            HttpCompressionMiddleware: None,
            _Unpacking: 590,
            RedirectMiddleware: None,
            _Redirects: 600,
        },
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
    }


class _AnyAddresses(GAIResolver):
    """Finds the addresses of hosts as the system does."""

    def __init__(self, reactor: Any) -> None:
        super().__init__(reactor, getaddrinfo=self._addresses)  # type: ignore[arg-type]
        self._installed_on = reactor
        self.refused: set[str] = set()
        """Hosts that have addresses, of which none may be connected to."""

    @classmethod
    def from_crawler(cls, _: Crawler, reactor: Any) -> Self:
        return cls(reactor)

    def install_on_reactor(self) -> None:
        self._installed_on.installNameResolver(self)

    def _addresses(self, host: Any, port: Any, *rest: Any) -> list[Any]:
        try:
            return list(socket.getaddrinfo(host, port, *rest))
        except UnicodeError as error:  # a name that no host can have
            raise socket.gaierror(str(error)) from error


class _PublicAddresses(_AnyAddresses):
    """Finds the public addresses of hosts.

    All connections are made to what is found here, at the moment that they are made; also to hosts that are
    written as an address, and behind redirects.
    """

    def _addresses(self, host: Any, port: Any, *rest: Any) -> list[Any]:
        found = super()._addresses(host, port, *rest)
        public = [one for one in found if is_public(one[4][0])]
        if found and not public:
            self.refused.add(host.lower())
        return public


class _PageSpider(Spider):
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
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin_body, signal=signals.headers_received)
        return spider

    def begin_body(self, headers: Headers, request: Request) -> None:
        """Do not load what is no page."""
        if _FOUND in request.meta and _content_type(headers).media_type not in HTML_TYPES:
            raise StopDownload(fail=False)

    def arrived(self, response: Response) -> None:
        """Tell of what a server answered."""
        assert response.request is not None
        found: Found = response.request.meta[_FOUND]
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
        found: Found = request.meta[_FOUND]
        problem = _problem(failure.value, self._limit)
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


class _Problem(NamedTuple):
    """Why there is no page; `is_expected` where a link leads to what no one wants or may have."""

    reason: str
    detail: str = ""
    is_expected: bool = False


class _Refused(IgnoreRequest):
    """A request that is not made."""

    def __init__(self, problem: _Problem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


@contextmanager
def _ignored_as(problem: Exception) -> Iterator[None]:
    """Say for which problem Scrapy drops a request: it does so only in words, which may change."""
    try:
        yield
    except IgnoreRequest as error:
        raise problem from error


def _problem(error: BaseException | None, limit: int) -> _Problem:
    match error:
        case _Refused():
            return error.problem
        case HttpError():
            return _Problem(f"status {error.response.status}")
        case DownloadCancelledError():
            return _Problem("page too large", f"at most {limit:,} bytes are taken")
        case DownloadTimeoutError():
            return _Problem("too slow", str(error))
        case CannotResolveHostError():
            return _Problem("unknown host", str(error))
        case DownloadConnectionRefusedError():
            return _Problem("connection refused")
        case _:
            return _Problem("connection failed", f"{type(error).__name__}: {error}")


class _Schedule(BaseScheduler):
    """Hands out what the frontier says is next; redirected and repeated requests come first."""

    def __init__(self) -> None:
        self._again: deque[Request] = deque()

    def open(self, spider: Spider) -> None:
        """Begin."""
        assert isinstance(spider, _PageSpider)
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
            found.url, callback=self._spider.arrived, errback=self._spider.failed, meta={_FOUND: found}
        )


class _Gate:
    """Lets requests through that may be made: those of links only to the sites of the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Refuse a request, or say which other ones it must keep its distance to."""
        spider = self._crawler.spider
        assert isinstance(spider, _PageSpider)
        if not isinstance(_resolver(), self._crawler.settings["TWISTED_DNS_RESOLVER"]):
            raise TypeError("any address could be reached")
        site = site_of(request.url)
        if _FOUND in request.meta and request.meta[_FOUND].clicks > 0 and site not in spider.sites:
            raise _Refused(_Problem("redirected to another site", is_expected=True))
        request.meta["download_slot"] = site


class _Robots(RobotsTxtMiddleware):
    """Obeys robots.txt.

    Requests to a host are looked at one by one: of several that wait for its robots.txt at the same time,
    Scrapy 2.19 lets all but two through without a look.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Refuse what the host does not want to be fetched."""
        if request.meta.get("dont_obey_robotstxt"):  # it is robots.txt
            return
        forbidden = _Refused(_Problem("forbidden by robots.txt", is_expected=True))
        async with self._turns[urlsplit(request.url).netloc]:
            with _ignored_as(forbidden):
                await super().process_request(request)


class _Redirects(RedirectMiddleware):
    """Goes where a server says that a page is now."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        with _ignored_as(_too_many_redirects()):
            return super().process_response(request, response)


class _Doors(MetaRefreshMiddleware):
    """Goes where a page says that another is."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        with _ignored_as(_too_many_redirects()):
            return super().process_response(request, response)


def _too_many_redirects() -> _Refused:
    return _Refused(_Problem("too many redirects", f"more than {_MOST_REDIRECTS}"))


class _Unpacking(HttpCompressionMiddleware):
    """Unpacks what servers send packed."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Stop when it is too large, as if it had come so large."""
        with _ignored_as(DownloadCancelledError()):
            return super().process_response(request, response)


class _Patience(RetryMiddleware):
    """Repeats what may go well another time, and slows down when a site has enough."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Wait longer from now on if the site says so."""
        if response.status in _HAS_ENOUGH:
            self._slow_down(request, response)
        return super().process_response(request, response)

    def process_exception(self, request: Request, exception: Exception) -> Request | Response | None:  # type: ignore[override]
        """Do not repeat what was refused."""
        if isinstance(exception, CannotResolveHostError):
            host = urlsplit(request.url).hostname
            if host in _resolver().refused:
                raise _Refused(_Problem("private address", f"{host} {_WITHIN}"))
        return super().process_exception(request, exception)

    def _slow_down(self, request: Request, response: Response) -> None:
        assert self.crawler.engine is not None
        slot = self.crawler.engine.downloader.slots.get(request.meta["download_slot"])
        if slot is not None:
            asked = (response.headers.get("Retry-After") or b"").decode("latin-1")
            seconds = float(asked) if asked.isdecimal() else 0.0
            slot.delay = min(max(2 * slot.delay, seconds, _SHORTEST_WAIT), _LONGEST_WAIT)


def _resolver() -> Any:
    """What finds the addresses of hosts for all connections of this process."""
    from twisted.internet import reactor  # noqa: PLC0415 - it is made when the crawl begins

    return reactor.nameResolver
