"""Downloader middlewares for Scrapy.

They decide what may be fetched (`Gate`, `Robots`), follow redirects (`Redirects`, `PageRefreshes`), limit
sizes (`Unpacking`), and slow down and retry (`Retries`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from protego import Protego
from scrapy import Request, signals
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import CannotResolveHostError, DownloadCancelledError
from scrapy.http.request import NO_CALLBACK

from siteloom.core.urls import site_of
from siteloom.sources.crawling.crawl_problems import (
    CrawlProblem,
    RequestRefused,
    host_problem,
    ignored_as,
    problem_from_error,
)
from siteloom.sources.crawling.crawl_source import FORBIDDEN
from siteloom.sources.crawling.frontier import DISCOVERED_URL
from siteloom.sources.crawling.url_filters import ALLOWING_PRIVATE, PRIVATE, resolver

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from siteloom.sources.crawling.spider import PageSpider

CONDITIONS = ("If-None-Match", "If-Modified-Since")
"""Request headers with which a server may answer that a page has not changed."""

# More than any valid page needs; browsers allow 20.
MOST_REDIRECTS = 10
# The shortest and longest wait, in seconds, after a site reports that it is overloaded.
_SHORTEST_WAIT = 1.0
LONGEST_WAIT = 60.0
_HAS_ENOUGH = (429, 503)
# The name of this program in the rules of robots.txt.
_OWN_NAME = "Siteloom"
# The part of robots.txt that is read: as much as Google reads; RFC 9309 requires no less.
_MOST_ROBOTS_BYTES = 512_000

SITEMAP = "siteloom_sitemap"
"""The metadata key of requests for sitemaps: how many other sitemaps led to it."""


class Gate:
    """Drops requests that may not be made: links may only lead to the sites of the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Refuse a request, or assign it to the download slot of its site."""
        spider = cast("PageSpider", self._crawler.spider)
        if not isinstance(resolver(), self._crawler.settings["TWISTED_DNS_RESOLVER"]):
            raise TypeError("any address could be reached")
        site = site_of(request.url)
        is_of_link = DISCOVERED_URL in request.meta and request.meta[DISCOVERED_URL].clicks > 0
        if (is_of_link or SITEMAP in request.meta) and site not in spider.sites:
            raise RequestRefused(CrawlProblem("redirected to another site", is_expected=True))
        if is_of_link and spider.patterns.excludes(request.url):
            raise RequestRefused(CrawlProblem("redirected to what is excluded", is_expected=True))
        request.meta["download_slot"] = site


class _Rules(NamedTuple):
    """The rules of a host's robots.txt, or why nothing is fetched from it."""

    rules: Protego
    problem: CrawlProblem | None = None


class Robots:
    """Obeys robots.txt as RFC 9309 requires: a host without one allows all, one that fails allows nothing.

    Scrapy's own middleware would read a "not found" page as rules, and treat a failing host as one that
    allows all; and if several requests wait for the same robots.txt, Scrapy 2.19 lets all but two through
    unchecked.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._rules: dict[str, _Rules] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._delays: dict[str, float] = {}
        # Connected after AutoThrottle, which resets the delay to its own minimum.
        crawler.signals.connect(self._keep_distance, signal=signals.response_downloaded)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Refuse a request that the host's robots.txt forbids."""
        if request.meta.get("dont_obey_robotstxt"):  # the request for robots.txt itself
            return
        origin = origin_of(request.url)
        async with self._turns[origin]:
            if origin not in self._rules:
                self._rules[origin] = await self._ask(origin)
                self._note(origin, request)
        problem = self._rules[origin].problem
        if problem is not None:
            raise RequestRefused(problem)
        if self.forbids(request.url):
            raise RequestRefused(CrawlProblem(FORBIDDEN, is_expected=True))

    def forbids(self, url: str) -> bool:
        """Return whether the host's robots.txt, if it was read, forbids an address."""
        host_rules = self._rules.get(origin_of(url))
        return host_rules is not None and not host_rules.rules.can_fetch(url, _OWN_NAME)

    async def _ask(self, origin: str) -> _Rules:
        request = Request(f"{origin}/robots.txt", NO_CALLBACK, meta={"dont_obey_robotstxt": True})
        assert self._crawler.engine is not None
        nothing = Protego.parse("")
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception as error:  # noqa: BLE001 - any error means that there is no robots.txt
            problem = problem_from_error(error, self._crawler.settings.getint("DOWNLOAD_MAXSIZE"))
            if problem == _too_many_redirects().problem:  # which RFC 9309 takes for none
                return _Rules(nothing)
            return _Rules(nothing, host_problem(error, problem) or _no_rules(problem))
        if response.status == 200:
            text = response.body[:_MOST_ROBOTS_BYTES].decode("utf-8-sig", "ignore")
            return _Rules(Protego.parse(text))
        if 400 <= response.status < 500 and response.status not in _HAS_ENOUGH:
            return _Rules(nothing)
        return _Rules(nothing, _no_rules(CrawlProblem(f"status {response.status}")))

    def _note(self, origin: str, request: Request) -> None:
        """Apply the crawl delay and the sitemaps of a host's robots.txt."""
        rules, problem = self._rules[origin]
        if problem is None:
            requested_delay = rules.crawl_delay(_OWN_NAME) or 0.0
            slot = request.meta["download_slot"]
            self._delays[slot] = max(self._delays.get(slot, 0.0), min(requested_delay, LONGEST_WAIT))
            self._keep_distance(request)
            cast("PageSpider", self._crawler.spider).look_for_sitemaps(origin, rules.sitemaps, request)

    def _keep_distance(self, request: Request) -> None:
        """Apply the crawl delay that a host requested."""
        assert self._crawler.engine is not None
        key = request.meta.get("download_slot", "")
        slot = self._crawler.engine.downloader.slots.get(key)
        if slot is not None:
            slot.delay = max(slot.delay, self._delays.get(key, 0.0))


def origin_of(url: str) -> str:
    """Return the scheme, host and port of an address, which one robots.txt applies to."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _no_rules(problem: CrawlProblem) -> CrawlProblem:
    why = "; ".join(filter(None, problem[:2]))
    return CrawlProblem(
        "robots.txt cannot be read", f"{why}; so nothing of its host is fetched", is_expected=True
    )


class Redirects(RedirectMiddleware):
    """Follows HTTP redirects."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        return _follow_redirect(response, partial(super().process_response, request, response))


class PageRefreshes(MetaRefreshMiddleware):
    """Follows refresh instructions in pages."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        return _follow_redirect(response, partial(super().process_response, request, response))


def _follow_redirect(response: Response, follow: Callable[[], Request | Response]) -> Request | Response:
    with ignored_as(_too_many_redirects()), suppress(ValueError):
        return unconditional(follow())
    return response  # the target is not a valid address, like http://[


def unconditional(answer: Request | Response) -> Request | Response:
    """Remove the conditional headers from a request, because they only apply to the original address."""
    if isinstance(answer, Request):
        for name in CONDITIONS:
            answer.headers.pop(name, None)
    return answer


def _too_many_redirects() -> RequestRefused:
    return RequestRefused(CrawlProblem("too many redirects", f"more than {MOST_REDIRECTS}"))


class Unpacking(HttpCompressionMiddleware):
    """Decompresses responses."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Cancel the download if the decompressed body is too large."""
        with ignored_as(DownloadCancelledError()):
            return super().process_response(request, response)


class Retries(RetryMiddleware):
    """Retries requests that may succeed later, and slows down when a site is overloaded."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Increase the delay if the site reports that it is overloaded."""
        if response.status in _HAS_ENOUGH:
            self._slow_down(request, response)
        return super().process_response(request, response)

    def process_exception(self, request: Request, exception: Exception) -> Request | Response | None:  # type: ignore[override]
        """Do not retry refused requests."""
        if isinstance(exception, CannotResolveHostError):
            host = urlsplit(request.url).hostname
            if host in resolver().refused:
                raise RequestRefused(
                    CrawlProblem(PRIVATE, f"{host} is within a private network: {ALLOWING_PRIVATE}")
                )
        return super().process_exception(request, exception)

    def _slow_down(self, request: Request, response: Response) -> None:
        assert self.crawler.engine is not None
        slot = self.crawler.engine.downloader.slots.get(request.meta["download_slot"])
        if slot is not None:
            retry_after = (response.headers.get("Retry-After") or b"").decode("latin-1")
            seconds = float(retry_after) if retry_after.isdecimal() else 0.0
            slot.delay = min(max(2 * slot.delay, seconds, _SHORTEST_WAIT), LONGEST_WAIT)
