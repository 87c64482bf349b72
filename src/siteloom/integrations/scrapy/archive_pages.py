"""Scrapy middlewares that keep responses in a workspace or a WARC file."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from scrapy import signals
from scrapy.exceptions import NotConfigured

from siteloom.core.errors import OutputError
from siteloom.integrations.scrapy.project_settings import project_folder
from siteloom.operations.page_import import import_pages
from siteloom.sources.page_source import Items
from siteloom.sources.warc_writer import open_warc
from siteloom.store.workspace_folder import open_store

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

    from siteloom.core.model import Page
    from siteloom.core.settings import StoreSettings


_log = logging.getLogger(__name__)

ARCHIVE_SETTING = "SITELOOM_WARC"


class ArchiveMiddleware:
    """A downloader middleware that writes responses to the archive that `SITELOOM_WARC` names.

    It writes all responses of web servers: pages, redirects, errors that will be retried, robots.txt, images
    of a media pipeline. Responses from Scrapy's cache were fetched by an earlier crawl, and are not written
    again.
    """

    def __init__(self, path: Path, stats: StatsCollector) -> None:
        self._opened = ExitStack()
        self._archive = self._opened.enter_context(open_warc(path))
        self._stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware; an archive that cannot be written raises before anything is fetched."""
        name = crawler.settings.get(ARCHIVE_SETTING)
        if not name:
            raise NotConfigured(f"{ARCHIVE_SETTING} names no archive to write to, such as crawl.warc.gz.")
        assert crawler.stats is not None
        middleware = cls(project_folder() / name, crawler.stats)
        crawler.signals.connect(middleware.close, signal=signals.spider_closed)
        return middleware

    def process_response(self, request: Request, response: Response) -> Response:
        """Write an answer and pass it on."""
        if (
            "cached" not in response.flags
            and request.method != "HEAD"  # it has no body, and would be read as an empty page
            and request.url.startswith(("http://", "https://"))
        ):
            headers = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, values in response.headers.items()
                for value in values
            ]
            url = urldefrag(response.url).url
            try:
                self._archive.write_response(url, response.status, headers, response.body, datetime.now(UTC))
                self._stats.inc_value("siteloom/archived")
            except OutputError as error:
                _log.error("%s is missing in the archive: %s", url, error)
                self._stats.inc_value("siteloom/not_archived")
        return response

    def close(self) -> None:
        """Close the archive."""
        self._opened.close()


# Each batch is a run in the history of the workspace, so batches should be few; but little should be lost if
# the process is killed, and it should need little memory. Between batches, others can write to the workspace:
# people who work in it, and other spiders.
_PAGES_AT_A_TIME = 1_000
_BYTES_AT_A_TIME = 32_000_000
# If others write for so long that more batches are pending, the crawl waits, too.
_MOST_TIMES_WAITING = 2


class PageKeeper:
    """Stores pages in a workspace; once it is closed, all are stored or reported as lost."""

    def __init__(self, settings: StoreSettings, origin: str) -> None:
        self._store = open_store(settings, create=True, on_busy=_tell_of_waiting)
        self._origin = origin
        self._thread = ThreadPoolExecutor(1, "siteloom-keeping")
        self._pages: list[Page] = []
        self._bytes = 0
        self._writing: deque[Future[int]] = deque()
        self._stored_pages = 0

    def add(self, page: Page) -> None:
        """Add a page, which is stored with a later batch or on closing."""
        self._pages.append(page)
        self._bytes += len(page.html)
        if len(self._pages) >= _PAGES_AT_A_TIME or self._bytes >= _BYTES_AT_A_TIME:
            self._write()
            self._wait_for_writes(_MOST_TIMES_WAITING)

    def close(self) -> int:
        """Write the remaining pages, and return how many were stored."""
        if self._pages:
            self._write()
        self._wait_for_writes(0)
        self._thread.shutdown()
        self._store.close()
        return self._stored_pages

    def _write(self) -> None:
        self._writing.append(self._thread.submit(self._ingest, tuple(self._pages)))
        self._pages.clear()
        self._bytes = 0

    def _wait_for_writes(self, allowed_pending: int) -> None:
        while len(self._writing) > allowed_pending:
            self._stored_pages += self._writing.popleft().result()

    def _ingest(self, pages: tuple[Page, ...]) -> int:
        try:
            return import_pages(self._store, [Items(pages)], names=[self._origin]).kept
        except Exception as error:  # noqa: BLE001 - no error may stop the crawl
            _log.error("%d pages are lost to the workspace: %s", len(pages), error)
            return 0


def _tell_of_waiting() -> None:
    _log.debug("another process is writing to the workspace: pages wait for it")
