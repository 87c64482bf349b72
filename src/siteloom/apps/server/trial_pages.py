"""Pages that people only try: they are held in memory for a while, and never stored."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import NotFound, SourceError
from siteloom.core.model import Failure, Page
from siteloom.sources.crawling.crawl_source import Crawl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from siteloom.core.settings import Settings
    from siteloom.sources.page_source import SourceItem

_MOST_HELD = 20
_SECONDS_HELD = 60 * 60
_FETCHES_AT_ONCE = 2


class _Trial(NamedTuple):
    page: Page
    begun_at: float


class TrialPages:
    """The pages that are being tried, by keys that no one can guess; the oldest make room for new ones."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._trials: OrderedDict[str, _Trial] = OrderedDict()
        self._lock = Lock()
        self._fetching = BoundedSemaphore(_FETCHES_AT_ONCE)
        self._seconds = seconds
        self._forgetting: tuple[int, str] | None = None

    def add(self, page: Page) -> str:
        """Hold a page; returns its key."""
        key = secrets.token_hex(16)
        with self._lock:
            self._drop_old()
            self._trials[key] = _Trial(page, self._seconds())
            while len(self._trials) > _MOST_HELD:
                self._trials.popitem(last=False)
        return key

    def page(self, key: str) -> Page:
        """The page of a key; a NotFound if it is not held any more."""
        with self._lock:
            self._drop_old()
            trial = self._trials.get(key)
        if trial is None:
            raise NotFound("This page was only tried, and is not there any more: try it again.")
        return trial.page

    def drop_forgotten(self, forgetting: tuple[int, str] | None) -> None:
        """Hold no page any more if the store has forgotten something since; `forgetting` tells what."""
        with self._lock:
            if forgetting != self._forgetting:
                self._trials.clear()
            self._forgetting = forgetting

    def fetch(self, url: str, settings: Settings) -> Page:
        """A page from the web, or a SourceError that says why there is none."""
        with self._fetching:
            return only_page(Crawl((url,), 1, settings=settings.crawl, pages=settings.pages).read())

    def _drop_old(self) -> None:
        oldest = self._seconds() - _SECONDS_HELD
        for key in [key for key, trial in self._trials.items() if trial.begun_at < oldest]:
            del self._trials[key]


def only_page(items: Iterable[SourceItem]) -> Page:
    """The only page among items, or a SourceError that says why there is none."""
    pages: list[Page] = []
    reason = "there is nothing in it"
    for item in items:
        if isinstance(item, Page):
            pages.append(item)
        elif isinstance(item, Failure):
            reason = item.reason
        if len(pages) > 1:
            raise SourceError("Only a single page can be tried: add all of them instead.")
    if not pages:
        raise SourceError(f"No page could be read: {reason}.")
    return pages[0]
