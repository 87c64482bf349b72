"""What Scrapy does to each request and answer besides what it does anyway.

What may be fetched at all (`Gate`, `Robots`), where it is now (`Redirects`, `Doors`), how large it may be
(`Unpacking`), and when to slow down (`Patience`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import CannotResolveHostError, DownloadCancelledError

from siteloom.pages.crawl.frontier import FOUND
from siteloom.pages.crawl.problems import Problem, Refused, ignored_as
from siteloom.pages.crawl.resolving import resolver
from siteloom.urls import site_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from siteloom.pages.crawl.spider import PageSpider

# More than any sound page takes; browsers take 20.
MOST_REDIRECTS = 10
# A site that says it has enough is left alone for at least and at most so many seconds.
_SHORTEST_WAIT = 1.0
LONGEST_WAIT = 60.0
_HAS_ENOUGH = (429, 503)
_WITHIN = (
    "is within a private network: to allow this, set private = true under [crawl] in siteloom.toml, "
    "or SITELOOM_CRAWL_PRIVATE=true, and start Siteloom again"
)


class Gate:
    """Lets requests through that may be made: those of links only to the sites of the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Refuse a request, or say which other ones it must keep its distance to."""
        spider = cast("PageSpider", self._crawler.spider)
        if not isinstance(resolver(), self._crawler.settings["TWISTED_DNS_RESOLVER"]):
            raise TypeError("any address could be reached")
        site = site_of(request.url)
        if FOUND in request.meta and request.meta[FOUND].clicks > 0 and site not in spider.sites:
            raise Refused(Problem("redirected to another site", is_expected=True))
        request.meta["download_slot"] = site


class Robots(RobotsTxtMiddleware):
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
        forbidden = Refused(Problem("forbidden by robots.txt", is_expected=True))
        async with self._turns[urlsplit(request.url).netloc]:
            with ignored_as(forbidden):
                await super().process_request(request)


class Redirects(RedirectMiddleware):
    """Goes where a server says that a page is now."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        with ignored_as(_too_many_redirects()):
            return super().process_response(request, response)


class Doors(MetaRefreshMiddleware):
    """Goes where a page says that another is."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        with ignored_as(_too_many_redirects()):
            return super().process_response(request, response)


def _too_many_redirects() -> Refused:
    return Refused(Problem("too many redirects", f"more than {MOST_REDIRECTS}"))


class Unpacking(HttpCompressionMiddleware):
    """Unpacks what servers send packed."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Stop when it is too large, as if it had come so large."""
        with ignored_as(DownloadCancelledError()):
            return super().process_response(request, response)


class Patience(RetryMiddleware):
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
            if host in resolver().refused:
                raise Refused(Problem("private address", f"{host} {_WITHIN}"))
        return super().process_exception(request, exception)

    def _slow_down(self, request: Request, response: Response) -> None:
        assert self.crawler.engine is not None
        slot = self.crawler.engine.downloader.slots.get(request.meta["download_slot"])
        if slot is not None:
            asked = (response.headers.get("Retry-After") or b"").decode("latin-1")
            seconds = float(asked) if asked.isdecimal() else 0.0
            slot.delay = min(max(2 * slot.delay, seconds, _SHORTEST_WAIT), LONGEST_WAIT)
