"""Every answer of a crawl to a WARC archive, as it came over the wire."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from scrapy import signals
from scrapy.exceptions import NotConfigured

from siteloom.errors import OutputError
from siteloom.integrations.scrapy.project import project_folder
from siteloom.pages.warc_writing import open_warc

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

_log = logging.getLogger(__name__)

ARCHIVE_SETTING = "SITELOOM_WARC"


class ArchiveMiddleware:
    """A downloader middleware that writes answers to the archive that `SITELOOM_WARC` names.

    Written are all answers of web servers: pages, redirects, errors that will be tried again, robots.txt,
    images of a media pipeline. What Scrapy's cache answers was fetched by an earlier crawl, and is not
    written again.
    """

    def __init__(self, path: Path, stats: StatsCollector) -> None:
        self._opened = ExitStack()
        self._archive = self._opened.enter_context(open_warc(path))
        self._stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it; an archive that cannot be written is an error before anything is fetched."""
        name = crawler.settings.get(ARCHIVE_SETTING)
        if not name:
            raise NotConfigured(f"{ARCHIVE_SETTING} names no archive to write to, such as crawl.warc.gz.")
        assert crawler.stats is not None
        made = cls(project_folder() / name, crawler.stats)
        crawler.signals.connect(made.close, signal=signals.spider_closed)
        return made

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
        """Let go of the file."""
        self._opened.close()
