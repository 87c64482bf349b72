"""Scrapy middleware that extracts records from responses, and their items."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urldefrag

from scrapy import Field, Item, Spider, signals
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse

from siteloom.core.model import Page
from siteloom.extraction.extractor import BROKEN, Extractor
from siteloom.extraction.record_rows import column_names, lowest_confidence
from siteloom.integrations.scrapy.archive_pages import PageKeeper
from siteloom.integrations.scrapy.project_settings import WRAPPERS_SETTING, project, wrappers_of
from siteloom.sources.source_formats import content_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

    from siteloom.core.model import Record
    from siteloom.core.settings import ParseSettings
    from siteloom.wrappers.matching import NamedWrapper


_URL = "url"
_WRAPPER = "_wrapper"
_CONFIDENCE = "_confidence"


class SiteloomItem(Item):
    """A record: `url`, a field for each attribute, `_wrapper`, and `_confidence`, the lowest of its values.

    A field has a text, or a list of texts if the attribute may have several values. An attribute with the
    name of another field has the field `values.NAME`; attributes that the page lacks have no field.
    """

    _record: Record

    @property
    def record(self) -> Record:
        """The record with typed values, provenance and all confidences, for pipelines."""
        return self._record

    def copy(self) -> Self:
        """Copy the item, as pipelines do, with the same record."""
        copied = super().copy()
        copied._record = self._record  # noqa: SLF001 - of its own kind
        return copied


class ItemMaker:
    """Converts records to items with the fields of all wrappers, so that they fit into one table."""

    def __init__(self, wrappers: Iterable[NamedWrapper]) -> None:
        attributes = list(dict.fromkeys(name for named in wrappers for name in named.wrapper.attributes))
        names = column_names(attributes, [_URL, _WRAPPER, _CONFIDENCE])
        self._fields = dict(zip(attributes, names, strict=True))
        fields = {name: Field() for name in (_URL, *names, _WRAPPER, _CONFIDENCE)}
        self._kind = cast("type[SiteloomItem]", type("SiteloomItem", (SiteloomItem,), {"fields": fields}))

    def item(self, record: Record, named: NamedWrapper) -> SiteloomItem:
        """Convert a record of a wrapper to an item."""
        item = self._kind()
        item._record = record  # noqa: SLF001 - the fields of an item are for feeds
        item[_URL] = record.url
        for attribute, texts in record.values.items():
            is_multi = named.wrapper.attributes[attribute].attribute.multi
            item[self._fields[attribute]] = list(texts) if is_multi else texts[0]
        item[_WRAPPER] = named.name
        item[_CONFIDENCE] = lowest_confidence({"confidence": record.confidence})
        return item


_log = logging.getLogger(__name__)

KEEP_SETTING = "SITELOOM_KEEP_UNMATCHED"


class ExtractionMiddleware:
    """A spider middleware that adds items to the output of callbacks, which is passed on unchanged.

    It reads only HTML with status 200, but no response to a HEAD request, which has no body. Pages that match
    no wrapper go to `keeper`, if there is one; failures are counted and never disturb the spider.
    """

    def __init__(
        self,
        wrappers: Sequence[NamedWrapper],
        limits: ParseSettings,
        stats: StatsCollector,
        keeper: PageKeeper | None = None,
    ) -> None:
        self._extractor = Extractor(wrappers, limits)
        self._maker = ItemMaker(wrappers)
        self._stats = stats
        self._keeper = keeper

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware with the wrappers of the project; NotConfigured if there are none."""
        crawl_project = project(crawler.settings)
        wrappers = wrappers_of(crawl_project)
        is_keeping = crawler.settings.getbool(KEEP_SETTING)
        if not wrappers and not is_keeping:
            raise NotConfigured(
                f"Siteloom has no wrapper: name files in {WRAPPERS_SETTING}, or learn one in the workspace "
                f"{crawl_project.store.workspace}, or set {KEEP_SETTING} = True to collect pages to learn "
                "from."
            )
        assert crawler.stats is not None
        assert crawler.spidercls is not None
        keeper = (
            PageKeeper(crawl_project.store, f"scrapy spider {crawler.spidercls.name}") if is_keeping else None
        )
        middleware = cls(wrappers, crawl_project.limits, crawler.stats, keeper)
        crawler.signals.connect(middleware.close, signal=signals.spider_closed)
        return middleware

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the items of a response, and then the output of its callback, which may raise."""
        for item in self._items(response):
            yield item
        async for output in result:
            yield output

    def process_spider_exception(
        self, response: Response, exception: Exception
    ) -> Iterable[SiteloomItem] | None:
        """Return the items if the spider has no callback of its own."""
        return self._items(response) if _lacks_callback(exception) else None

    def close(self, spider: Spider) -> None:
        """Store the remaining pages, and log a summary."""
        if self._keeper is not None:
            self._stats.set_value("siteloom/kept", self._keeper.close())
        counts = ", ".join(
            f"{name} {self._stats.get_value(f'siteloom/{name}', 0):,}"
            for name in ("pages", "records", "unmatched", *(["kept"] if self._keeper is not None else []))
        )
        _log.info("Siteloom: %s", counts, extra={"spider": spider})

    def _items(self, response: Response) -> list[SiteloomItem]:
        if not isinstance(response, HtmlResponse) or response.status != 200:
            return []
        if response.request is not None and response.request.method == "HEAD":
            return []
        self._stats.inc_value("siteloom/pages")
        try:
            return self._extracted(_page(response))
        except Exception:  # noqa: BLE001 - it must not stop the user's own callback
            _log.exception("Extraction failed on %s", response.url)
            self._stats.inc_value(f"siteloom/failed/{BROKEN}")
            return []

    def _extracted(self, page: Page) -> list[SiteloomItem]:
        result = self._extractor.extract(page)
        if result.failure is not None:
            _log.debug("%s: %s (%s)", page.url, result.failure.reason, result.failure.detail)
            self._stats.inc_value(f"siteloom/failed/{result.failure.reason}")
            if not result.match.chosen:
                self._stats.inc_value("siteloom/unmatched")
                if self._keeper is not None:
                    self._keeper.add(page)
            return []
        named = result.wrapper
        assert named is not None
        items = [self._maker.item(record, named) for record in result.records]
        self._stats.inc_value("siteloom/records", len(items))
        self._stats.inc_value(f"siteloom/wrapper/{named.name}", len(items))
        return items


def _lacks_callback(exception: Exception) -> bool:
    """Return whether Scrapy's placeholder for a missing callback raised the exception."""
    raised_by = exception.__traceback__
    while raised_by is not None and raised_by.tb_next is not None:
        raised_by = raised_by.tb_next
    return (
        isinstance(exception, NotImplementedError)
        and raised_by is not None
        and raised_by.tb_frame.f_code is Spider.parse.__code__
    )


def _page(response: HtmlResponse) -> Page:
    return Page(urldefrag(response.url).url, response.body, datetime.now(UTC), _charset(response))


def _charset(response: HtmlResponse) -> str | None:
    """Return the charset that the response was created with, as rendering browsers do, or of its header."""
    # Scrapy's own `encoding` guesses if neither is given, which Siteloom does better itself.
    declared: str | None = getattr(response, "_encoding", None)
    return content_type(response.headers.get("Content-Type")).charset if declared is None else declared
