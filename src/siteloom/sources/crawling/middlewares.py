"""What Scrapy does to each request and answer besides what it does anyway.

What may be fetched at all (`Gate`, `Robots`), where it is now (`Redirects`, `Doors`), how large it may be
(`Unpacking`), and when to slow down (`Patience`).
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
    Problem,
    Refused,
    host_problem,
    ignored_as,
    problem_of,
)
from siteloom.sources.crawling.crawl_source import FORBIDDEN
from siteloom.sources.crawling.frontier import FOUND
from siteloom.sources.crawling.url_filters import ALLOWING_PRIVATE, PRIVATE, resolver

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from siteloom.sources.crawling.spider import PageSpider

CONDITIONS = ("If-None-Match", "If-Modified-Since")
"""What makes a server answer that a page is as it was."""

# More than any sound page takes; browsers take 20.
MOST_REDIRECTS = 10
# A site that says it has enough is left alone for at least and at most so many seconds.
_SHORTEST_WAIT = 1.0
LONGEST_WAIT = 60.0
_HAS_ENOUGH = (429, 503)
# How the rules of robots.txt call this program.
_OWN_NAME = "Siteloom"
# As much of robots.txt is read as Google reads; RFC 9309 asks for no less.
_MOST_ROBOTS_BYTES = 512_000

SITEMAP = "siteloom_sitemap"
"""Under which name a request tells that it is for a sitemap, and how many others led to it."""


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
        is_of_link = FOUND in request.meta and request.meta[FOUND].clicks > 0
        if (is_of_link or SITEMAP in request.meta) and site not in spider.sites:
            raise Refused(Problem("redirected to another site", is_expected=True))
        if is_of_link and spider.patterns.excludes(request.url):
            raise Refused(Problem("redirected to what is excluded", is_expected=True))
        request.meta["download_slot"] = site


class _Rules(NamedTuple):
    """What a host wants: the rules of its robots.txt, or why it is left alone."""

    rules: Protego
    problem: Problem | None = None


class Robots:
    """Obeys robots.txt as RFC 9309 has it: a host that has none allows all, one that cannot say so nothing.

    Scrapy's own would take a page that says "not found" for rules, and a host that is out of order for one
    that allows all; and of several requests that wait for its robots.txt at the same time, Scrapy 2.19 lets
    all but two through without a look.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._rules: dict[str, _Rules] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._delays: dict[str, float] = {}
        # Later than what slows down for slow sites, which gets back to its own least delay.
        crawler.signals.connect(self._keep_distance, signal=signals.response_downloaded)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Refuse what the host does not want to be fetched."""
        if request.meta.get("dont_obey_robotstxt"):  # it is robots.txt
            return
        origin = origin_of(request.url)
        async with self._turns[origin]:
            if origin not in self._rules:
                self._rules[origin] = await self._ask(origin)
                self._note(origin, request)
        problem = self._rules[origin].problem
        if problem is not None:
            raise Refused(problem)
        if self.forbids(request.url):
            raise Refused(Problem(FORBIDDEN, is_expected=True))

    def forbids(self, url: str) -> bool:
        """Whether the host of an address does not want it to be fetched, if its robots.txt was read."""
        known = self._rules.get(origin_of(url))
        return known is not None and not known.rules.can_fetch(url, _OWN_NAME)

    async def _ask(self, origin: str) -> _Rules:
        request = Request(f"{origin}/robots.txt", NO_CALLBACK, meta={"dont_obey_robotstxt": True})
        assert self._crawler.engine is not None
        nothing = Protego.parse("")
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no robots.txt
            problem = problem_of(error, self._crawler.settings.getint("DOWNLOAD_MAXSIZE"))
            if problem == _too_many_redirects().problem:  # which RFC 9309 takes for none
                return _Rules(nothing)
            return _Rules(nothing, host_problem(error, problem) or _no_rules(problem))
        if response.status == 200:
            text = response.body[:_MOST_ROBOTS_BYTES].decode("utf-8-sig", "ignore")
            return _Rules(Protego.parse(text))
        if 400 <= response.status < 500 and response.status not in _HAS_ENOUGH:
            return _Rules(nothing)
        return _Rules(nothing, _no_rules(Problem(f"status {response.status}")))

    def _note(self, origin: str, request: Request) -> None:
        """What a host says besides: how long to wait between requests, and where its sitemaps are."""
        rules, problem = self._rules[origin]
        if problem is None:
            asked = rules.crawl_delay(_OWN_NAME) or 0.0
            slot = request.meta["download_slot"]
            self._delays[slot] = max(self._delays.get(slot, 0.0), min(asked, LONGEST_WAIT))
            self._keep_distance(request)
            cast("PageSpider", self._crawler.spider).look_for_sitemaps(origin, rules.sitemaps, request)

    def _keep_distance(self, request: Request) -> None:
        """Wait between requests as long as a host has asked for, if that is not too long."""
        assert self._crawler.engine is not None
        key = request.meta.get("download_slot", "")
        slot = self._crawler.engine.downloader.slots.get(key)
        if slot is not None:
            slot.delay = max(slot.delay, self._delays.get(key, 0.0))


def origin_of(url: str) -> str:
    """The scheme, host and port of an address: what one robots.txt speaks for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _no_rules(problem: Problem) -> Problem:
    why = "; ".join(filter(None, problem[:2]))
    return Problem("robots.txt cannot be read", f"{why}; so nothing of its host is fetched", is_expected=True)


class Redirects(RedirectMiddleware):
    """Goes where a server says that a page is now."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        return _followed(response, partial(super().process_response, request, response))


class Doors(MetaRefreshMiddleware):
    """Goes where a page says that another is."""

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Follow it, but not for ever."""
        return _followed(response, partial(super().process_response, request, response))


def _followed(response: Response, follow: Callable[[], Request | Response]) -> Request | Response:
    with ignored_as(_too_many_redirects()), suppress(ValueError):
        return unconditional(follow())
    return response  # it leads to what is no address, like http://[


def unconditional(answer: Request | Response) -> Request | Response:
    """The same; a request to another address without what only the first one knows its page by."""
    if isinstance(answer, Request):
        for name in CONDITIONS:
            answer.headers.pop(name, None)
    return answer


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
                raise Refused(Problem(PRIVATE, f"{host} is within a private network: {ALLOWING_PRIVATE}"))
        return super().process_exception(request, exception)

    def _slow_down(self, request: Request, response: Response) -> None:
        assert self.crawler.engine is not None
        slot = self.crawler.engine.downloader.slots.get(request.meta["download_slot"])
        if slot is not None:
            asked = (response.headers.get("Retry-After") or b"").decode("latin-1")
            seconds = float(asked) if asked.isdecimal() else 0.0
            slot.delay = min(max(2 * slot.delay, seconds, _SHORTEST_WAIT), LONGEST_WAIT)
