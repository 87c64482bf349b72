"""Extract one shard; the ExtractedRow that is written."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.model import DamagedPage, Failure, Page, Skipped
from siteloom.core.urls import site_of, url_shape
from siteloom.extraction.extraction_counts import MOST_SHAPES, ExtractionCounts
from siteloom.extraction.extractor import BROKEN, Extractor, mandatory_attributes
from siteloom.extraction.record_rows import record_row, row_digest
from siteloom.sources.page_source import SourceWithSites
from siteloom.wrappers.page_layouts import is_breaching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from siteloom.core.model import Record
    from siteloom.core.settings import ParseSettings
    from siteloom.extraction.extraction_counts import PageCounts
    from siteloom.extraction.extractor import Extracted
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource, SourceItem
    from siteloom.wrappers.matching import NamedWrapper

_log = logging.getLogger(__name__)


class ExtractedRow(NamedTuple):
    """A record on its way to the output: its page, the wrapper that found it, and all of it as JSON.

    `digest` recognises rows that repeat another: see `siteloom.extraction.record_rows.row_digest`.
    """

    url: str
    wrapper: str
    version: int | None
    content: str
    digest: bytes | None = None


class ShardResult(NamedTuple):
    """The result of a shard of pages."""

    rows: list[ExtractedRow]
    failures: list[Failure]
    counts: ExtractionCounts


class ShardExtraction:
    """The work of `extract` on one shard of pages, for an engine: see `siteloom.engines.engine.Work`."""

    def __init__(self, wrappers: Sequence[NamedWrapper], limits: ParseSettings) -> None:
        self._extractor = Extractor(wrappers, limits)
        # Only sites with wrappers are counted one by one: of others there may be millions in a crawl.
        self._sites = frozenset(site for named in wrappers for site in named.sites)

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None]) -> ShardResult:
        """The records, failures and counts of all pages of a shard."""
        result = ShardResult([], [], ExtractionCounts())
        counts = result.counts
        step(0)
        for number, (site, item) in enumerate(_read_with_sites(shard)):
            match item:
                case Page():
                    groups = [counts.total]
                    if site in self._sites:
                        groups.append(counts.sites[site])
                    for group in groups:
                        group.pages += 1
                    if isinstance(item, DamagedPage):
                        _add_failure(result, item.failure, groups)
                    elif number in lost.steps:
                        _add_failure(result, lost.failure(number, item.url), groups)
                    else:
                        self._extract(item, result, groups)
                case Failure():
                    _add_failure(result, item, [counts.total])
                case Skipped():
                    counts.skipped[item.reason] += 1
                case _:
                    pass  # a stylesheet or an image
            step(number + 1)  # to read an item is part of its step
        return result

    def _extract(self, page: Page, result: ShardResult, groups: Sequence[PageCounts]) -> None:
        """Add the records of a page or its failure, and count it in its groups of pages."""
        try:
            extracted = self._extractor.extract(page)
            rows = [] if extracted.failure else _rows(extracted)
        except Exception as error:  # noqa: BLE001 - one page must not end the work on millions
            _log.debug("extraction failed on %s", page.url, exc_info=True)
            _add_failure(result, Failure(page.url, BROKEN, repr(error)), groups)
            return
        counts, match = result.counts, extracted.match
        if match.passed_url:
            site = site_of(page.url)
            counts.site_pages[site] += 1
            counts.fruitless[site] += extracted.failure is not None
        for group in groups:
            group.passed_url += match.passed_url
            group.passed_signature += match.passed_signature
        if extracted.failure is not None:
            _add_failure(result, extracted.failure, groups)
            if extracted.wrapper is None and not match.chosen:
                counts.add_unmatched(url_shape(page.url), most_shapes=MOST_SHAPES)
                for group in groups[1:]:  # the first is that of all pages
                    group.unmatched += 1
            return
        assert extracted.wrapper is not None
        _count_records(counts, extracted.wrapper, extracted.records)
        result.rows.extend(rows)


def _read_with_sites(shard: PageSource) -> Iterator[tuple[str, SourceItem]]:
    """The items of a shard with the sites of pages, which a store may have put under another name."""
    if isinstance(shard, SourceWithSites):
        return shard.read_with_sites()
    return ((site_of(item.url), item) for item in shard.read())


def _rows(extracted: Extracted) -> list[ExtractedRow]:
    named = extracted.wrapper
    assert named is not None
    return [
        ExtractedRow(
            row["url"], named.name, named.version, json.dumps(row, ensure_ascii=False), row_digest(row)
        )
        for record in extracted.records
        for row in [record_row(record, named.name, named.version)]
    ]


def _add_failure(result: ShardResult, failure: Failure, groups: Sequence[PageCounts]) -> None:
    result.failures.append(failure)
    for group in groups:
        group.failures[failure.reason] += 1


def _count_records(counts: ExtractionCounts, named: NamedWrapper, records: Sequence[Record]) -> None:
    mandatory = mandatory_attributes(named.wrapper)
    counts.records += len(records)
    of_wrapper = counts.wrappers[named.name]
    of_wrapper.records += len(records)
    for record in records:
        of_wrapper.filled.update(record.values.keys())
        of_wrapper.withheld.update(record.withheld.keys())
        of_wrapper.breaching.update(
            attribute
            for attribute in record.values
            if is_breaching(named.wrapper.attributes, record, attribute)
        )
        of_wrapper.incomplete += not mandatory <= record.values.keys()
