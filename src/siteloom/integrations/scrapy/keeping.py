"""Pages of a crawl into a workspace, some at a time, in a thread, so that the crawl does not wait."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from siteloom.pages import Items
from siteloom.pipeline import ingest
from siteloom.store import open_store

if TYPE_CHECKING:
    from siteloom.config import StoreSettings
    from siteloom.model import Page

_log = logging.getLogger(__name__)

# Each time is a run in the history of the workspace, so they should be few; but what is lost if the process
# is killed, and the memory that it takes, should be little. In between, others can write to the workspace:
# people who work in it, and other spiders.
_PAGES_AT_A_TIME = 1_000
_BYTES_AT_A_TIME = 32_000_000
# If others write for so long that more is waiting, the crawl must wait, too.
_MOST_TIMES_WAITING = 2


class PageKeeper:
    """Takes pages one by one; all are in the workspace, or told of as lost, once it is closed."""

    def __init__(self, settings: StoreSettings, origin: str) -> None:
        self._store = open_store(settings, create=True, on_busy=_tell_of_waiting)
        self._origin = origin
        self._thread = ThreadPoolExecutor(1, "siteloom-keeping")
        self._pages: list[Page] = []
        self._bytes = 0
        self._writing: deque[Future[int]] = deque()
        self._kept = 0

    def add(self, page: Page) -> None:
        """Take a page; it is in the workspace some pages later, or in the end."""
        self._pages.append(page)
        self._bytes += len(page.html)
        if len(self._pages) >= _PAGES_AT_A_TIME or self._bytes >= _BYTES_AT_A_TIME:
            self._write()
            self._wait_for_all_but(_MOST_TIMES_WAITING)

    def close(self) -> int:
        """Write all that is left; returns how many pages are in the workspace."""
        if self._pages:
            self._write()
        self._wait_for_all_but(0)
        self._thread.shutdown()
        self._store.close()
        return self._kept

    def _write(self) -> None:
        self._writing.append(self._thread.submit(self._ingest, tuple(self._pages)))
        self._pages.clear()
        self._bytes = 0

    def _wait_for_all_but(self, most: int) -> None:
        while len(self._writing) > most:
            self._kept += self._writing.popleft().result()

    def _ingest(self, pages: tuple[Page, ...]) -> int:
        try:
            return ingest(self._store, [Items(pages)], names=[self._origin]).kept
        except Exception as error:  # noqa: BLE001 - whatever it is, the crawl goes on
            _log.error("%d pages are lost to the workspace: %s", len(pages), error)
            return 0


def _tell_of_waiting() -> None:
    _log.debug("another process is writing to the workspace: pages wait for it")
