"""Wrappers for the sites of whole crawls, from records that are known from elsewhere.

The known records are joined with the texts of all pages, wherever these are: which pages may show one is
found out page by page. Only sites with enough of such pages are looked at closely, and of a large site only
some pages, which are read again and brought together.
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
from siteloom.engines.engine import cut_by
from siteloom.engines.whole_crawls.crawl_run import place_of, row_schema
from siteloom.engines.whole_crawls.page_batches import (
    all_wanted,
    broken,
    failed_by_reason,
    newest,
    shard_pages,
    total,
    version_cells,
    want,
    wanted_column,
    wanted_pages,
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
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Kept, Outbox
    from siteloom.html.time_limit import Lost
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.learning.known_records.bootstrap_result import Bootstrapped
    from siteloom.learning.known_records.site_bootstrap import Method
    from siteloom.sources.page_source import PageSource

    Ints = NDArray[np.int64]

_log = logging.getLogger(__name__)

OUTCOMES = ("wrapped", "failed", "poor")
"""What may come of a site, as of those of a workspace: see `siteloom.operations.bootstrap.Grown`."""

MOST_PAGES = 2_560
"""Pages that are looked at closely, of a large site: as many as of one in a workspace."""

NO_OVERLAP = "not enough overlap"
"""The reason of the failure that a site is whose pages do not even seem to show known records."""

# Columns of the table of outcomes, which is divided by site.
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

# Texts that pages share are compared once for so many pages, whose texts are in memory together.
_PAGES_AT_ONCE = 256

_SITES_TOLD = 20  # with what came of them, in what is counted: a crawl may have millions
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
    """Try to wrap every site, by `siteloom.bootstrap` of its pages or of some; what came of each is kept.

    All pages of a site are looked at if they are at most `MOST_PAGES`, else those that `chosen_pages`
    chooses. A page that is there several times counts as the newest of them. A site with too few pages that
    may show a known record would be refused by the method `bits`, and is at once; the methods of the paper
    are not asked about it either.
    """
    # What is wrong with the seeds is told before any page is read.
    if (untold := SiteBootstrap(seeds, core, schema, method).records.unusable_reason) is not None:
        raise UsageError(untold)
    counted = run.shards("matches", partial(_Matching, seeds, core, limits), shards, _matches_schema())
    wanted = row_schema(wanted_column())
    refused = run.parts("sites", partial(_Choosing, len(seeds)), of="matches", schema=wanted)
    counted += run.shards("chosen", partial(_Sending, all_wanted(run, "sites")), shards, _pages_schema())
    wrapped = run.parts("wrapped", partial(_Wrapping, seeds, core, schema, method, limits), of="chosen")
    came = [counts for counts in (*refused, *wrapped) if counts]
    outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
    for counts in came:
        outcomes.update(counts["outcomes"])
    sites = _most_telling(one for counts in came for one in counts["sites"])
    return run.finish({"outcomes": outcomes, "sites": sites, **total(counted, "pages", "skipped")})


# ---- which pages may show known records


def _matches_schema() -> Any:
    """A row for the pages of a site in a shard: all of them as columns of lists, and so those that match."""
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
    """The pages of a site in a shard, and the reason why the first that cannot be read cannot."""

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
    """The first bytes of a digest as Arrow has numbers."""
    return int.from_bytes(digest[:_HASH_BYTES], signed=True)


class _Matching:
    """Joins the pages of a shard with the known records, and tells each site of its pages."""

    def __init__(self, seeds: Sequence[Seed], core: Sequence[str], limits: ParseSettings) -> None:
        self._limits = limits
        self._known = known_records(seeds, tuple(core))

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
        for site, found in sites.items():
            out.send(site, place_of(out.number, 0), **found.cells())

    def _match(
        self,
        collected: Sequence[tuple[int, Page]],
        texts: TextCollector,
        sites: Mapping[str, _SitePages],
        out: Outbox,
    ) -> None:
        try:
            shown = shown_records(self._known, texts.collected())
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
        """Find the page that an error is about, and match the others; it still is one of its site."""
        if len(collected) == 1:
            out.failures.append(broken(collected[0][1].url, error))
            return
        for number, page in collected:
            texts = TextCollector()
            _collect(page, texts, self._limits)
            self._match([(number, page)], texts, sites, out)


def _collect(page: Page, texts: TextCollector, limits: ParseSettings) -> Failure | None:
    """Take the texts of a page in, or say why it has none."""
    try:
        root = parse(page, limits.learned)
        if isinstance(root, Failure):
            return root
        texts.add(root)
    except Exception as error:  # noqa: BLE001 - one page must not end the work on millions
        return broken(page.url, error)
    return None


# ---- which sites and pages are looked at closely


class _Choosing:
    """Refuses sites, and chooses the pages of others."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        refused = []
        for site, of_site in cut_by("key", batches):
            found = _Site.of(load_pyarrow().Table.from_batches(of_site))
            reason = self._refusal(found)
            if reason is None:
                chosen = chosen_pages(len(found.place), found.shown, MOST_PAGES)
                for place in found.place[chosen].tolist():
                    want(place, b"", out)
            else:
                out.failures.append(Failure(site, NO_OVERLAP, reason))
                seeds, pages = _distinct(found.shown.record), len(found.place)
                refused.append(_told(site, "poor", seeds, pages, reason))
        out.counts |= {"outcomes": {"poor": len(refused)}, "sites": _most_telling(refused)}

    def _refusal(self, found: _Site) -> str | None:
        if not len(found.place):
            return none_readable(found.unread, found.why_unread)
        shown_on = _distinct(found.shown.page)
        if shown_on >= LEAST_PAGES:
            return None
        return too_few(_distinct(found.shown.record), self._seeds, shown_on, len(found.place)).reason


def _distinct(numbers: NDArray[Any]) -> int:
    return len(np.unique(numbers))


class _Site(NamedTuple):
    """The newest pages of a site that can be read, by their places, and the records that they may show."""

    place: Ints
    shown: ShownRecords
    unread: int
    why_unread: str

    @classmethod
    def of(cls, rows: Any) -> _Site:
        """The site that the rows of `_matches_schema` tell of."""
        pa = load_pyarrow()
        names = ("url", "content", "seen", "is_read")
        versions = pa.table({"place": _places(rows, "item"), **{name: _flat(rows, name) for name in names}})
        kept = newest(versions)
        is_read = kept["is_read"].to_numpy()
        place = kept["place"].to_numpy()[is_read]
        shown_on = _places(rows, "shown_on")
        is_kept = np.isin(shown_on, place)
        return cls(
            place,
            ShownRecords(
                np.searchsorted(place, shown_on[is_kept]).astype(np.int32),
                _flat(rows, "record").to_numpy()[is_kept],
                _flat(rows, "bits").to_numpy()[is_kept].astype(np.float64),
            ),
            int((~is_read).sum()),
            next((reason for reason in rows["unread"].to_pylist() if reason is not None), ""),
        )


def _flat(rows: Any, name: str) -> Any:
    """What is in the lists of a column."""
    return rows[name].combine_chunks().flatten()


def _places(rows: Any, name: str) -> Ints:
    """The places of the items that are in the lists of a column."""
    counts = load_pyarrow().compute.list_value_length(rows[name]).to_numpy()
    places: Ints = np.repeat(rows["place"].to_numpy(), counts) + _flat(rows, name).to_numpy()
    return places


def chosen_pages(pages: int, shown: ShownRecords, most: int) -> Ints:
    """Which of so many pages of a site are looked at: all, or at most so many.

    Half of them, if there are as many, may show known records: evenly spaced pages of a large site might
    have none of these, and without them nothing can be learned. Each record has its turn with the page that
    tells most of it, then with the next; so one that the menu names does not take the place of others, and
    pages about a record come before lists. The other half is evenly spaced, from all over the site: what is
    template, and what chance alone would find, is seen on pages that were not chosen for what they say.
    """
    if pages <= most:
        return np.arange(pages)
    telling = _most_telling_pages(shown, most // 2)
    others = np.setdiff1d(np.arange(pages), telling)
    spaced = evenly_spaced(others.tolist(), most - len(telling))
    return np.sort(np.concatenate((telling, np.array(spaced, np.int64))))


def _most_telling_pages(shown: ShownRecords, most: int) -> Ints:
    order = np.lexsort((shown.page, -shown.bits, shown.record))
    record, page = shown.record[order], shown.page[order]
    turn = np.arange(len(record)) - np.searchsorted(record, record)
    by_turn = np.lexsort((page, turn))
    # Each page at its first turn.
    every, first = np.unique(page[by_turn], return_index=True)
    turn_of = turn[by_turn][first]
    if len(every) <= most:
        return every.astype(np.int64)
    last = np.sort(turn_of)[most]
    whole = every[turn_of < last]
    spaced = evenly_spaced(every[turn_of == last].tolist(), most - len(whole))
    return np.concatenate((whole, np.array(spaced, np.int64))).astype(np.int64)


# ---- the chosen pages


def _pages_schema() -> Any:
    pa = load_pyarrow()
    return row_schema(("url", pa.string()), ("html", pa.binary()), ("charset", pa.string()))


class _Sending:
    """Sends the chosen pages of a shard to their sites."""

    def __init__(self, wanted: Kept) -> None:
        self._wanted = wanted

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        for number, page, _ in wanted_pages(self._wanted, shard, lost, step, out):
            place = place_of(out.number, number)
            out.send(site_of(page.url), place, url=page.url, html=page.html, charset=page.charset)


# ---- wrappers


class _Wrapping:
    """Wraps sites, each by itself."""

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
        for site, of_site in cut_by("key", batches):
            row = self._wrapped(site, list(_pages(of_site)))
            out.write(site, arrow_table(self._schema, [row]))
            outcomes[row["outcome"]] += 1
            sites.append(_told(site, row["outcome"], row["seeds_matched"], row["pages"], row["reason"]))
        out.counts |= {"outcomes": outcomes, "sites": _most_telling(sites)}

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


def _outcome_row(found: Bootstrapped) -> dict[str, Any]:
    wrapper = found.wrapper
    return {
        "outcome": "poor" if wrapper is None else "wrapped",
        "reason": found.reason,
        "wrapper": None if wrapper is None else wrapper.to_json(),
        "seeds_matched": found.seeds_matched,
        "pages": found.pages,
        "pages_matched": found.pages_matched,
        "attributes": [name for name, one in found.attributes.items() if one.verdict == "accepted"],
        "evidence": json.dumps({name: one._asdict() for name, one in found.attributes.items()}),
    }


def _told(site: str, outcome: str, seeds: int, pages: int, reason: str) -> dict[str, Any]:
    """What is told of a site in what is counted."""
    return {"site": site, "outcome": outcome, "seeds": seeds, "pages": pages, "reason": reason}


def _most_telling(sites: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some of the sites: first those that were wrapped, and those with the most seeds."""
    order = sorted(sites, key=lambda one: (OUTCOMES.index(one["outcome"]), -one["seeds"], one["site"]))
    return order[:_SITES_TOLD]
