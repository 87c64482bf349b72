"""Footprints, which identify the pages of a wrapper before parsing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from siteloom.core.model import Footprint
from siteloom.core.urls import site_of
from siteloom.templates.clustering.vertex import cluster_signatures
from siteloom.templates.signature import Mask
from siteloom.templates.url_patterns import url_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.core.model import Cluster


def footprint(pages: Sequence[tuple[str, bytes | None]]) -> Footprint:
    """Return the footprint of pages, given by URL and signature in any order."""
    signatures = [page_signature for _, page_signature in pages if page_signature is not None]
    return Footprint(
        sites=_sites(url for url, _ in pages),
        url_patterns=url_patterns(url for url, _ in pages),
        masks=_masks(signatures),
        accepted=tuple(sorted({page_signature.hex() for page_signature in signatures})),
    )


def cluster_footprint(cluster: Cluster, urls: Iterable[str]) -> Footprint:
    """Return the footprint of a cluster; `urls` are those of its members."""
    return Footprint(
        sites=_sites(urls),
        url_patterns=cluster.url_patterns,
        masks=((cluster.mask, cluster.mask_pages),),
        accepted=cluster.accepted,
    )


def merge_footprints(footprints: Iterable[Footprint]) -> Footprint:
    """Return one footprint that covers the pages of several."""
    all_footprints = tuple(footprints)
    pages: Counter[str] = Counter()
    for item in all_footprints:
        for mask, count in item.masks:
            pages[mask] += count
    return Footprint(
        sites=tuple(sorted({site for item in all_footprints for site in item.sites})),
        url_patterns=tuple(sorted({pattern for item in all_footprints for pattern in item.url_patterns})),
        masks=_largest_first(pages),
        accepted=tuple(sorted({signature for item in all_footprints for signature in item.accepted})),
    )


def extend_footprint(current: Footprint, added: Footprint) -> Footprint:
    """Add the new entries of another footprint; the page counts of current masks stay unchanged."""
    merged = merge_footprints([current, added])
    masks = {**dict(added.masks), **dict(current.masks)}
    return replace(merged, masks=_largest_first(masks))


def _sites(urls: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({site_of(url) for url in urls}))


def _masks(signatures: Sequence[bytes]) -> tuple[tuple[str, int], ...]:
    """Return the masks of the clusters of signatures; without clusters, the most frequent signature."""
    if not signatures:
        return ()
    clusters = cluster_signatures(signatures).clusters
    if clusters:
        return _largest_first({str(cluster.mask): cluster.mask_pages for cluster in clusters})
    typical, count = min(Counter(signatures).items(), key=lambda item: (-item[1], item[0]))
    return ((str(Mask(typical)), count),)


def _largest_first(pages: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(pages.items(), key=lambda item: (-item[1], item[0])))
