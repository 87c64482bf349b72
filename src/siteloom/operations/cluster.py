"""cluster: find the templates of stored pages. template: what the pages of a cluster share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from siteloom.core.errors import UsageError
from siteloom.core.model import Clustering, Failure, Template
from siteloom.core.settings import ParseSettings
from siteloom.html.parser import parse
from siteloom.operations.context import Context
from siteloom.operations.page_import import note_failure
from siteloom.operations.request_fields import NOT_STORED, Site, Text
from siteloom.store.queries.clusters import PageAddress
from siteloom.templates.clustering.methods import (
    SITE_METHODS,
    check_method,
    cluster_features,
    describing_members,
    join_clusterings,
    page_features,
    renumber,
)
from siteloom.templates.essential_paths import PathRow, path_rows, tag_rows
from siteloom.templates.sampling import sample_stream

if TYPE_CHECKING:
    from siteloom.core.model import Cluster, Page
    from siteloom.html.parser import Element
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.store import Store
    from siteloom.templates.clustering.methods import Method, PageFeatures
    from siteloom.templates.sampling import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """The site whose pages are clustered, or all, and the method: see `siteloom.templates.clustering`."""

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
    method = check_method(request.method)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRequest:
    """A cluster of the last clustering, or all; and what to read of up to a hundred pages of each.

    Pages of SOURCE are clustered with `method` first.
    """

    cluster: str | None = None
    method: str = "vertex"
    with_paths: bool = False
    with_tags: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTag:
    """How often a tag stands on a page, or with no URL on all pages, and on how many of them."""

    url: str | None
    tag: str
    occurrences: int
    support: int
    essential: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTemplate:
    """What the pages of a cluster share: its essential paths, and if requested all paths and the tags.

    `pages_read` counts the pages that paths and tags are from.
    """

    cluster: str
    size: int
    template: Template
    pages_read: int
    paths: tuple[PathRow, ...]
    tags: tuple[PageTag, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateResult:
    """The templates of clusters."""

    templates: tuple[ClusterTemplate, ...]


def template(context: Context, request: TemplateRequest) -> TemplateResult:
    """Describe the templates of clusters: what their pages share."""
    store = context.store
    if context.sources:
        method = check_method(request.method)
        clustering, _ = cluster_store(store, method, limits=context.settings.parse)
        if not clustering.clusters:
            raise UsageError("No two of these pages were made alike: there is no template to show.")
    clusters, addresses = stored_clusters(store, request.cluster)
    return TemplateResult(
        templates=tuple(_template(context, request, cluster, addresses) for cluster in clusters)
    )


def _template(
    context: Context, request: TemplateRequest, cluster: Cluster, addresses: Sequence[PageAddress]
) -> ClusterTemplate:
    roots: dict[str, Element] = {}
    if request.with_paths or request.with_tags:
        for page in cluster_pages(context.store, cluster, addresses):
            root = parse(page, context.settings.parse)
            if not isinstance(root, Failure):
                roots[page.url] = root
    urls, trees = list(roots), list(roots.values())
    return ClusterTemplate(
        cluster=cluster.id,
        size=cluster.size,
        template=cluster.template,
        pages_read=len(roots),
        paths=tuple(path_rows(trees)) if request.with_paths else (),
        tags=tuple(
            PageTag(
                url=None if row.page is None else urls[row.page],
                tag=row.tag,
                occurrences=row.occurrences,
                support=row.support,
                essential=row.essential,
            )
            for row in (tag_rows(trees) if request.with_tags else ())
        ),
    )


def stored_clusters(store: Store, name: str | None) -> tuple[tuple[Cluster, ...], tuple[PageAddress, ...]]:
    """The clusters of the last clustering, or the named one, and the pages their members are indices of."""
    if name is not None:
        store.require_cluster(name)
    clusters, pages = store.clusters(name)
    if not clusters:
        raise UsageError(
            "There are no clusters yet: find them with siteloom cluster, or name the pages to look at."
        )
    return clusters, pages


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
            parts.append(renumber(found, len(addresses)))
            addresses += pages
            run.counts.update(
                pages=len(pages), clusters=len(found.clusters), unclustered=len(found.unclustered)
            )
    return join_clusterings(parts, len(addresses)), tuple(addresses)


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
