"""Footprints: what tells the pages of a wrapper from others before they are parsed."""

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
    """The footprint of pages that are given by URL and signature, in whatever order."""
    signatures = [found for _, found in pages if found is not None]
    return Footprint(
        _sites(url for url, _ in pages),
        url_patterns(url for url, _ in pages),
        _masks(signatures),
        tuple(sorted({found.hex() for found in signatures})),
    )


def cluster_footprint(cluster: Cluster, urls: Iterable[str]) -> Footprint:
    """The footprint of a cluster; `urls` are those of its members."""
    return Footprint(
        _sites(urls), cluster.url_patterns, ((cluster.mask, cluster.mask_pages),), cluster.accepted
    )


def united(footprints: Iterable[Footprint]) -> Footprint:
    """One footprint for the pages of several."""
    parts = tuple(footprints)
    pages: Counter[str] = Counter()
    for part in parts:
        for mask, count in part.masks:
            pages[mask] += count
    return Footprint(
        tuple(sorted({site for part in parts for site in part.sites})),
        tuple(sorted({pattern for part in parts for pattern in part.url_patterns})),
        _largest_first(pages),
        tuple(sorted({found for part in parts for found in part.accepted})),
    )


def extended(known: Footprint, seen: Footprint) -> Footprint:
    """A footprint for pages seen again, too: what is new is added, and what is known stays as it is."""
    whole = united([known, seen])
    masks = {**dict(seen.masks), **dict(known.masks)}
    return replace(whole, masks=_largest_first(masks))


def _sites(urls: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({site_of(url) for url in urls}))


def _masks(signatures: Sequence[bytes]) -> tuple[tuple[str, int], ...]:
    """The masks of the clusters; where all signatures differ too much for one, the most frequent one."""
    if not signatures:
        return ()
    clusters = cluster_signatures(signatures).clusters
    if clusters:
        return _largest_first({str(cluster.mask): cluster.mask_pages for cluster in clusters})
    typical, count = min(Counter(signatures).items(), key=lambda item: (-item[1], item[0]))
    return ((str(Mask(typical)), count),)


def _largest_first(pages: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(pages.items(), key=lambda item: (-item[1], item[0])))
