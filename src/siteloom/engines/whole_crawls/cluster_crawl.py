"""Cluster whole crawls: compute signatures of pages, cluster them by site, describe templates.

The stages for `vertex` and `paths`, which give the same clusters as `siteloom.cluster`:

    signatures   of each shard: sends a row of some 100 bytes for each page to its site
    clusters     of each site: the three passes; pages that show a template are requested from the shards
    wanted       of each shard: stores which of its pages are requested
    pages        of each shard: parses these, and sends them to the site of their cluster
    templates    of each site: describes its clusters, one by one, and writes them

For `text-max`, `siteloom.engines.whole_crawls.cluster_text_max` has the stages before the clusters of a site
are numbered.

A task of `clusters` holds the rows of a site, and the addresses of its pages twice: an estimated 500 bytes
per page, 5 GB for a site of ten million. The passes themselves work on distinct signatures and their counts.
A task of `templates` holds the addresses of a site and at most a hundred pages.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page
from siteloom.core.table_files import Column, Fields, ListOf, arrow_schema, arrow_table, load_pyarrow
from siteloom.core.urls import site_of
from siteloom.engines.engine import group_batches
from siteloom.engines.whole_crawls.cluster_text_max import PageGroup, send_text_groups
from siteloom.engines.whole_crawls.crawl_run import place_of, row_schema, shard_and_item
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
)
from siteloom.html.parser import parse
from siteloom.templates.clustering.methods import (
    check_method,
    cluster_site,
    describe,
    describing_members,
    page_features,
)
from siteloom.templates.essential_paths import PathSet, paths_of_page
from siteloom.templates.url_patterns import url_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.settings import ParseSettings
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Outbox, StoredContents
    from siteloom.html.parser import Element
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource
    from siteloom.templates.clustering.methods import SiteMethod

BulkMethod: TypeAlias = Literal["vertex", "paths", "text-max"]
"""The methods that do not compare all pairs of pages."""

CLUSTER_COLUMNS = (
    Column("id"),
    Column("signature"),
    Column("size", "integer"),
    Column("importance", "number"),
    Column("url_patterns", "texts"),
    Column("pages", "texts"),
)
"""The columns of a cluster in every output; pages in no cluster only have `size` and `pages`."""

_COLUMNS = (
    *CLUSTER_COLUMNS,
    Column("mask_pages", "integer"),
    Column("accepted", "texts"),
    Column("template", ListOf(Fields((Column("tags"), Column("text"), Column("support", "integer"))))),
    Column("template_pages", "integer"),
)

_SITE = "site "


def checked_bulk_method(name: str) -> BulkMethod:
    """Return the method for whole crawls with a name; raises UsageError for others."""
    method = check_method(name)
    if method == "vertex" or method == "paths" or method == "text-max":
        return method
    raise UsageError(
        f"{method} compares every two pages, which is for few: with --engine, use vertex, paths or text-max."
    )


def cluster_in_bulk(
    run: BulkRun, shards: Sequence[PageSource], method: BulkMethod, limits: ParseSettings
) -> Counts:
    """Cluster all pages by site, and write clusters and failures.

    The newest version of each URL counts. The counts are the `pages` read, `skipped`, `failed` by reason, the
    pages that were `looked_at`, the `clusters`, the `unclustered` pages, and those that the method as
    published `plainly` puts into clusters.
    """
    pa = load_pyarrow()
    schema = row_schema(("cluster", pa.string()), request_column(), ("pack", pa.binary()))
    if method == "text-max":
        counted = send_text_groups(run, shards, limits)
        cluster_counts = run.partitions("clusters", _NumberingGroups, of="groups", schema=schema)
    else:
        of_pages = row_schema(*version_columns(), ("signature", pa.binary()), ("sketch", pa.binary()))
        counted = run.shards("signatures", partial(_Signing, method, limits), shards, of_pages)
        cluster_counts = run.partitions(
            "clusters", partial(_Clustering, method), of="signatures", schema=schema
        )
    start = partial(_Parsing, all_requests(run, "clusters"), limits)
    counted += cluster_counts
    counted += run.shards("pages", start, shards, schema)
    counted += run.partitions("templates", partial(_Describing, limits), of=("clusters", "pages"))
    names = ("pages", "skipped", "looked_at", "clusters", "unclustered", "plainly")
    return run.finish(total(counted, *names))


class _Signing:
    """Sends the signature of each page of a shard to its site."""

    def __init__(self, method: SiteMethod, limits: ParseSettings) -> None:
        self._method = method
        self._limits = limits

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        for number, page in shard_pages(shard, lost, step, out):
            try:
                features = page_features(page, self._method, limits=self._limits)
            except Exception as error:  # noqa: BLE001 - see broken
                out.failures.append(stage_failure(page.url, error))
                continue
            if features.failure is not None:
                out.failures.append(features.failure)
            place = place_of(out.number, number)
            cells = {**version_cells(page), "signature": features.signature, "sketch": features.sketch}
            out.send(features.site, place, **cells)


class _Clustering:
    """Clusters the pages of a site by their signatures."""

    def __init__(self, method: SiteMethod) -> None:
        self._method = method

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        counts = Counter(looked_at=0, clusters=0, unclustered=0, plainly=0)
        for site, of_site in group_batches("key", batches):
            rows = newest(load_pyarrow().Table.from_batches(of_site))
            sketches = None if self._method == "vertex" else rows["sketch"].to_pylist()
            clustering = cluster_site(rows["signature"].to_pylist(), sketches)
            urls, places = rows["url"].to_pylist(), rows["place"].to_pylist()
            for number, cluster in enumerate(clustering.clusters, 1):
                _send_cluster(site, number, PageGroup.of(cluster, urls, places), out)
            _write_unclustered(site, [urls[page] for page in clustering.unclustered], out)
            counts.update(
                looked_at=len(urls),
                clusters=len(clustering.clusters),
                unclustered=len(clustering.unclustered),
                plainly=round(clustering.plain_coverage * len(urls)),
            )
        out.counts |= counts


class _NumberingGroups:
    """Numbers the clusters of a site, the largest first."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        counts = Counter(looked_at=0, clusters=0, unclustered=0, plainly=0)
        for site, of_site in group_batches("key", batches):
            rows = [row for batch in of_site for row in batch.to_pylist()]
            groups = [PageGroup(*json.loads(row["group"])) for row in rows if row["group"] is not None]
            groups.sort(key=lambda group: (-len(group.urls), site_of(group.urls[0]), group.places[0]))
            for number, group in enumerate(groups, 1):
                _send_cluster(site, number, group, out)
            unclustered = [row["url"] for row in rows if row["group"] is None]
            _write_unclustered(site, unclustered, out)
            clustered = sum(len(group.urls) for group in groups)
            counts.update(
                looked_at=clustered + len(unclustered),
                clusters=len(groups),
                unclustered=len(unclustered),
                plainly=clustered,
            )
        out.counts |= counts


def _send_cluster(site: str, number: int, group: PageGroup, out: Outbox) -> None:
    """Send a cluster to its site, and a row to the shard of each page that will describe it."""
    cells = {
        "id": f"{site}/{number}",
        "signature": group.mask,
        "size": len(group.urls),
        "url_patterns": url_patterns(group.urls),
        "pages": group.urls,
        "mask_pages": group.mask_pages,
        "accepted": group.accepted,
    }
    key = f"{_SITE}{site}"
    out.send(key, place_of(number, 0), cluster=json.dumps(cells, ensure_ascii=False))
    for rank, place in enumerate(describing_members(group.places), 1):
        request_page(place, json.dumps((site, number, rank)).encode(), out)


def _write_unclustered(site: str, urls: list[str], out: Outbox) -> None:
    if urls:
        out.write(site, _cluster_table([{"size": len(urls), "pages": urls}]))


def _cluster_table(rows: Iterable[Mapping[str, object]]) -> Any:
    return arrow_table(arrow_schema(_COLUMNS), rows)


class _DescribingPage(NamedTuple):
    """A page of a cluster, by its rank among those that describe it; its paths are arrays as bytes."""

    rank: int
    url: str
    html: bytes
    charset: str | None
    paths: tuple[bytes, bytes, bytes]

    @classmethod
    def of(cls, rank: int, page: Page, path_set: PathSet) -> _DescribingPage:
        elements, texts, parents = path_set
        return cls(
            rank, page.url, page.html, page.charset, (elements.tobytes(), texts.tobytes(), parents.tobytes())
        )

    @property
    def path_set(self) -> PathSet:
        elements, texts, parents = (np.frombuffer(array, np.uint64) for array in self.paths)
        return PathSet(elements, texts, parents)

    def root(self, limits: ParseSettings) -> Element | Failure:
        return parse(Page(self.url, self.html, None, self.charset), limits)


class _Parsing:
    """Parses the requested pages of a shard, and sends them to the sites of their clusters.

    Pages are parsed here although they are parsed again when a template is described: here a page that kills
    the process only affects itself.
    """

    def __init__(self, requests: StoredContents, limits: ParseSettings) -> None:
        self._requests = requests
        self._limits = limits

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        packs = Packs(partial(_send_pack, out))
        for _, page, cluster in requested_pages(self._requests, shard, lost, step, out):
            site, number, rank = json.loads(cluster)
            try:
                path_set = paths_of_page(page, self._limits)
            except Exception as error:  # noqa: BLE001 - see broken
                out.failures.append(stage_failure(page.url, error))
                continue
            if not isinstance(path_set, Failure):
                packs.add((site, number), _DescribingPage.of(rank, page, path_set), len(page.html))
        packs.send_remaining()


def _send_pack(out: Outbox, cluster: tuple[str, int], pages: Sequence[_DescribingPage]) -> None:
    site, number = cluster
    out.send(
        f"{_SITE}{site}", place_of(number, pages[0].rank), pack=pack_content([tuple(page) for page in pages])
    )


class _Describing:
    """Describes the clusters of a site, and writes them."""

    def __init__(self, limits: ParseSettings) -> None:
        self._limits = limits

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, key_batches in group_batches("key", batches):
            if key.startswith(_SITE):
                rows = (row for batch in key_batches for row in batch.to_pylist())
                by_number = groupby(rows, key=lambda row: shard_and_item(row["place"])[0])
                clusters = [self._described(of_cluster, out) for _, of_cluster in by_number]
                out.write(key.removeprefix(_SITE), _cluster_table(clusters))
        out.counts["failed"] = failed_by_reason(out.failures)

    def _described(self, rows: Iterator[Mapping[str, Any]], out: Outbox) -> dict[str, object]:
        """Describe a cluster, given in the first row, by the pages in the other rows."""
        cells: dict[str, Any] = json.loads(next(rows)["cluster"])
        pages = sorted(_DescribingPage(*page) for row in rows for page in unpack_content(row["pack"]))
        roots = (root for page in pages if not isinstance(root := page.root(self._limits), Failure))
        try:
            importance, template = describe([page.path_set for page in pages], roots, cells["size"])
        except Exception as error:  # noqa: BLE001 - see broken
            out.failures.append(stage_failure(cells["id"], error))
            return cells
        return {
            **cells,
            "importance": importance,
            "template": [asdict(path) for path in template.essential],
            "template_pages": template.pages,
        }
