"""Which old wrappers may still be right for the pages of a new cluster (Gulhane et al., ICDE 2011)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.signature import Mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.matching import NamedWrapper
    from siteloom.model import Cluster


def reuse_candidates(cluster: Cluster, wrappers: Sequence[NamedWrapper]) -> list[NamedWrapper]:
    """The wrappers that pass the shingle test for a cluster, in the order in which to field-test them.

    Strict to loose: those that have the very mask of the cluster, then those that cover all its pages. Among
    equals the one whose mask has most pages comes first.
    """
    ranked = []
    for place, named in enumerate(wrappers):
        masks = dict(named.wrapper.footprint.masks)
        if cluster.mask in masks:
            ranked.append((0, -masks[cluster.mask], place, named))
        elif _covers_all(named, cluster):
            ranked.append((1, -max(masks.values(), default=0), place, named))
    return [named for *_, named in sorted(ranked, key=lambda one: one[:3])]


def _covers_all(named: NamedWrapper, cluster: Cluster) -> bool:
    footprint = named.wrapper.footprint
    masks = [Mask.from_text(text) for text, _ in footprint.masks]
    known = set(footprint.accepted)
    return all(
        found in known or any(mask.covers(bytes.fromhex(found)) for mask in masks)
        for found in cluster.accepted
    )
