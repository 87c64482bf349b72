"""cluster: find the templates of stored pages. Which pages of a cluster to annotate first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from siteloom.core.model import Clustering
from siteloom.core.settings import ParseSettings
from siteloom.operations.context import Context
from siteloom.operations.page_import import note_failure
from siteloom.operations.request_fields import NOT_STORED, Site, Text
from siteloom.store.queries.clusters import PageAddress
from siteloom.templates.clustering.methods import (
    SITE_METHODS,
    checked_method,
    cluster_features,
    describing_members,
    joined,
    page_features,
    renumbered,
)
from siteloom.templates.sampling import sample_stream

if TYPE_CHECKING:
    from siteloom.core.model import Cluster, Failure, Page
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.store import Store
    from siteloom.templates.clustering.methods import Method, PageFeatures
    from siteloom.templates.sampling import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """How many pages are in clusters; the members of `clustering` are indices into `addresses`."""

    site: Site | None = None
    method: Text = "vertex"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResult:
    """How many pages are in clusters; the members of `clustering` are indices into `addresses`."""

    site: str | None
    pages: int
    clusters: int
    unclustered: int
    coverage: float
    failures: Mapping[str, int]
    clustering: Clustering | None = field(default=None, metadata=NOT_STORED)
    addresses: tuple[PageAddress, ...] = field(default=(), metadata=NOT_STORED)


def cluster(context: Context, request: ClusterRequest) -> ClusterResult:
    """Find the templates of the pages of a site, or of all, and store them."""
    store, progress = context.store, context.progress
    method = checked_method(request.method)
    total = sum(summary.pages for summary in store.sites() if request.site in (None, summary.name))
    progress.start("Looking at", total)
    failures = Counter(context.unread)
    clustering, addresses = cluster_store(
        store,
        method,
        site=request.site,
        limits=context.settings.parse,
        on_page=lambda _: progress.advance(),
        on_failure=lambda failure: failures.update([failure.reason]),
    )
    return ClusterResult(
        site=request.site,
        pages=len(addresses),
        clusters=len(clustering.clusters),
        unclustered=len(clustering.unclustered),
        coverage=clustering.coverage,
        failures=failures,
        clustering=clustering,
        addresses=addresses,
    )


def cluster_store(
    store: Store,
    method: Method,
    *,
    site: str | Sequence[str] | None = None,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[Page], object] = lambda _: None,
    on_failure: Callable[[Failure], object] = lambda _: None,
) -> tuple[Clustering, tuple[PageAddress, ...]]:
    """Cluster the stored pages, or those of one site or several, and keep the result in the store.

    The members of the clusters are indices into the addresses that are returned. `on_failure` is called for
    each page that cannot be read and so is in no cluster.
    """
    if site is None:
        asked_for: Sequence[str] = store.page_urls.sites()
    else:
        asked_for = [site] if isinstance(site, str) else site
        store.require_sites(asked_for)
    several = {} if site is None or isinstance(site, str) else {"sites": list(site)}
    # Site by site where the method allows, so that no more than one site is held at a time.
    batches = [[name] for name in asked_for] if method in SITE_METHODS else [asked_for]
    addresses: list[PageAddress] = []
    parts: list[Clustering] = []
    with store.clustering({"method": method, "site": None if several else site, **several}) as run:
        run.counts.update(pages=0, clusters=0, unclustered=0, failed=0)
        for batch in batches:
            found, pages = _cluster_sites(store, batch, method, limits, run, on_page, on_failure)
            store.save_clusters(run.id, found.clusters, pages)
            parts.append(renumbered(found, len(addresses)))
            addresses += pages
            run.counts.update(
                pages=len(pages), clusters=len(found.clusters), unclustered=len(found.unclustered)
            )
    return joined(parts, len(addresses)), tuple(addresses)


def _cluster_sites(
    store: Store,
    sites: Sequence[str],
    method: Method,
    limits: ParseSettings,
    run: RunRecorder,
    on_page: Callable[[Page], object],
    on_failure: Callable[[Failure], object],
) -> tuple[Clustering, list[PageAddress]]:
    addresses: list[PageAddress] = []
    features: list[PageFeatures] = []
    for site in sites:
        for page in store.pages(site):
            kept = page_features(page, method, site, limits)
            if kept.failure is not None:
                note_failure(run, kept.failure)
                on_failure(kept.failure)
            features.append(kept)
            addresses.append(PageAddress(site, page.url))
            on_page(page)

    def load(wanted: Sequence[int]) -> Iterable[Page]:
        return store.pages_at([addresses[page] for page in wanted])

    return cluster_features(features, method, load, limits), addresses


def cluster_pages(store: Store, cluster: Cluster, addresses: Sequence[PageAddress]) -> list[Page]:
    """Some evenly spaced pages of a stored cluster, enough to see its template."""
    return list(store.pages_at([addresses[member] for member in describing_members(cluster.members)]))


def sample_cluster(
    store: Store,
    cluster: Cluster,
    addresses: Sequence[PageAddress],
    k: int,
    annotated: Collection[str] = (),
    *,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[Page], object] = lambda _: None,
) -> Sample:
    """The pages of a stored cluster to annotate first; `annotated` are the URLs of those that were already.

    Evenly spaced pages are looked at, and all that were annotated, for they have been seen.
    """
    seen = {member for member in cluster.members if addresses[member].url in annotated}
    members = sorted(seen.union(describing_members(cluster.members)))
    pages = store.pages_at([addresses[member] for member in members])
    return sample_stream(pages, k, annotated, limits=limits, on_page=on_page)
