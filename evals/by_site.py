"""Vertex and its variant on paths, each site by itself: how many pages are clustered, into how many."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from siteloom.templates.clustering.methods import page_features
from siteloom.templates.clustering.vertex import assign, cluster_signatures

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evals.swde import SwdeSite
    from siteloom.templates.clustering.vertex import SignatureClustering

PAGES_OF_A_SITE = (400, 50)


class BySite(NamedTuple):
    """Means over sites.

    `shared_signatures` are accepted by clusters of two sites, and
    `taken_by_others` is the share of pages that another site's clusters would
    take in as theirs.
    """

    method: str
    pages_of_a_site: int
    plain_coverage: float
    coverage: float
    clusters_of_a_site: float
    most_clusters: tuple[int, str]
    shared_signatures: int
    taken_by_others: float


class _Keys(NamedTuple):
    vertex: bytes | None
    paths: bytes | None


def measure(sites: Sequence[SwdeSite]) -> Iterator[BySite]:
    keys = {site.full_name: _keys(site) for site in sites}
    for pages_of_a_site in PAGES_OF_A_SITE:
        for method in ("vertex", "paths"):
            signatures = {
                site.full_name: [
                    getattr(keys[site.full_name][number], method)
                    for number in site.evenly_spaced(pages_of_a_site)
                ]
                for site in sites
            }
            yield _measured(method, pages_of_a_site, signatures)


def _keys(site: SwdeSite) -> dict[str, _Keys]:
    numbers = sorted({number for pages in PAGES_OF_A_SITE for number in site.evenly_spaced(pages)})
    kept = {number: page_features(site.page(number), "paths", site.full_name) for number in numbers}
    return {number: _Keys(features.signature, features.sketch) for number, features in kept.items()}


def _measured(method: str, pages_of_a_site: int, signatures: Mapping[str, Sequence[bytes | None]]) -> BySite:
    found = {site: cluster_signatures(keys) for site, keys in signatures.items()}
    counts = {site: len(clustering.clusters) for site, clustering in found.items()}
    largest = max(counts, key=lambda site: counts[site])
    pages = sum(map(len, signatures.values()))
    return BySite(
        method,
        pages_of_a_site,
        sum(found[site].plain_coverage * len(keys) for site, keys in signatures.items()) / pages,
        sum(found[site].coverage * len(keys) for site, keys in signatures.items()) / pages,
        sum(counts.values()) / len(counts),
        (counts[largest], largest),
        _shared_signatures(found),
        _taken_by_others(found, signatures) / pages,
    )


def _shared_signatures(found: Mapping[str, SignatureClustering]) -> int:
    sites_of: Counter[bytes] = Counter()
    for clustering in found.values():
        sites_of.update({signature for cluster in clustering.clusters for signature in cluster.accepted})
    return sum(sites > 1 for sites in sites_of.values())


def _taken_by_others(
    found: Mapping[str, SignatureClustering], signatures: Mapping[str, Sequence[bytes | None]]
) -> int:
    taken = 0
    for site, keys in signatures.items():
        others = [cluster for other in found if other != site for cluster in found[other].clusters]
        taken += sum(place is not None for place in assign(others, keys))
    return taken
