"""Remove the template from whole crawls: segment each page, count all pages of a site in order, then judge.

Text and blocks consist of segments, so a page is parsed once, and its segments are sent to its site packed
with those of other pages. HTML and main text need trees: then the hashes of segments are sent, and a bit for
each of them is returned to the shard of the page, where it is parsed a second time.
"""

from __future__ import annotations

import tempfile
from array import array
from dataclasses import asdict
from functools import partial
from heapq import nlargest
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from siteloom.core.model import Failure
from siteloom.core.table_files import arrow_schema, arrow_table, load_pyarrow
from siteloom.core.urls import site_of
from siteloom.engines.engine import group_batches
from siteloom.engines.whole_crawls.crawl_run import place_of, row_schema
from siteloom.engines.whole_crawls.page_batches import (
    Packs,
    all_requests,
    failed_by_reason,
    newest,
    pack_content,
    request_column,
    request_page,
    requested_pages,
    shard_pages,
    stage_failure,
    total,
    unpack_content,
    version_cells,
    version_columns,
    versions,
)
from siteloom.extraction.clean_pages import (
    CLEANED_COLUMNS,
    TREE_FORMS,
    SiteTally,
    Verdicts,
    Waiting,
    clean_segments,
    clean_tree,
    count_site,
    judge,
    page_segments,
    plain_segments,
    segments_of_plain,
)
from siteloom.extraction.main_text import check_extractor
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.templates.template_text import SegmentTable
from siteloom.templates.text_blocks import Segmenter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from siteloom.core.model import Page
    from siteloom.core.settings import ParseSettings
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Outbox, StoredContents
    from siteloom.extraction.clean_pages import CleanedForm, CleanedPage
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource
    from siteloom.templates.template_text import SegmentRule
    from siteloom.templates.text_blocks import PageSegments

# Rows are converted to Arrow in small batches, because their blocks take ten times the memory as objects.
_ROWS_AT_ONCE = 256
_BYTES_OF_A_FILE = 128_000_000

_WAITING_IN_MEMORY = 16_000_000  # bytes per site; those of a larger one wait on disk

_SHOWN_SITES = 20


def clean_in_bulk(
    run: BulkRun, shards: Sequence[PageSource], rule: SegmentRule, form: CleanedForm, limits: ParseSettings
) -> Counts:
    """Clean the newest version of every page by all pages of its site; write results and failures by site.

    The counts are the `pages` read, `skipped`, `failed` by reason, the pages `cleaned`, and for text and
    blocks the tallies of the largest `sites`.
    """
    pa = load_pyarrow()
    packs = row_schema(*version_columns(), ("pack", pa.binary()))
    counted = run.shards("segments", partial(_Segmenting, form, limits), shards, packs)
    if form not in TREE_FORMS:
        counted += run.partitions("cleaned", partial(_CleaningSegments, rule, form), of="segments")
        return run.finish(_total(counted))
    request_schema = row_schema(request_column())
    counted += run.partitions("judged", partial(_Judging, rule, form), of="segments", schema=request_schema)
    results = row_schema(("url", pa.string()), ("pack", pa.binary()))
    start = partial(_CleaningTrees, all_requests(run, "judged"), rule, form, limits)
    counted += run.shards("trees", start, shards, results)
    counted += run.partitions("cleaned", partial(_Writing, form), of="trees")
    return run.finish(_total(counted))


def _total(counted: Sequence[Counts]) -> Counts:
    sites = _largest(site for counts in counted for site in counts.get("sites", ()))
    return {**total(counted, "pages", "skipped", "cleaned"), "sites": sites}


def _largest(sites: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the sites with most pages."""
    return nlargest(_SHOWN_SITES, sites, key=lambda site: site[1]["pages"])


def _send_pages(out: Outbox, site: str, pages: Sequence[tuple[int, dict[str, object], Any]]) -> None:
    """Send a row for each page with its place and cells; the first has the packed contents of all."""
    pack: bytes | None = pack_content([content for _, _, content in pages])
    for place, cells, _ in pages:
        out.send(site, place, **cells, pack=pack)
        pack = None


class _Segmenting:
    """Sends the segments of the pages of a shard to their site, or why a page has none."""

    def __init__(self, form: CleanedForm, limits: ParseSettings) -> None:
        self._form = form
        self._limits = limits
        self._segmenter = Segmenter()

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        packs = Packs(partial(_send_pages, out))
        for number, page in shard_pages(shard, lost, step, out):
            try:
                segments = page_segments(page, self._limits, self._segmenter)
            except Exception as error:  # noqa: BLE001 - see broken
                segments = stage_failure(page.url, error)
            size = 0 if isinstance(segments, Failure) else sum(segments.lengths)
            if self._form in TREE_FORMS and not isinstance(segments, Failure):
                segments = segments._replace(lengths=[], texts=[], blocks=[], block_paths=[])
            row = (place_of(out.number, number), version_cells(page), plain_segments(segments))
            packs.add(site_of(page.url), row, size)
        packs.send_remaining()


class _SitePages:
    """The pages of a site in order of arrival, in a temporary file, so that they can be read repeatedly."""

    def __init__(self, waiting: Waiting, batches: Iterable[Any]) -> None:
        pa = load_pyarrow()
        self._waiting = waiting
        self._packs = array("q")
        columns = ["place", *(name for name, _ in version_columns())]
        rows = []
        for batch in batches:
            # A copy, because a selection would keep the whole message of the batch in memory, including
            # packs.
            rows.append(batch.select(columns).take(np.arange(batch.num_rows)))
            for pack in batch.column("pack").drop_null():
                self._packs.append(waiting.put(pack.as_py()))
        self._rows = pa.Table.from_batches(rows)
        self._places = self._rows["place"].to_numpy()

    def versions(self) -> Iterator[PageSegments | Failure]:
        """Yield each version once, in order of arrival."""
        return compress(self._all(), self._are_in(versions(self._rows)))

    def newest(self) -> Iterator[tuple[int, str, PageSegments | Failure]]:
        """Yield the places, URLs and segments of the newest versions."""
        newest_rows = newest(self._rows)
        pages = compress(self._all(), self._are_in(newest_rows))
        for batch in newest_rows.select(["place", "url"]).to_batches(_ROWS_AT_ONCE):
            for place, url in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield place, url, next(pages)

    def _all(self) -> Iterator[PageSegments | Failure]:
        for start in self._packs:
            yield from map(segments_of_plain, unpack_content(self._waiting.get(start)))

    def _are_in(self, rows: Any) -> Iterable[bool]:
        """Return for each page whether it is among the rows."""
        are_in: Iterable[bool] = np.isin(self._places, rows["place"].to_numpy(), assume_unique=True)
        return are_in


class _SegmentedPage(NamedTuple):
    """A page of a site, and its segments."""

    place: int
    url: str
    segments: PageSegments


def _sites(
    batches: Iterator[Any], rule: SegmentRule, out: Outbox
) -> Iterator[tuple[str, SegmentTable, Iterator[_SegmentedPage]]]:
    """Yield each site with the table of all its pages, and the newest readable pages; others are failures."""
    for site, of_site in group_batches("key", batches):
        with tempfile.SpooledTemporaryFile(_WAITING_IN_MEMORY, prefix="siteloom-") as file:
            pages = _SitePages(Waiting(file), of_site)
            table = SegmentTable.from_counts(count_site(pages.versions()), rule)
            yield site, table, _readable(pages.newest(), out)
    out.counts["failed"] = failed_by_reason(out.failures)


def _readable(
    pages: Iterable[tuple[int, str, PageSegments | Failure]], out: Outbox
) -> Iterator[_SegmentedPage]:
    for place, url, segments in pages:
        if isinstance(segments, Failure):
            out.failures.append(segments)
        else:
            yield _SegmentedPage(place, url, segments)


class _CleaningSegments:
    """Writes the text, or the text and the blocks, of the pages of some sites."""

    def __init__(self, rule: SegmentRule, form: CleanedForm) -> None:
        self._rule = rule
        self._form = form

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        sites: list[tuple[str, dict[str, Any]]] = []
        cleaned = 0
        for site, table, pages in _sites(batches, self._rule, out):
            tally = SiteTally()
            files = _Files(site, self._form, out)
            for page in pages:
                try:
                    cleaned_page = clean_segments(site, page.url, page.segments, table)
                except Exception as error:  # noqa: BLE001 - see broken
                    out.failures.append(stage_failure(page.url, error))
                    continue
                tally.pages += 1
                tally.add(cleaned_page.blocks)
                files.add(cleaned_page.row(self._form))
            files.write_remaining()
            cleaned += tally.pages
            if tally.pages:
                sites = _largest([*sites, (site, asdict(tally))])
        out.counts |= {"cleaned": cleaned, "sites": sites}


class _Judging:
    """Sends to the shard of a page which of its segments are template, and for `main` which are repeated."""

    def __init__(self, rule: SegmentRule, form: CleanedForm) -> None:
        self._rule = rule
        self._form = form

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for _, table, pages in _sites(batches, self._rule, out):
            for page in pages:
                try:
                    verdicts = judge(page.segments, table, self._form)
                except Exception as error:  # noqa: BLE001 - see broken
                    out.failures.append(stage_failure(page.url, error))
                    continue
                marks = np.array([*verdicts.template, *verdicts.repeated], bool)
                request_page(page.place, np.packbits(marks).tobytes(), out)


class _CleaningTrees:
    """Parses the judged pages of a shard again, and sends the result of each to its site."""

    def __init__(
        self, requests: StoredContents, rule: SegmentRule, form: CleanedForm, limits: ParseSettings
    ) -> None:
        if form == "main":
            check_extractor()  # on this machine; without it no page could be cleaned
        self._requests = requests
        self._rule = rule
        self._form = form
        self._limits = limits
        self._segmenter = Segmenter()

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        packs = Packs(partial(_send_pages, out))
        for number, page, marks in requested_pages(self._requests, shard, lost, step, out):
            try:
                cleaned = within(self._limits.max_seconds, page.url, partial(self._cleaned, page, marks))
            except Exception as error:  # noqa: BLE001 - see broken
                cleaned = stage_failure(page.url, error)
            if isinstance(cleaned, Failure):
                out.failures.append(cleaned)
            else:
                text = cleaned.html if self._form == "html" else cleaned.text
                row = (place_of(out.number, number), {"url": page.url}, text)
                packs.add(cleaned.site, row, len(text or ""))
        packs.send_remaining()

    def _cleaned(self, page: Page, pack_content: bytes) -> CleanedPage | Failure:
        root = parse(page, self._limits, collect_ids=False)
        if isinstance(root, Failure):
            return root
        segments = self._segmenter.segments(root)
        count = len(segments.keys)
        marks = np.unpackbits(np.frombuffer(pack_content, np.uint8)).astype(bool).tolist()
        verdicts = Verdicts(marks[:count], marks[count : 2 * count] if self._form == "main" else ())
        return clean_tree(site_of(page.url), page.url, root, segments, verdicts, self._rule, self._form)


class _Writing:
    """Writes the results of the pages of sites, in the order of pages."""

    def __init__(self, form: CleanedForm) -> None:
        self._form = form

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        column = "html" if self._form == "html" else "text"
        out.counts["cleaned"] = 0
        for site, of_site in group_batches("key", batches):
            files = _Files(site, self._form, out)
            texts: Iterator[str] = iter(())
            for batch in of_site:
                rows = zip(batch.column("url").to_pylist(), batch.column("pack").to_pylist(), strict=True)
                for url, pack in rows:
                    if pack is not None:
                        texts = iter(unpack_content(pack))
                    files.add({"url": url, column: next(texts)})
                    out.counts["cleaned"] += 1
            files.write_remaining()


class _Files:
    """The files of a site, each small enough for memory."""

    def __init__(self, site: str, form: CleanedForm, out: Outbox) -> None:
        self._site = site
        self._out = out
        self._schema = arrow_schema(CLEANED_COLUMNS[form])
        self._rows: list[dict[str, object]] = []
        self._tables: list[Any] = []

    def add(self, row: dict[str, object]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._pack_rows()
            if sum(table.nbytes for table in self._tables) >= _BYTES_OF_A_FILE:
                self._write()

    def write_remaining(self) -> None:
        if self._rows:
            self._pack_rows()
        if self._tables:
            self._write()

    def _pack_rows(self) -> None:
        self._tables.append(arrow_table(self._schema, self._rows))
        self._rows = []

    def _write(self) -> None:
        self._out.write(self._site, load_pyarrow().concat_tables(self._tables))
        self._tables = []
