"""Which page is fetched next, so that few pages show all templates of a site."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from typing import NamedTuple

from w3lib.url import canonicalize_url

from siteloom.urls import url_shape

# As long as Scrapy lets them be by default, which is from the longest that browsers once took.
_LONGEST_URL = 2_083
# So many addresses are tried for each page that is wanted: a site whose links are mostly dead is given up.
_TRIES_PER_PAGE = 5
# So many addresses are kept for each page that is wanted: more than pages have links, enough to choose from,
# and a site that makes up ever more of them does not fill the memory.
_KNOWN_PER_PAGE = 200


FOUND = "siteloom_found"
"""Under which name a request tells what it is for."""


class Found(NamedTuple):
    """An address that was found, and how many links away from those that were asked for; 0 for these."""

    url: str
    clicks: int


class Frontier:
    """The addresses that are known and not fetched yet, and how many pages are still wanted.

    First come those that were asked for. Then each page is of the shape that had the fewest; shapes count a
    page more for each link that they are away, or an endless nest of ever new shapes would take all.
    """

    def __init__(self, most_pages: int) -> None:
        self._wanted = most_pages
        self._tries = most_pages * _TRIES_PER_PAGE
        self._most_known = most_pages * _KNOWN_PER_PAGE
        self._under_way = 0
        self._known: set[str] = set()
        self._asked: deque[Found] = deque()
        self._by_shape: dict[str, deque[Found]] = {}
        self._taken: Counter[str] = Counter()
        # One entry for each shape that has addresses left: its rank, when it came in, and its name.
        self._turns: list[tuple[int, int, str]] = []
        self._arrivals = 0

    @property
    def has_more(self) -> bool:
        """Whether a page will be wanted, perhaps after those under way have failed."""
        return self._wanted > 0 and self._tries > 0 and bool(self._asked or self._turns)

    def add(self, url: str, clicks: int) -> bool:
        """Take in an address, unless it is known already, too long, or a link where enough are known."""
        is_one_too_many = clicks > 0 and len(self._known) >= self._most_known
        if is_one_too_many or len(url) > _LONGEST_URL or url in self._known:
            return False
        key = canonicalize_url(url)  # takes far longer than to find it as it is
        if key in self._known:
            return False
        self._known.add(key)
        found = Found(url, clicks)
        if clicks == 0:
            self._asked.append(found)
            return True
        shape = template_shape(url)
        waiting = self._by_shape.setdefault(shape, deque())
        waiting.append(found)
        if len(waiting) == 1:
            self._line_up(shape)
        return True

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
        _, _, shape = heapq.heappop(self._turns)
        found = self._by_shape[shape].popleft()
        self._taken[shape] += 1
        if self._by_shape[shape]:
            self._line_up(shape)
        return found

    def ended(self, *, is_page: bool) -> None:
        """Note that an address has been fetched, and whether it was a page."""
        self._under_way -= 1
        self._wanted -= is_page

    def _line_up(self, shape: str) -> None:
        self._arrivals += 1
        rank = self._taken[shape] + self._by_shape[shape][0].clicks
        heapq.heappush(self._turns, (rank, self._arrivals, shape))


def template_shape(url: str) -> str:
    """The shape of a URL, where all that stands right under the host is alike.

    A site that names its pages there would otherwise have as many shapes as pages.
    """
    path, question_mark, keys = url_shape(url).partition("?")
    host, _, rest = path.partition("/")
    if rest and "/" not in rest:
        path = f"{host}/*"
    return path + question_mark + keys
