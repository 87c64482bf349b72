"""Clusters of whole crawls: each page as a signature, the signatures of a site counted, then templates.

The stages for `vertex` and `paths`, which give the clusters that `siteloom.cluster` gives:

    signatures   of each shard: sends a row of some 100 bytes for each page to its site
    clusters     of each site: the three passes; what shows a template is asked for from the shards
    wanted       of each shard: keeps which of its pages were asked for
    pages        of each shard: parses these, and sends them to the site of their cluster
    templates    of each site: describes its clusters, one by one, and writes them

For `text-max`, `siteloom.engines.whole_crawls.cluster_text_max` has what comes before the clusters of a
site are numbered.

A task of `clusters` holds the rows of a site, and the addresses of its pages twice: by estimate 500 bytes a
page, 5 GB for a site of ten million. The passes themselves are done on different signatures and their counts.
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
from siteloom.engines.engine import cut_by
from siteloom.engines.whole_crawls.cluster_text_max import PageGroup, send_text_groups
from siteloom.engines.whole_crawls.crawl_run import place_of, row_schema, shard_and_item
from siteloom.engines.whole_crawls.page_batches import (
    Packs,
    all_wanted,
    broken,
    failed_by_reason,
    newest,
    packed,
    shard_pages,
    total,
    unpacked,
    version_cells,
    version_columns,
    want,
    wanted_column,
    wanted_pages,
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
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Kept, Outbox
    from siteloom.html.parser import Element
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource
    from siteloom.templates.clustering.methods import SiteMethod

BulkMethod: TypeAlias = Literal["vertex", "paths", "text-max"]
"""The methods that do not look at every two pages."""

CLUSTER_COLUMNS = (
    Column("id"),
    Column("signature"),
    Column("size", "integer"),
    Column("importance", "number"),
    Column("url_patterns", "texts"),
    Column("pages", "texts"),
)
"""What is told of a cluster everywhere; of the pages in no cluster only `size` and `pages`."""

_COLUMNS = (
    *CLUSTER_COLUMNS,
    Column("mask_pages", "integer"),
    Column("accepted", "texts"),
    Column("template", ListOf(Fields((Column("tags"), Column("text"), Column("support", "integer"))))),
    Column("template_pages", "integer"),
)

_SITE = "site "


def checked_bulk_method(name: str) -> BulkMethod:
    """A method for whole crawls by its name."""
    method = check_method(name)
    if method == "vertex" or method == "paths" or method == "text-max":
        return method
    raise UsageError(
        f"{method} compares every two pages, which is for few: with --engine, use vertex, paths or text-max."
    )


def cluster_in_bulk(
    run: BulkRun, shards: Sequence[PageSource], method: BulkMethod, limits: ParseSettings
) -> Counts:
    """The clusters of all pages, by site, and the failures.

    Of each URL the newest version counts. Counted are the `pages` that were read, what was `skipped` and
    `failed` by reason, the pages that were `looked_at`, the `clusters`, the pages that are `unclustered`, and
    those that the method as published `plainly` puts into clusters.
    """
    pa = load_pyarrow()
    schema = row_schema(("cluster", pa.string()), wanted_column(), ("pack", pa.binary()))
    if method == "text-max":
        counted = send_text_groups(run, shards, limits)
        found = run.parts("clusters", _NumberingGroups, of="groups", schema=schema)
    else:
        of_pages = row_schema(*version_columns(), ("signature", pa.binary()), ("sketch", pa.binary()))
        counted = run.shards("signatures", partial(_Signing, method, limits), shards, of_pages)
        found = run.parts("clusters", partial(_Clustering, method), of="signatures", schema=schema)
    start = partial(_Parsing, all_wanted(run, "clusters"), limits)
    counted += found
    counted += run.shards("pages", start, shards, schema)
    counted += run.parts("templates", partial(_Describing, limits), of=("clusters", "pages"))
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
                found = page_features(page, self._method, limits=self._limits)
            except Exception as error:  # noqa: BLE001 - see broken
                out.failures.append(broken(page.url, error))
                continue
            if found.failure is not None:
                out.failures.append(found.failure)
            place = place_of(out.number, number)
            cells = {**version_cells(page), "signature": found.signature, "sketch": found.sketch}
            out.send(found.site, place, **cells)


class _Clustering:
    """Clusters the pages of a site by their signatures."""

    def __init__(self, method: SiteMethod) -> None:
        self._method = method

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        counts = Counter(looked_at=0, clusters=0, unclustered=0, plainly=0)
        for site, of_site in cut_by("key", batches):
            rows = newest(load_pyarrow().Table.from_batches(of_site))
            sketches = None if self._method == "vertex" else rows["sketch"].to_pylist()
            found = cluster_site(rows["signature"].to_pylist(), sketches)
            urls, places = rows["url"].to_pylist(), rows["place"].to_pylist()
            for number, cluster in enumerate(found.clusters, 1):
                _send_cluster(site, number, PageGroup.of(cluster, urls, places), out)
            _write_unclustered(site, [urls[page] for page in found.unclustered], out)
            counts.update(
                looked_at=len(urls),
                clusters=len(found.clusters),
                unclustered=len(found.unclustered),
                plainly=round(found.plain_coverage * len(urls)),
            )
        out.counts |= counts


class _NumberingGroups:
    """Numbers the clusters of a site, the largest first."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        counts = Counter(looked_at=0, clusters=0, unclustered=0, plainly=0)
        for site, of_site in cut_by("key", batches):
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
        want(place, json.dumps((site, number, rank)).encode(), out)


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
    def of(cls, rank: int, page: Page, found: PathSet) -> _DescribingPage:
        elements, texts, parents = found
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
    """Parses the wanted pages of a shard, and sends them to the sites of their clusters.

    Pages are parsed here although they are once more when a template is put into words: here a page that
    takes the process down costs no more than itself.
    """

    def __init__(self, wanted: Kept, limits: ParseSettings) -> None:
        self._wanted = wanted
        self._limits = limits

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        packs = Packs(partial(_send_pack, out))
        for _, page, cluster in wanted_pages(self._wanted, shard, lost, step, out):
            site, number, rank = json.loads(cluster)
            try:
                found = paths_of_page(page, self._limits)
            except Exception as error:  # noqa: BLE001 - see broken
                out.failures.append(broken(page.url, error))
                continue
            if not isinstance(found, Failure):
                packs.add((site, number), _DescribingPage.of(rank, page, found), len(page.html))
        packs.send_rest()


def _send_pack(out: Outbox, cluster: tuple[str, int], pages: Sequence[_DescribingPage]) -> None:
    site, number = cluster
    out.send(f"{_SITE}{site}", place_of(number, pages[0].rank), pack=packed([tuple(page) for page in pages]))


class _Describing:
    """Describes the clusters of a site, and writes them."""

    def __init__(self, limits: ParseSettings) -> None:
        self._limits = limits

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, of_key in cut_by("key", batches):
            if key.startswith(_SITE):
                rows = (row for batch in of_key for row in batch.to_pylist())
                by_number = groupby(rows, key=lambda row: shard_and_item(row["place"])[0])
                clusters = [self._described(of_cluster, out) for _, of_cluster in by_number]
                out.write(key.removeprefix(_SITE), _cluster_table(clusters))
        out.counts["failed"] = failed_by_reason(out.failures)

    def _described(self, rows: Iterator[Mapping[str, Any]], out: Outbox) -> dict[str, object]:
        """A cluster, of which the first row tells, by the pages in the others."""
        cells: dict[str, Any] = json.loads(next(rows)["cluster"])
        pages = sorted(_DescribingPage(*page) for row in rows for page in unpacked(row["pack"]))
        roots = (root for page in pages if not isinstance(root := page.root(self._limits), Failure))
        try:
            importance, template = describe([page.path_set for page in pages], roots, cells["size"])
        except Exception as error:  # noqa: BLE001 - see broken
            out.failures.append(broken(cells["id"], error))
            return cells
        return {
            **cells,
            "importance": importance,
            "template": [asdict(path) for path in template.essential],
            "template_pages": template.pages,
        }
