"""Cluster pages by any method: extract the features of each page, and describe each cluster.

Pages are read once, one after another, and only the features that the method needs are kept; the few pages
that describe a cluster are loaded again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from siteloom.core.errors import UsageError
from siteloom.core.model import Cluster, Clustering, DamagedPage, Failure, Footprint, Page, Template
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.core.urls import site_of
from siteloom.html.parser import Element, parse
from siteloom.html.time_limit import within
from siteloom.templates.clustering.text import TextMethod, text_clusters
from siteloom.templates.clustering.tree_distance import Tree, rtdm_clusters
from siteloom.templates.clustering.vertex import SignatureCluster, SignatureClustering, cluster_signatures
from siteloom.templates.essential_paths import (
    class_path_hashes,
    describe_template,
    importance,
    page_paths,
    shared_paths,
)
from siteloom.templates.signature import Mask, path_signature, signature
from siteloom.templates.url_patterns import url_patterns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from siteloom.templates.essential_paths import PathSet

SiteMethod: TypeAlias = Literal["vertex", "paths"]
Method: TypeAlias = SiteMethod | TextMethod | Literal["rtdm"]
SITE_METHODS: tuple[Method, ...] = ("vertex", "paths")
METHODS: tuple[Method, ...] = ("vertex", "paths", "text-mdl", "text-hash", "text-max", "rtdm")

_Value = TypeVar("_Value")

# Enough pages to find the shared paths of a template; more change little and cost a parse each.
_PAGES_DESCRIBING = 100


class PageFeatures(NamedTuple):
    """The features of a page that are kept while pages are clustered; None where the page does not parse."""

    url: str
    site: str
    signature: bytes | None
    sketch: bytes | None = None
    paths: NDArray[np.uint64] | None = None
    tree: Tree | None = None
    failure: Failure | None = None


def cluster(pages: Iterable[Page], method: Method = "vertex") -> Clustering:
    """Group the pages with one template, and describe the template.

    `vertex` (by tag shingles) and `paths` (by tag paths with classes) cluster each site separately.
    `text-mdl`, `text-hash`, `text-max` and `rtdm` accept pages of any origin.
    """
    check_method(method)
    page_list = list(pages)
    features = [page_features(page, method) for page in page_list]
    return cluster_features(features, method, lambda indices: map(page_list.__getitem__, indices))


def cluster_footprints(pages: Iterable[Page]) -> list[Footprint]:
    """Return the footprints of the clusters that `vertex` finds, without describing their templates."""
    features = [page_features(page, "vertex") for page in pages]
    groups, _, _ = _cluster_by_site(features, "vertex")
    return [
        Footprint(
            sites=(group.site,),
            url_patterns=url_patterns(features[page].url for page in group.cluster.members),
            masks=((str(group.cluster.mask), group.cluster.mask_pages),),
            accepted=tuple(accepted.hex() for accepted in group.cluster.accepted),
        )
        for group in groups
    ]


def page_features(
    page: Page, method: Method, site: str | None = None, limits: ParseSettings = ParseSettings()
) -> PageFeatures:
    """Return the features of a page that a method needs; pages without tags have no template."""
    check_method(method)
    features = PageFeatures(page.url, site or site_of(page.url), signature(page.html))
    if isinstance(page, DamagedPage):
        return features._replace(failure=page.failure)
    if method == "vertex" or features.signature is None:
        return features
    tree_features = within(
        limits.max_seconds,
        page.url,
        lambda: _tree_features(page=page, method=method, features=features, limits=limits),
    )
    return features._replace(failure=tree_features) if isinstance(tree_features, Failure) else tree_features


def _tree_features(
    page: Page, method: Method, features: PageFeatures, limits: ParseSettings
) -> PageFeatures | Failure:
    """Add the features that need the tree of the page."""
    root = parse(page, limits)
    if isinstance(root, Failure):
        return root
    if method == "paths":
        return features._replace(sketch=path_signature(class_path_hashes(root)))
    if method == "rtdm":
        return features._replace(tree=Tree.of(root))
    return features._replace(paths=page_paths(root).all_paths)


def cluster_features(
    features: Sequence[PageFeatures],
    method: Method,
    load: Callable[[Sequence[int]], Iterable[Page]],
    limits: ParseSettings = ParseSettings(),
) -> Clustering:
    """Cluster pages by their features; `load` loads pages again by their indices."""
    if method == "vertex" or method == "paths":
        groups, unclustered, plain = _cluster_by_site(features, method)
    else:
        groups, unclustered = _cluster_any_origin(features, method)
        plain = sum(len(group.cluster.members) for group in groups)

    def load_trees(indices: Sequence[int]) -> Iterator[Element]:
        trees = (parse(page, limits) for page in load(indices))
        return (root for root in trees if not isinstance(root, Failure))

    numbers: Counter[str] = Counter()
    clusters = []
    for group in sorted(
        groups,
        key=lambda signature_group: (
            signature_group.site,
            -len(signature_group.cluster.members),
            signature_group.cluster.members,
        ),
    ):
        numbers[group.site] += 1
        clusters.append(
            _describe_cluster(
                group=group, number=numbers[group.site], features=features, load_trees=load_trees
            )
        )
    count = max(1, len(features))
    return Clustering(
        clusters=tuple(clusters),
        unclustered=tuple(sorted(unclustered)),
        plain_coverage=plain / count,
        coverage=(len(features) - len(unclustered)) / count,
    )


def renumber(clustering: Clustering, offset: int) -> Clustering:
    """Shift the page numbers of a clustering by an offset."""
    return replace(
        clustering,
        clusters=tuple(
            replace(cluster, members=tuple(offset + member for member in cluster.members))
            for cluster in clustering.clusters
        ),
        unclustered=tuple(offset + page for page in clustering.unclustered),
    )


def join_clusterings(clusterings: Sequence[Clustering], pages: int) -> Clustering:
    """Join clusterings of different pages; `pages` is the number of all pages."""
    plain = sum(clustering.plain_coverage * _pages(clustering) for clustering in clusterings)
    unclustered = tuple(page for clustering in clusterings for page in clustering.unclustered)
    return Clustering(
        clusters=tuple(cluster for clustering in clusterings for cluster in clustering.clusters),
        unclustered=unclustered,
        plain_coverage=plain / max(1, pages),
        coverage=(pages - len(unclustered)) / max(1, pages),
    )


def _pages(clustering: Clustering) -> int:
    return sum(cluster.size for cluster in clustering.clusters) + len(clustering.unclustered)


def check_method(name: str) -> Method:
    """Return a method by its name; raise UsageError if there is none."""
    for method in METHODS:
        if method == name:
            return method
    raise UsageError(f"There is no method {name!r}: use one of {', '.join(METHODS)}.")


class _Group(NamedTuple):
    site: str
    cluster: SignatureCluster


def cluster_site(
    signatures: Sequence[bytes | None], sketches: Sequence[bytes | None] | None = None
) -> SignatureClustering:
    """Cluster a site's pages by their signatures or, if given, by sketches of their paths."""
    if sketches is None:
        return cluster_signatures(signatures)
    clustering = cluster_signatures(sketches)
    # These masks are of sketches, but pages are looked up by signatures.
    clusters = (cluster_by_signatures(group.members, signatures) for group in clustering.clusters)
    return replace(clustering, clusters=tuple(clusters))


def cluster_by_signatures(members: tuple[int, ...], signatures: Sequence[bytes | None]) -> SignatureCluster:
    """Describe a cluster of pages by its most frequent signature."""
    known_signatures = [
        page_signature for page in members if (page_signature := signatures[page]) is not None
    ]
    typical = most_common(known_signatures)
    return SignatureCluster(
        members=members,
        mask=Mask(typical),
        mask_pages=known_signatures.count(typical),
        accepted=tuple(sorted(set(known_signatures))),
    )


def _cluster_by_site(
    features: Sequence[PageFeatures], method: SiteMethod
) -> tuple[list[_Group], list[int], int]:
    """Run Vertex's passes for each site, on tag-shingle signatures or on sketches of paths."""
    pages_of_site: dict[str, list[int]] = defaultdict(list)
    for page, features_of_page in enumerate(features):
        pages_of_site[features_of_page.site].append(page)
    groups: list[_Group] = []
    unclustered: list[int] = []
    plainly_clustered = 0
    for site, pages in sorted(pages_of_site.items()):
        clustering = cluster_site(
            [features[page].signature for page in pages],
            None if method == "vertex" else [features[page].sketch for page in pages],
        )
        plainly_clustered += round(clustering.plain_coverage * len(pages))
        unclustered += [pages[index] for index in clustering.unclustered]
        for group in clustering.clusters:
            members = tuple(pages[index] for index in group.members)
            groups.append(_Group(site, replace(group, members=members)))
    return groups, unclustered, plainly_clustered


def _cluster_any_origin(
    features: Sequence[PageFeatures], method: TextMethod | Literal["rtdm"]
) -> tuple[list[_Group], list[int]]:
    if method == "rtdm":
        trees = {
            page: features_of_page.tree
            for page, features_of_page in enumerate(features)
            if features_of_page.tree is not None
        }
        usable = list(trees)
        clusters = rtdm_clusters(list(trees.values()))
    else:
        filled = {
            page: features_of_page.paths
            for page, features_of_page in enumerate(features)
            if features_of_page.paths is not None and features_of_page.paths.size
        }
        usable = list(filled)
        clusters = text_clusters(list(filled.values()), method)
    signatures = [features_of_page.signature for features_of_page in features]
    groups = []
    for indices in clusters:
        members = tuple(usable[index] for index in indices)
        site = most_common(features[page].site for page in members)
        groups.append(_Group(site, cluster_by_signatures(members, signatures)))
    clustered = {page for group in groups for page in group.cluster.members}
    return groups, [page for page in range(len(features)) if page not in clustered]


def most_common(values: Iterable[_Value]) -> _Value:
    """Return the most frequent value; of several, the first."""
    ((value, _),) = Counter(values).most_common(1)
    return value


def describing_members(members: Sequence[_Value]) -> tuple[_Value, ...]:
    """Return up to a hundred evenly spaced members of a cluster that describe its template."""
    return tuple(evenly_spaced(members, _PAGES_DESCRIBING))


def describe(path_sets: Sequence[PathSet], roots: Iterable[Element], size: int) -> tuple[float, Template]:
    """Return the importance and the template of a cluster of `size` pages, from those that describe it.

    Trees of these pages are requested one by one, since the first few usually suffice.
    """
    shared = shared_paths([paths.all_paths for paths in path_sets])
    return importance(path_sets, size), describe_template(shared, len(path_sets), roots)


def _describe_cluster(
    group: _Group,
    number: int,
    features: Sequence[PageFeatures],
    load_trees: Callable[[Sequence[int]], Iterable[Element]],
) -> Cluster:
    members = group.cluster.members
    described_pages = describing_members(members)
    path_sets = [page_paths(root) for root in load_trees(described_pages)]
    roots = (root for page in described_pages for root in load_trees((page,)))
    importance_score, template = describe(path_sets, roots, len(members))
    return Cluster(
        id=f"{group.site}/{number}",
        site=group.site,
        members=members,
        mask=str(group.cluster.mask),
        mask_pages=group.cluster.mask_pages,
        accepted=tuple(accepted.hex() for accepted in group.cluster.accepted),
        importance=importance_score,
        url_patterns=url_patterns(features[page].url for page in members),
        template=template,
    )
