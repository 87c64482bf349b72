"""Which page is fetched next, so that few pages show all templates of a site."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING

from w3lib.url import canonicalize_url

from siteloom.core.urls import oversized_url, url_shape
from siteloom.sources.crawling.crawl_journal import Found
from siteloom.sources.crawling.url_filters import UrlPatterns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.sources.crawling.crawl_journal import Progress

# As long as Scrapy lets them be by default, which is from the longest that browsers once took.
_LONGEST_LINK = 2_083
# So many addresses are tried for each page that is wanted: a site whose links are mostly dead is given up.
_TRIES_PER_PAGE = 5
# So many more where most pages may only be walked on the way to those that are wanted.
_TRIES_TO_GET_THERE = 200
# So many addresses are kept for each page that is wanted: more than pages have links, enough to choose from,
# and a site that makes up ever more of them does not fill the memory.
_KNOWN_PER_PAGE = 200
# An address whose path has the same part more often in a row leads in circles (as Heritrix has it).
_MOST_REPEATED = 2
# Pages of one shape that lead to each other and to nothing else, such as the months of a calendar, are given
# up after so many steps: two years of months; related products are not that far from each other.
_LONGEST_CHAIN = 24


FOUND = "siteloom_found"
"""Under which name a request tells what it is for."""


class Frontier:
    """The addresses that are known and not fetched yet, and how many pages are still wanted.

    First come those that were asked for. Then each page is of the shape that had the fewest; shapes count a
    page more for each link that they are away, or an endless nest of ever new shapes would take all; and they
    count all the more the longer a chain is of pages that only lead to more of their own shape. Where only
    some pages are kept, others are walked until enough of those are known.
    """

    def __init__(
        self,
        most_pages: int,
        patterns: UrlPatterns = UrlPatterns(),
        *,
        most_known: int | None = None,
        is_only_asked: bool = False,
    ) -> None:
        self._wanted = most_pages
        self._patterns = patterns
        self._tries = most_pages * _TRIES_PER_PAGE + (_TRIES_TO_GET_THERE if patterns.include else 0)
        self._most_known = most_pages * _KNOWN_PER_PAGE if most_known is None else most_known
        # No shape can use more than are tried; so many of one leave room for others.
        self._most_of_a_shape = self._tries if most_known is None else most_known
        self._is_only_asked = is_only_asked
        self._under_way = 0
        self._known: set[str] = set()
        self._asked: deque[Found] = deque()
        self._by_shape: dict[tuple[bool, str], deque[Found]] = {}
        self._waiting: Counter[bool] = Counter()  # how many are known that are to be kept, and that are not
        self._taken: Counter[str] = Counter()
        # One entry for each shape that has addresses left, of those that are to be kept and of others: its
        # rank, when it came in, and its name.
        self._turns: dict[bool, list[tuple[int, int, str]]] = {True: [], False: []}
        self._arrivals = 0

    @property
    def has_more(self) -> bool:
        """Whether a page will be wanted, perhaps after those under way have failed."""
        is_any_left = bool(
            self._asked or (not self._is_only_asked and (self._turns[True] or self._turns[False]))
        )
        return self._wanted > 0 and self._tries > 0 and is_any_left

    def add_links(self, urls: Iterable[str], page: Found | None = None) -> tuple[Found, ...]:
        """Take in the links of a page, or what a sitemap lists; those of them that were not known."""
        if page is None:
            return tuple(found for url in urls if self.add(found := Found(url, 1)))
        own = template_shape(page.url)
        alike: list[str] = []
        new: list[Found] = []
        for url in urls:
            if template_shape(url) == own:
                alike.append(url)
            elif self.add(found := Found(url, page.clicks + 1)):
                new.append(found)
        chain = 0 if new else page.chain + 1
        if chain <= _LONGEST_CHAIN:
            new += [found for url in alike if self.add(found := Found(url, page.clicks + 1, chain))]
        return tuple(new)

    def add(self, found: Found) -> bool:
        """Take in an address, unless it is known already, unfit, or a link where enough are known."""
        url, clicks, _ = found
        is_one_too_many = clicks > 0 and len(self._known) >= self._most_known
        if is_one_too_many or url in self._known:
            return False
        if clicks > 0 and (len(url) > _LONGEST_LINK or oversized_url(url)):
            return False
        if clicks > 0 and (_is_circular(url) or self._patterns.excludes(url)):
            return False
        is_kept = self._patterns.keeps(url)
        shape = template_shape(url)
        waiting = self._by_shape.setdefault((is_kept, shape), deque())
        if clicks > 0 and len(waiting) >= self._most_of_a_shape:
            return False
        key = canonicalize_url(url)  # takes far longer than to find it as it is
        if key in self._known:
            return False
        self._known.add(key)
        if clicks == 0:
            self._asked.append(found)
            return True
        waiting.append(found)
        self._waiting[is_kept] += 1
        if len(waiting) == 1:
            self._line_up(is_kept, shape)
        return True

    def take_up(self, progress: Progress) -> None:
        """Go on where an earlier part of the same crawl was."""
        kept_by_url = {one.url: one.is_kept for one in progress.done}
        for found in progress.found:
            if found.url in kept_by_url:
                self._known.add(canonicalize_url(found.url))
                self._taken[template_shape(found.url)] += 1
                self._wanted -= kept_by_url[found.url]
                self._tries -= 1
            else:
                self.add(found)

    def next(self) -> Found | None:
        """The address to fetch now; `ended` is to be called when it has been. None if there is none now."""
        if not self.has_more or self._under_way >= self._wanted:
            return None
        self._under_way += 1
        self._tries -= 1
        if self._asked:
            found = self._asked.popleft()
            self._taken[template_shape(found.url)] += 1
            return found
        is_kept = self._is_next_kept()
        _, _, shape = heapq.heappop(self._turns[is_kept])
        found = self._by_shape[is_kept, shape].popleft()
        self._waiting[is_kept] -= 1
        self._taken[shape] += 1
        if self._by_shape[is_kept, shape]:
            self._line_up(is_kept, shape)
        return found

    def ended(self, *, is_kept: bool) -> None:
        """Note that an address has been fetched, and whether it was a page that is wanted."""
        self._under_way -= 1
        self._wanted -= is_kept

    def _is_next_kept(self) -> bool:
        """Whether one that is to be kept is next: if enough of them are known, or by their ranks."""
        kept, others = self._turns[True], self._turns[False]
        if not kept or not others:
            return bool(kept)
        return self._waiting[True] >= self._wanted or kept[0] < others[0]

    def _line_up(self, is_kept: bool, shape: str) -> None:
        self._arrivals += 1
        _, clicks, chain = self._by_shape[is_kept, shape][0]
        rank = (self._taken[shape] + clicks) * (1 + chain)
        heapq.heappush(self._turns[is_kept], (rank, self._arrivals, shape))


def template_shape(url: str) -> str:
    """The shape of a URL, where all that stands right under the host is alike, and so is all in a folder.

    A site that names its pages there, with or without a slash behind, would otherwise have as many shapes as
    pages.
    """
    address, question_mark, query = url.partition("#")[0].partition("?")
    path, question_mark, keys = url_shape(address.rstrip("/") + question_mark + query).partition("?")
    host, slash, rest = path.partition("/")
    if not slash:  # the home page
        return f"{host}/{question_mark}{keys}"
    if "/" not in rest:
        path = f"{host}/*"
    return path + "/" * address.endswith("/") + question_mark + keys


def _is_circular(url: str) -> bool:
    """Whether the path has a part over and over, as links make it that are relative and should not be."""
    parts = url.partition("?")[0].split("/")
    repeated = 1
    for before, part in pairwise(parts):
        repeated = repeated + 1 if part == before and part else 1
        if repeated > _MOST_REPEATED:
            return True
    return False
