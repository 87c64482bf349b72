"""Choose which page to fetch next, so that few pages cover all templates of a site."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING

from w3lib.url import canonicalize_url

from siteloom.core.urls import oversized_url, url_shape
from siteloom.sources.crawling.crawl_journal import DiscoveredUrl
from siteloom.sources.crawling.url_filters import UrlPatterns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.sources.crawling.crawl_journal import CrawlProgress

# Scrapy's default limit, which comes from the longest URL that browsers once accepted.
_LONGEST_LINK = 2_083
# The number of addresses tried per page to collect: a site whose links are mostly dead is abandoned.
_TRIES_PER_PAGE = 5
# Further tries if patterns are given: most pages may only lead to those that match.
_EXTRA_TRIES_WITH_PATTERNS = 200
# The number of known addresses per page to collect: more than the links of a page, enough to choose from, and
# a site that generates addresses without end does not fill the memory.
_KNOWN_URLS_PER_PAGE = 200
# An address whose path repeats a segment more often in a row is circular (as in Heritrix).
_MOST_REPEATED = 2
# Chains of pages of one shape that lead to nothing else, such as the months of a calendar, are abandoned
# after this many steps: two years of months; related products are not that far from each other.
_LONGEST_CHAIN = 24


DISCOVERED_URL = "siteloom_found"
"""The metadata key of requests for pages: their `DiscoveredUrl`."""


class Frontier:
    """The addresses that are known but not fetched yet, and how many pages are still to be collected.

    Start URLs come first. Then each page comes from the shape with the fewest fetched pages. Each link
    between a shape and the start URLs counts as one more page, since an endless nest of new shapes would
    otherwise take all fetches; chains of pages that only lead to more of their own shape count even more. If
    only some pages are to be collected, others are walked for links until enough of those are known.
    """

    def __init__(
        self,
        most_pages: int,
        patterns: UrlPatterns = UrlPatterns(),
        *,
        max_known_urls: int | None = None,
        only_start_urls: bool = False,
    ) -> None:
        self._pages_left = most_pages
        self._patterns = patterns
        self._fetches_left = most_pages * _TRIES_PER_PAGE + (
            _EXTRA_TRIES_WITH_PATTERNS if patterns.include else 0
        )
        self._max_known_urls = most_pages * _KNOWN_URLS_PER_PAGE if max_known_urls is None else max_known_urls
        # No shape can use more than are tried; this limit leaves room for others.
        self._most_of_a_shape = self._fetches_left if max_known_urls is None else max_known_urls
        self._only_start_urls = only_start_urls
        self._under_way = 0
        self._seen_keys: set[str] = set()
        self._start_urls: deque[DiscoveredUrl] = deque()
        self._by_shape: dict[tuple[bool, str], deque[DiscoveredUrl]] = {}
        self._waiting: Counter[bool] = Counter()  # the number of known addresses to collect, and of others
        self._fetched_by_shape: Counter[str] = Counter()
        # One entry for each shape with addresses left, separately for those to collect and for others: rank,
        # order of arrival, name.
        self._shape_queues: dict[bool, list[tuple[int, int, str]]] = {True: [], False: []}
        self._arrivals = 0

    @property
    def has_urls_left(self) -> bool:
        """Whether another page may be fetched, perhaps only if those in progress fail."""
        are_urls_queued = bool(
            self._start_urls
            or (not self._only_start_urls and (self._shape_queues[True] or self._shape_queues[False]))
        )
        return self._pages_left > 0 and self._fetches_left > 0 and are_urls_queued

    def add_links(self, urls: Iterable[str], page: DiscoveredUrl | None = None) -> tuple[DiscoveredUrl, ...]:
        """Add the links of a page or of a sitemap, and return the new ones."""
        if page is None:
            return tuple(link for url in urls if self.add(link := DiscoveredUrl(url, 1)))
        own = template_shape(page.url)
        same_shape: list[str] = []
        added: list[DiscoveredUrl] = []
        for url in urls:
            if template_shape(url) == own:
                same_shape.append(url)
            elif self.add(discovered := DiscoveredUrl(url, page.clicks + 1)):
                added.append(discovered)
        chain = 0 if added else page.chain + 1
        if chain <= _LONGEST_CHAIN:
            added += [
                discovered
                for url in same_shape
                if self.add(discovered := DiscoveredUrl(url, page.clicks + 1, chain))
            ]
        return tuple(added)

    def add(self, discovered: DiscoveredUrl) -> bool:
        """Add an address unless it is known, unsuitable, or over the limit; return whether it was added."""
        url, clicks, _ = discovered
        is_one_too_many = clicks > 0 and len(self._seen_keys) >= self._max_known_urls
        if is_one_too_many or url in self._seen_keys:
            return False
        if clicks > 0 and (len(url) > _LONGEST_LINK or oversized_url(url)):
            return False
        if clicks > 0 and (_is_circular(url) or self._patterns.excludes(url)):
            return False
        is_collected = self._patterns.includes(url)
        shape = template_shape(url)
        waiting = self._by_shape.setdefault((is_collected, shape), deque())
        if clicks > 0 and len(waiting) >= self._most_of_a_shape:
            return False
        key = canonicalize_url(url)  # far slower than looking up the URL itself
        if key in self._seen_keys:
            return False
        self._seen_keys.add(key)
        if clicks == 0:
            self._start_urls.append(discovered)
            return True
        waiting.append(discovered)
        self._waiting[is_collected] += 1
        if len(waiting) == 1:
            self._enqueue_shape(is_collected, shape)
        return True

    def resume(self, progress: CrawlProgress) -> None:
        """Continue where an interrupted crawl stopped."""
        collected_by_url = {fetched.url: fetched.is_collected for fetched in progress.fetched}
        for discovered in progress.discovered:
            if discovered.url in collected_by_url:
                self._seen_keys.add(canonicalize_url(discovered.url))
                self._fetched_by_shape[template_shape(discovered.url)] += 1
                self._pages_left -= collected_by_url[discovered.url]
                self._fetches_left -= 1
            else:
                self.add(discovered)

    def next_url(self) -> DiscoveredUrl | None:
        """Return the address to fetch now, or None; call `ended` when it has been fetched."""
        if not self.has_urls_left or self._under_way >= self._pages_left:
            return None
        self._under_way += 1
        self._fetches_left -= 1
        if self._start_urls:
            discovered = self._start_urls.popleft()
            self._fetched_by_shape[template_shape(discovered.url)] += 1
            return discovered
        is_collected = self._is_collected_next()
        _, _, shape = heapq.heappop(self._shape_queues[is_collected])
        discovered = self._by_shape[is_collected, shape].popleft()
        self._waiting[is_collected] -= 1
        self._fetched_by_shape[shape] += 1
        if self._by_shape[is_collected, shape]:
            self._enqueue_shape(is_collected, shape)
        return discovered

    def ended(self, *, is_collected: bool) -> None:
        """Record that an address has been fetched, and whether its page was collected."""
        self._under_way -= 1
        self._pages_left -= is_collected

    def _is_collected_next(self) -> bool:
        """Return whether the next page is one to collect: if enough of them are known, or by rank."""
        collected, uncollected = self._shape_queues[True], self._shape_queues[False]
        if not collected or not uncollected:
            return bool(collected)
        return self._waiting[True] >= self._pages_left or collected[0] < uncollected[0]

    def _enqueue_shape(self, is_collected: bool, shape: str) -> None:
        self._arrivals += 1
        _, clicks, chain = self._by_shape[is_collected, shape][0]
        rank = (self._fetched_by_shape[shape] + clicks) * (1 + chain)
        heapq.heappush(self._shape_queues[is_collected], (rank, self._arrivals, shape))


def template_shape(url: str) -> str:
    """Return the shape of a URL; all pages directly under the host have one shape, and so have folders.

    A site that puts its pages there, with or without a trailing slash, would otherwise have as many shapes as
    pages.
    """
    address, question_mark, query = url.partition("#")[0].partition("?")
    path, question_mark, keys = url_shape(address.rstrip("/") + question_mark + query).partition("?")
    host, slash, path_below_host = path.partition("/")
    if not slash:  # the home page
        return f"{host}/{question_mark}{keys}"
    if "/" not in path_below_host:
        path = f"{host}/*"
    return path + "/" * address.endswith("/") + question_mark + keys


def _is_circular(url: str) -> bool:
    """Return whether the path repeats a segment, as wrongly relative links produce."""
    segments = url.partition("?")[0].split("/")
    repeated = 1
    for preceding, segment in pairwise(segments):
        repeated = repeated + 1 if segment == preceding and segment else 1
        if repeated > _MOST_REPEATED:
            return True
    return False
