"""Pages into clusters, by whichever method: what is looked at in each page, and what a cluster is told by.

Pages come once, one after the other, and only what the method needs of each is
kept; the few that describe a cluster are asked for again.
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

_T = TypeVar("_T")

# Enough pages to see what a template shares; looking at more changes little and costs a parse each.
_PAGES_DESCRIBING = 100


class PageFeatures(NamedTuple):
    """What is kept of a page while pages are clustered; None where the page does not parse."""

    url: str
    site: str
    signature: bytes | None
    sketch: bytes | None = None
    paths: NDArray[np.uint64] | None = None
    tree: Tree | None = None
    failure: Failure | None = None


def cluster(pages: Iterable[Page], method: Method = "vertex") -> Clustering:
    """Find out which pages were made from one template, and what the template is.

    `vertex` (by tag shingles) and `paths` (by tag paths with classes) cluster
    each site by itself. `text-mdl`, `text-hash`, `text-max` and `rtdm` take
    pages of any origin.
    """
    checked_method(method)
    kept = list(pages)
    features = [page_features(page, method) for page in kept]
    return cluster_features(features, method, lambda wanted: map(kept.__getitem__, wanted))


def cluster_footprints(pages: Iterable[Page]) -> list[Footprint]:
    """The footprints of the clusters that `vertex` finds; what their pages share is not looked at."""
    features = [page_features(page, "vertex") for page in pages]
    groups, _, _ = _by_site(features, "vertex")
    return [
        Footprint(
            (group.site,),
            url_patterns(features[page].url for page in group.found.members),
            ((str(group.found.mask), group.found.mask_pages),),
            tuple(accepted.hex() for accepted in group.found.accepted),
        )
        for group in groups
    ]


def page_features(
    page: Page, method: Method, site: str | None = None, limits: ParseSettings = ParseSettings()
) -> PageFeatures:
    """What a method needs of a page: nothing of one without tags, which no template made."""
    checked_method(method)
    features = PageFeatures(page.url, site or site_of(page.url), signature(page.html))
    if isinstance(page, DamagedPage):
        return features._replace(failure=page.failure)
    if method == "vertex" or features.signature is None:
        return features
    found = within(limits.max_seconds, page.url, lambda: _tree_features(page, method, features, limits))
    return features._replace(failure=found) if isinstance(found, Failure) else found


def _tree_features(
    page: Page, method: Method, features: PageFeatures, limits: ParseSettings
) -> PageFeatures | Failure:
    """The features with what is seen in the tree of the page."""
    root = parse(page, limits)
    if isinstance(root, Failure):
        return root
    if method == "paths":
        return features._replace(sketch=path_signature(class_path_hashes(root)))
    if method == "rtdm":
        return features._replace(tree=Tree.of(root))
    return features._replace(paths=page_paths(root).all)


def cluster_features(
    features: Sequence[PageFeatures],
    method: Method,
    load: Callable[[Sequence[int]], Iterable[Page]],
    limits: ParseSettings = ParseSettings(),
) -> Clustering:
    """Cluster pages by what was kept of them; `load` gives some pages again by their indices."""
    if method == "vertex" or method == "paths":
        groups, unclustered, plain = _by_site(features, method)
    else:
        groups, unclustered = _of_any_origin(features, method)
        plain = sum(len(group.found.members) for group in groups)

    def load_trees(wanted: Sequence[int]) -> Iterator[Element]:
        trees = (parse(page, limits) for page in load(wanted))
        return (root for root in trees if not isinstance(root, Failure))

    numbers: Counter[str] = Counter()
    clusters = []
    for group in sorted(groups, key=lambda one: (one.site, -len(one.found.members), one.found.members)):
        numbers[group.site] += 1
        clusters.append(_described(group, numbers[group.site], features, load_trees))
    count = max(1, len(features))
    return Clustering(
        tuple(clusters), tuple(sorted(unclustered)), plain / count, (len(features) - len(unclustered)) / count
    )


def renumbered(clustering: Clustering, first: int) -> Clustering:
    """A clustering of pages that stand behind `first` others."""
    return replace(
        clustering,
        clusters=tuple(
            replace(cluster, members=tuple(first + member for member in cluster.members))
            for cluster in clustering.clusters
        ),
        unclustered=tuple(first + page for page in clustering.unclustered),
    )


def joined(parts: Sequence[Clustering], pages: int) -> Clustering:
    """Clusterings of different pages as one; `pages` is the number of all pages."""
    plain = sum(part.plain_coverage * _pages(part) for part in parts)
    unclustered = tuple(page for part in parts for page in part.unclustered)
    return Clustering(
        tuple(cluster for part in parts for cluster in part.clusters),
        unclustered,
        plain / max(1, pages),
        (pages - len(unclustered)) / max(1, pages),
    )


def _pages(clustering: Clustering) -> int:
    return sum(cluster.size for cluster in clustering.clusters) + len(clustering.unclustered)


def checked_method(name: str) -> Method:
    """A method by its name."""
    for method in METHODS:
        if method == name:
            return method
    raise UsageError(f"There is no method {name!r}: use one of {', '.join(METHODS)}.")


class _Group(NamedTuple):
    site: str
    found: SignatureCluster


def cluster_site(
    signatures: Sequence[bytes | None], sketches: Sequence[bytes | None] | None = None
) -> SignatureClustering:
    """The clusters of a site's pages, by their signatures or, where those are given, by sketches of paths."""
    if sketches is None:
        return cluster_signatures(signatures)
    found = cluster_signatures(sketches)
    # The masks are of sketches, by which no page is looked up.
    clusters = (cluster_by_signatures(group.members, signatures) for group in found.clusters)
    return replace(found, clusters=tuple(clusters))


def cluster_by_signatures(members: tuple[int, ...], signatures: Sequence[bytes | None]) -> SignatureCluster:
    """Pages that were found to be alike, told by the signature of most of them."""
    known = [found for page in members if (found := signatures[page]) is not None]
    typical = most_common(known)
    return SignatureCluster(members, Mask(typical), known.count(typical), tuple(sorted(set(known))))


def _by_site(features: Sequence[PageFeatures], method: SiteMethod) -> tuple[list[_Group], list[int], int]:
    """Vertex's passes for each site, on tag-shingle signatures or on sketches of paths."""
    pages_of_site: dict[str, list[int]] = defaultdict(list)
    for page, kept in enumerate(features):
        pages_of_site[kept.site].append(page)
    groups: list[_Group] = []
    unclustered: list[int] = []
    plainly_clustered = 0
    for site, pages in sorted(pages_of_site.items()):
        found = cluster_site(
            [features[page].signature for page in pages],
            None if method == "vertex" else [features[page].sketch for page in pages],
        )
        plainly_clustered += round(found.plain_coverage * len(pages))
        unclustered += [pages[place] for place in found.unclustered]
        for group in found.clusters:
            members = tuple(pages[place] for place in group.members)
            groups.append(_Group(site, replace(group, members=members)))
    return groups, unclustered, plainly_clustered


def _of_any_origin(
    features: Sequence[PageFeatures], method: TextMethod | Literal["rtdm"]
) -> tuple[list[_Group], list[int]]:
    if method == "rtdm":
        trees = {page: kept.tree for page, kept in enumerate(features) if kept.tree is not None}
        usable = list(trees)
        found = rtdm_clusters(list(trees.values()))
    else:
        filled = {
            page: kept.paths
            for page, kept in enumerate(features)
            if kept.paths is not None and kept.paths.size
        }
        usable = list(filled)
        found = text_clusters(list(filled.values()), method)
    signatures = [kept.signature for kept in features]
    groups = []
    for places in found:
        members = tuple(usable[place] for place in places)
        site = most_common(features[page].site for page in members)
        groups.append(_Group(site, cluster_by_signatures(members, signatures)))
    clustered = {page for group in groups for page in group.found.members}
    return groups, [page for page in range(len(features)) if page not in clustered]


def most_common(values: Iterable[_T]) -> _T:
    """The value that comes most often; of several the one that comes first."""
    ((value, _),) = Counter(values).most_common(1)
    return value


def describing_members(members: Sequence[_T]) -> tuple[_T, ...]:
    """The members of a cluster that show its template: up to a hundred, from all over it."""
    return tuple(evenly_spaced(members, _PAGES_DESCRIBING))


def describe(path_sets: Sequence[PathSet], roots: Iterable[Element], size: int) -> tuple[float, Template]:
    """The importance and the template of a cluster of so many pages, by those that describe it.

    Trees of these pages are asked for one by one, for the first few mostly tell all.
    """
    shared = shared_paths([paths.all for paths in path_sets])
    return importance(path_sets, size), describe_template(shared, len(path_sets), roots)


def _described(
    group: _Group,
    number: int,
    features: Sequence[PageFeatures],
    load_trees: Callable[[Sequence[int]], Iterable[Element]],
) -> Cluster:
    members = group.found.members
    described_by = describing_members(members)
    path_sets = [page_paths(root) for root in load_trees(described_by)]
    roots = (root for page in described_by for root in load_trees((page,)))
    worth, template = describe(path_sets, roots, len(members))
    return Cluster(
        f"{group.site}/{number}",
        group.site,
        members,
        str(group.found.mask),
        group.found.mask_pages,
        tuple(accepted.hex() for accepted in group.found.accepted),
        worth,
        url_patterns(features[page].url for page in members),
        template,
    )
