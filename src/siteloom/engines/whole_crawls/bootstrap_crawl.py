"""Learn wrappers for the sites of whole crawls from known records.

The known records are joined with the texts of all pages in their shards to find the pages that may show one.
Only sites with enough such pages are examined further, and of a large site only some pages, which are read
again and collected.
"""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from siteloom.core.errors import SiteloomError, UsageError
from siteloom.core.model import Failure, Page
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.core.table_files import Column, arrow_schema, arrow_table, load_pyarrow
from siteloom.core.urls import site_of
from siteloom.engines.engine import group_batches
from siteloom.engines.whole_crawls.crawl_run import place_of, row_schema
from siteloom.engines.whole_crawls.page_batches import (
    all_requests,
    failed_by_reason,
    newest,
    request_column,
    request_page,
    requested_pages,
    shard_pages,
    stage_failure,
    total,
    version_cells,
)
from siteloom.html.page_text_arrays import TextCollector
from siteloom.html.parser import parse
from siteloom.learning.known_records.aligned_pages import (
    LEAST_PAGES,
    ShownRecords,
    known_records,
    shown_records,
    too_few,
)
from siteloom.learning.known_records.site_bootstrap import SiteBootstrap, none_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.core.model import Seed
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Outbox, StoredContents
    from siteloom.html.time_limit import Lost
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.learning.known_records.bootstrap_result import Bootstrapped
    from siteloom.learning.known_records.site_bootstrap import Method
    from siteloom.sources.page_source import PageSource

    Ints = NDArray[np.int64]

_log = logging.getLogger(__name__)

OUTCOMES = ("wrapped", "failed", "poor")
"""The possible outcomes of a site, as in a workspace: see `siteloom.operations.bootstrap.SiteOutcome`."""

MOST_PAGES = 2_560
"""The number of pages examined of a large site: the same as in a workspace."""

NO_OVERLAP = "not enough overlap"
"""The reason of the failure of a site whose pages do not even seem to show known records."""

# Columns of the table of outcomes, which is partitioned by site.
_COLUMNS = (
    Column("outcome"),
    Column("reason"),
    Column("wrapper"),
    Column("seeds_matched", "integer"),
    Column("pages", "integer"),
    Column("pages_matched", "integer"),
    Column("attributes", "texts"),
    Column("evidence"),
)

# Texts shared by pages are compared once per batch of pages, whose texts are in memory together.
_PAGES_AT_ONCE = 256

_SITES_SHOWN = 20  # in the counts with their outcomes: a crawl may have millions
_HASH_BYTES = 8


def bootstrap_in_bulk(
    run: BulkRun,
    shards: Sequence[PageSource],
    seeds: Sequence[Seed],
    core: Sequence[str],
    schema: Schema = None,
    method: Method = "bits",
    *,
    limits: ParseSettings = ParseSettings(),
) -> Counts:
    """Try to wrap every site with `siteloom.bootstrap` on its pages or some of them, and write each outcome.

    All pages of a site are examined if they are at most `MOST_PAGES`, otherwise those that `chosen_pages`
    chooses. Of several versions of a page the newest counts. The method `bits` would refuse a site with too
    few pages that may show a known record, so it is refused at once; the methods of the paper do not run on
    it either.
    """
    # Problems of the seeds are reported before any page is read.
    if (problem := SiteBootstrap(seeds, core, schema, method).records.unusable_reason) is not None:
        raise UsageError(problem)
    counted = run.shards("matches", partial(_Matching, seeds, core, limits), shards, _matches_schema())
    request_schema = row_schema(request_column())
    refused = run.partitions("sites", partial(_Choosing, len(seeds)), of="matches", schema=request_schema)
    counted += run.shards("chosen", partial(_Sending, all_requests(run, "sites")), shards, _pages_schema())
    wrapped = run.partitions("wrapped", partial(_Wrapping, seeds, core, schema, method, limits), of="chosen")
    outcomes_of_sites = [counts for counts in (*refused, *wrapped) if counts]
    outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
    for counts in outcomes_of_sites:
        outcomes.update(counts["outcomes"])
    sites = _shown_sites(site for counts in outcomes_of_sites for site in counts["sites"])
    return run.finish({"outcomes": outcomes, "sites": sites, **total(counted, "pages", "skipped")})


# ---- which pages may show known records


def _matches_schema() -> Any:
    """Return the schema of a row for the pages of a site in a shard: lists of all pages, and of matches."""
    pa = load_pyarrow()
    return row_schema(
        ("item", pa.list_(pa.int32())),
        ("url", pa.list_(pa.int64())),
        ("content", pa.list_(pa.int64())),
        ("seen", pa.list_(pa.int64())),
        ("is_read", pa.list_(pa.bool_())),
        ("shown_on", pa.list_(pa.int32())),
        ("record", pa.list_(pa.int32())),
        ("bits", pa.list_(pa.float32())),
        ("unread", pa.string()),
    )


@dataclass(slots=True)
class _SitePages:
    """The pages of a site in a shard, and the reason of the first unreadable one."""

    pages: list[tuple[int, int, int, int | None, bool]] = field(default_factory=list)
    shown: list[tuple[int, int, float]] = field(default_factory=list)
    unread: str | None = None

    def add(self, number: int, page: Page, failure: Failure | None) -> None:
        cells = version_cells(page)
        url, content, seen = cells["url"], cells["content"], cells["seen"]
        assert isinstance(url, str)
        assert isinstance(content, bytes)
        assert isinstance(seen, int | None)
        hashed = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
        self.pages.append((number, _as_number(hashed), _as_number(content), seen, failure is None))
        if failure is not None and self.unread is None:
            self.unread = failure.reason

    def cells(self) -> dict[str, object]:
        names = ("item", "url", "content", "seen", "is_read")
        columns: dict[str, object] = dict(zip(names, map(list, zip(*self.pages, strict=True)), strict=True))
        shown = map(list, zip(*self.shown, strict=True)) if self.shown else ([], [], [])
        return {
            **columns,
            **dict(zip(("shown_on", "record", "bits"), shown, strict=True)),
            "unread": self.unread,
        }


def _as_number(digest: bytes) -> int:
    """Convert the first bytes of a digest to an integer of Arrow."""
    return int.from_bytes(digest[:_HASH_BYTES], signed=True)


class _Matching:
    """Joins the pages of a shard with the known records, and sends the matches to their sites."""

    def __init__(self, seeds: Sequence[Seed], core: Sequence[str], limits: ParseSettings) -> None:
        self._limits = limits
        self._known_records = known_records(seeds, tuple(core))

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        sites: defaultdict[str, _SitePages] = defaultdict(_SitePages)
        texts = TextCollector()
        collected: list[tuple[int, Page]] = []
        for number, page in shard_pages(shard, lost, step, out):
            failure = _collect(page, texts, self._limits)
            sites[site_of(page.url)].add(number, page, failure)
            if failure is not None:
                out.failures.append(failure)
                continue
            collected.append((number, page))
            if len(collected) == _PAGES_AT_ONCE:
                self._match(collected, texts, sites, out)
                texts, collected = TextCollector(), []
        self._match(collected, texts, sites, out)
        out.counts["failed"] = failed_by_reason(out.failures)
        for site, site_pages in sites.items():
            out.send(site, place_of(out.number, 0), **site_pages.cells())

    def _match(
        self,
        collected: Sequence[tuple[int, Page]],
        texts: TextCollector,
        sites: Mapping[str, _SitePages],
        out: Outbox,
    ) -> None:
        try:
            shown = shown_records(self._known_records, texts.collected())
        except Exception as error:  # noqa: BLE001 - one page must not end the work on millions
            self._match_apart(collected, sites, out, error)
            return
        for at, record, bits in zip(*(column.tolist() for column in shown), strict=True):
            number, page = collected[at]
            sites[site_of(page.url)].shown.append((number, record, bits))

    def _match_apart(
        self,
        collected: Sequence[tuple[int, Page]],
        sites: Mapping[str, _SitePages],
        out: Outbox,
        error: Exception,
    ) -> None:
        """Match pages one by one after an error, so that only the faulty page fails."""
        if len(collected) == 1:
            out.failures.append(stage_failure(collected[0][1].url, error))
            return
        for number, page in collected:
            texts = TextCollector()
            _collect(page, texts, self._limits)
            self._match([(number, page)], texts, sites, out)


def _collect(page: Page, texts: TextCollector, limits: ParseSettings) -> Failure | None:
    """Collect the texts of a page, or return why it has none."""
    try:
        root = parse(page, limits.learned)
        if isinstance(root, Failure):
            return root
        texts.add(root)
    except Exception as error:  # noqa: BLE001 - one page must not end the work on millions
        return stage_failure(page.url, error)
    return None


# ---- which sites and pages are looked at closely


class _Choosing:
    """Refuses sites, and chooses the pages of others."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        refused = []
        for site, of_site in group_batches("key", batches):
            site_matches = _SiteMatches.of(load_pyarrow().Table.from_batches(of_site))
            reason = self._refusal(site_matches)
            if reason is None:
                chosen = chosen_pages(len(site_matches.place), site_matches.shown, MOST_PAGES)
                for place in site_matches.place[chosen].tolist():
                    request_page(place, b"", out)
            else:
                out.failures.append(Failure(site, NO_OVERLAP, reason))
                seeds, pages = _distinct(site_matches.shown.record), len(site_matches.place)
                refused.append(_site_outcome(site, "poor", seeds, pages, reason))
        out.counts |= {"outcomes": {"poor": len(refused)}, "sites": _shown_sites(refused)}

    def _refusal(self, site_matches: _SiteMatches) -> str | None:
        if not len(site_matches.place):
            return none_readable(site_matches.unread, site_matches.why_unread)
        shown_on = _distinct(site_matches.shown.page)
        if shown_on >= LEAST_PAGES:
            return None
        return too_few(
            _distinct(site_matches.shown.record), self._seeds, shown_on, len(site_matches.place)
        ).reason


def _distinct(numbers: NDArray[Any]) -> int:
    return len(np.unique(numbers))


class _SiteMatches(NamedTuple):
    """The newest readable pages of a site, by their places, and the records that they may show."""

    place: Ints
    shown: ShownRecords
    unread: int
    why_unread: str

    @classmethod
    def of(cls, rows: Any) -> _SiteMatches:
        """Build the matches of a site from rows of `_matches_schema`."""
        pa = load_pyarrow()
        names = ("url", "content", "seen", "is_read")
        versions = pa.table({"place": _places(rows, "item"), **{name: _flat(rows, name) for name in names}})
        newest_rows = newest(versions)
        is_read = newest_rows["is_read"].to_numpy()
        place = newest_rows["place"].to_numpy()[is_read]
        shown_on = _places(rows, "shown_on")
        is_on_newest = np.isin(shown_on, place)
        return cls(
            place,
            ShownRecords(
                np.searchsorted(place, shown_on[is_on_newest]).astype(np.int32),
                _flat(rows, "record").to_numpy()[is_on_newest],
                _flat(rows, "bits").to_numpy()[is_on_newest].astype(np.float64),
            ),
            int((~is_read).sum()),
            next((reason for reason in rows["unread"].to_pylist() if reason is not None), ""),
        )


def _flat(rows: Any, name: str) -> Any:
    """Flatten the lists of a column."""
    return rows[name].combine_chunks().flatten()


def _places(rows: Any, name: str) -> Ints:
    """Return the places of the items in the lists of a column."""
    counts = load_pyarrow().compute.list_value_length(rows[name]).to_numpy()
    places: Ints = np.repeat(rows["place"].to_numpy(), counts) + _flat(rows, name).to_numpy()
    return places


def chosen_pages(pages: int, shown: ShownRecords, limit: int) -> Ints:
    """Choose the pages of a site to examine: all, or at most `limit`.

    Up to half of them may show known records: evenly spaced pages of a large site might show none, and
    nothing could be learned. Records take turns, each with its best page first; so a record in the menu does
    not displace others, and pages about a record come before lists. The other half is evenly spaced over the
    site, because template and chance matches only show on pages that were not chosen for their content.
    """
    if pages <= limit:
        return np.arange(pages)
    matching_pages = _pages_by_record_turns(shown, limit // 2)
    remaining = np.setdiff1d(np.arange(pages), matching_pages)
    spaced = evenly_spaced(remaining.tolist(), limit - len(matching_pages))
    return np.sort(np.concatenate((matching_pages, np.array(spaced, np.int64))))


def _pages_by_record_turns(shown: ShownRecords, limit: int) -> Ints:
    order = np.lexsort((shown.page, -shown.bits, shown.record))
    record, page = shown.record[order], shown.page[order]
    turn = np.arange(len(record)) - np.searchsorted(record, record)
    by_turn = np.lexsort((page, turn))
    # Each page at its first turn.
    pages, first_turn = np.unique(page[by_turn], return_index=True)
    turn_of = turn[by_turn][first_turn]
    if len(pages) <= limit:
        return pages.astype(np.int64)
    last_turn = np.sort(turn_of)[limit]
    earlier_pages = pages[turn_of < last_turn]
    spaced = evenly_spaced(pages[turn_of == last_turn].tolist(), limit - len(earlier_pages))
    return np.concatenate((earlier_pages, np.array(spaced, np.int64))).astype(np.int64)


# ---- the chosen pages


def _pages_schema() -> Any:
    pa = load_pyarrow()
    return row_schema(("url", pa.string()), ("html", pa.binary()), ("charset", pa.string()))


class _Sending:
    """Sends the chosen pages of a shard to their sites."""

    def __init__(self, requests: StoredContents) -> None:
        self._requests = requests

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        for number, page, _ in requested_pages(self._requests, shard, lost, step, out):
            place = place_of(out.number, number)
            out.send(site_of(page.url), place, url=page.url, html=page.html, charset=page.charset)


# ---- wrappers


class _Wrapping:
    """Wraps sites independently of each other."""

    def __init__(
        self,
        seeds: Sequence[Seed],
        core: Sequence[str],
        schema: Schema,
        method: Method,
        limits: ParseSettings,
    ) -> None:
        self._bootstrap = SiteBootstrap(seeds, core, schema, method, limits)
        self._schema = arrow_schema(_COLUMNS)

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        outcomes: Counter[str] = Counter()
        sites = []
        for site, of_site in group_batches("key", batches):
            row = self._wrapped(site, list(_pages(of_site)))
            out.write(site, arrow_table(self._schema, [row]))
            outcomes[row["outcome"]] += 1
            sites.append(
                _site_outcome(site, row["outcome"], row["seeds_matched"], row["pages"], row["reason"])
            )
        out.counts |= {"outcomes": outcomes, "sites": _shown_sites(sites)}

    def _wrapped(self, site: str, pages: Sequence[Page]) -> dict[str, Any]:
        try:
            return _outcome_row(self._bootstrap(pages))
        except Exception as error:  # noqa: BLE001 - one site must not end the work on millions
            _log.warning("bootstrap of %s failed: %s", site, error, exc_info=True)
            reason = str(error) if isinstance(error, SiteloomError) else repr(error)
            return {"outcome": "failed", "reason": reason, "seeds_matched": 0, "pages": len(pages)}


def _pages(batches: Iterable[Any]) -> Iterator[Page]:
    columns = ("url", "html", "charset")
    for batch in batches:
        for url, html, charset in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            yield Page(url, html, charset=charset)


def _outcome_row(result: Bootstrapped) -> dict[str, Any]:
    wrapper = result.wrapper
    return {
        "outcome": "poor" if wrapper is None else "wrapped",
        "reason": result.reason,
        "wrapper": None if wrapper is None else wrapper.to_json(),
        "seeds_matched": result.seeds_matched,
        "pages": result.pages,
        "pages_matched": result.pages_matched,
        "attributes": [
            name for name, attribute in result.attributes.items() if attribute.verdict == "accepted"
        ],
        "evidence": json.dumps({name: attribute._asdict() for name, attribute in result.attributes.items()}),
    }


def _site_outcome(site: str, outcome: str, seeds: int, pages: int, reason: str) -> dict[str, Any]:
    """Return the entry of a site in the counts."""
    return {"site": site, "outcome": outcome, "seeds": seeds, "pages": pages, "reason": reason}


def _shown_sites(sites: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Select the sites to show: wrapped ones first, then by the number of seeds."""
    order = sorted(sites, key=lambda one: (OUTCOMES.index(one["outcome"]), -one["seeds"], one["site"]))
    return order[:_SITES_SHOWN]
