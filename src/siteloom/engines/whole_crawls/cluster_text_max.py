"""TEXT-MAX for whole crawls: pages are partitioned by their MinHash bands, and clustered per partition.

A page goes to the band that it shares with most pages. No task has more than some thousands of pages at a
time, whatever the size of the crawl; pages of a template in another partition become a separate cluster.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from siteloom.core.model import Failure
from siteloom.core.table_files import load_pyarrow
from siteloom.core.urls import site_of
from siteloom.engines.engine import group_batches
from siteloom.engines.whole_crawls.crawl_run import place_of, row_schema
from siteloom.engines.whole_crawls.page_batches import (
    failed_by_reason,
    newest,
    shard_pages,
    stage_failure,
    version_cells,
    version_columns,
)
from siteloom.templates.clustering.methods import cluster_by_signatures, most_common
from siteloom.templates.clustering.text import text_clusters
from siteloom.templates.clustering.text_minhash import path_bands
from siteloom.templates.essential_paths import paths_of_page
from siteloom.templates.signature import signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from siteloom.core.model import Page
    from siteloom.core.settings import ParseSettings
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Outbox
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource
    from siteloom.templates.clustering.vertex import SignatureCluster

# TEXT-MAX took 90 MB for 10,000 pages of 380 paths, so it needs half a gigabyte for this number. Bands shared
# by more pages are skipped.
_MOST_PAGES = 50_000

_PAGE = "page "
_BAND = "band "
_SITE = "site "


class PageGroup(NamedTuple):
    """A cluster before it gets its number.

    The pages are given by URL and place; `mask` and `accepted` are texts, as in
    `siteloom.core.model.Cluster`.
    """

    mask: str
    mask_pages: int
    accepted: list[str]
    urls: list[str]
    places: list[int]

    @classmethod
    def of(cls, cluster: SignatureCluster, urls: Sequence[str], places: Sequence[int]) -> PageGroup:
        """Build a group from a cluster whose members are indices of these URLs and places."""
        return cls(
            str(cluster.mask),
            cluster.mask_pages,
            [accepted.hex() for accepted in cluster.accepted],
            [urls[member] for member in cluster.members],
            [places[member] for member in cluster.members],
        )


def send_text_groups(run: BulkRun, shards: Sequence[PageSource], limits: ParseSettings) -> list[Counts]:
    """Run TEXT-MAX in partitions, and return the counts.

    The stage `groups` sends the clusters to the sites of most of their pages: `group` is a `PageGroup` as
    JSON. Rows with a `url` instead are pages in no cluster.
    """
    text = load_pyarrow().string()
    pages = _page_schema()
    counted = run.shards("paths", partial(_ReadingPaths, limits), shards, pages)
    run.partitions("bands", _CountingBands, of="paths", schema=pages)
    run.partitions("partitions", _ChoosingBands, of=("paths", "bands"), schema=pages)
    groups = row_schema(("url", text), ("group", text))
    return counted + run.partitions("groups", _ClusteringBands, of="partitions", schema=groups)


def _page_schema() -> Any:
    """Return the schema of rows about pages; `band` stands for all bands of a page, with `size` for one."""
    pa = load_pyarrow()
    return row_schema(
        *version_columns(),
        ("signature", pa.binary()),
        ("paths", pa.binary()),
        ("band", pa.string()),
        ("size", pa.int64()),
    )


class _ReadingPaths:
    """Sends the paths of each page of a shard to its URL, and the page to each of its bands."""

    def __init__(self, limits: ParseSettings) -> None:
        self._limits = limits

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        for number, page in shard_pages(shard, lost, step, out):
            place = place_of(out.number, number)
            try:
                self._send(page, place, out)
            except Exception as error:  # noqa: BLE001 - see broken
                out.failures.append(stage_failure(page.url, error))

    def _send(self, page: Page, place: int, out: Outbox) -> None:
        page_signature = signature(page.html)
        paths = None if page_signature is None else paths_of_page(page, self._limits)
        if isinstance(paths, Failure):
            out.failures.append(paths)
        cells = {**version_cells(page), "signature": page_signature}
        if paths is None or isinstance(paths, Failure):  # not a page of a template
            out.send(f"{_PAGE}{page.url}", place, **cells)
            return
        bands = path_bands(paths.elements)
        out.send(f"{_PAGE}{page.url}", place, **cells, paths=paths.all_paths.tobytes(), band=bands.combined)
        for band in bands.bands:
            out.send(f"{_BAND}{band}", place, url=page.url)


class _CountingBands:
    """Sends to each page how many pages share each of its bands, if they are not too many."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, key_batches in group_batches("key", batches):
            if key.startswith(_BAND):
                rows = list(islice(_rows(key_batches), _MOST_PAGES + 1))
                if len(rows) <= _MOST_PAGES:
                    band = key.removeprefix(_BAND)
                    for row in rows:
                        out.send(f"{_PAGE}{row['url']}", row["place"], band=band, size=len(rows))


class _ChoosingBands:
    """Sends the newest version of each page to the band that most pages share, or else to its whole band."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, key_batches in group_batches("key", batches):
            if key.startswith(_PAGE):
                rows = list(_rows(key_batches))
                page = _newest([row for row in rows if row["size"] is None])
                bands = [
                    (row["size"], row["band"])
                    for row in rows
                    if row["size"] is not None and row["place"] == page["place"]
                ]
                whole_band = page["band"]
                target_key = (
                    f"{_SITE}{site_of(page['url'])}"
                    if whole_band is None
                    else max(bands, default=(0, whole_band))[1]
                )
                cells = {name: page[name] for name in ("url", "signature", "paths")}
                out.send(target_key, page["place"], **cells)


def _newest(pages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the newest of all versions of a page."""
    if len(pages) == 1:
        return pages[0]
    (row,) = newest(load_pyarrow().Table.from_pylist(pages, _page_schema())).to_pylist()
    newest_page: dict[str, Any] = row
    return newest_page


class _ClusteringBands:
    """Clusters the pages of a band, and sends the clusters to their sites."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, key_batches in group_batches("key", batches):
            rows = _rows(key_batches)
            if key.startswith(_SITE):
                for row in rows:
                    out.send(key.removeprefix(_SITE), row["place"], url=row["url"])
                continue
            while piece := list(islice(rows, _MOST_PAGES)):
                try:
                    groups = list(_grouped(piece))
                except Exception as error:  # noqa: BLE001 - see broken
                    out.failures.extend(stage_failure(row["url"], error) for row in piece)
                    continue
                for site, group in groups:
                    out.send(site, group.places[0], group=json.dumps(group, ensure_ascii=False))
        out.counts["failed"] = failed_by_reason(out.failures)


def _grouped(rows: list[dict[str, Any]]) -> Iterator[tuple[str, PageGroup]]:
    """Yield the clusters of pages, each with the site of most of its pages."""
    ordered = sorted(rows, key=lambda row: (site_of(row["url"]), row["place"]))
    documents = [np.frombuffer(row["paths"], np.uint64) for row in ordered]
    urls, places = [row["url"] for row in ordered], [row["place"] for row in ordered]
    signatures = [row["signature"] for row in ordered]
    for members in text_clusters(documents, "text-max"):
        cluster = cluster_by_signatures(members, signatures)
        yield most_common(site_of(urls[member]) for member in members), PageGroup.of(cluster, urls, places)


def _rows(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    return (row for batch in batches for row in batch.to_pylist())
