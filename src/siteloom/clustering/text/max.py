"""TEXT-MAX: TEXT-HASH in which a cluster is only merged with a partner of maximal Jaccard.

The paper merges one pair at a time. Here merging goes in rounds: every cluster
finds its partner, then the pairs are merged, the best first, as far as each
still shortens the description. That takes few rounds, so the cost grows with
the number of documents instead of its square.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from siteloom.clustering.text.cost import clusters_with_supports, matrix_shape
from siteloom.clustering.text.hash import signatures
from siteloom.kernels.description_length import (
    Partners,
    Shape,
    Signatures,
    Supports,
    compare_all,
    compare_neighbours,
    estimated_contributions,
    merge_by_estimate,
    merge_exactly,
    no_partners,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from siteloom.clustering.text.essential import PathSets

# Up to here every cluster is compared with every other: a tenth of a second.
_FEW_CLUSTERS = 2_000

# Above it clusters are sorted by this many ranks at a time, once for each such
# part of the signature, and compared with their next neighbours in each order.
# On generated documents that found partners of on average .999 of the maximal
# Jaccard, also in templates of 200 documents that all differ.
_SORTED_RANKS = 8
_NEIGHBOURS = 8


def text_max(sets: PathSets, signature_length: int) -> list[list[int]]:
    """Merges documents, none of them empty, with partners of maximal Jaccard.

    Estimated costs decide first, and exact ones when no merge shortens the
    description any more by estimate: where clusters are large the estimates
    are noisy, and split templates that belong together.
    """
    shape = matrix_shape(sets)
    clusters, cluster_of = _identical_merged(signatures(sets, signature_length))
    clusters, cluster_of = _merged_in_rounds(clusters, cluster_of, None, shape)
    supports = clusters_with_supports(sets, members(cluster_of))
    _, cluster_of = _merged_in_rounds(clusters, cluster_of, supports, shape)
    return members(cluster_of)


def members(cluster_of: NDArray[np.int64]) -> list[list[int]]:
    """The documents of each cluster, ascending."""
    order = np.argsort(cluster_of, kind="stable")
    ends = np.cumsum(np.bincount(cluster_of))
    return [documents.tolist() for documents in np.split(order, ends[:-1])]


def _identical_merged(documents: Signatures) -> tuple[Signatures, NDArray[np.int64]]:
    """Clusters of the documents with identical signatures, and the cluster of each document."""
    length = documents.ranks.shape[1]
    as_one_value = documents.ranks.view(np.dtype((np.void, 4 * length))).ravel()
    _, first, group = np.unique(as_one_value, return_index=True, return_inverse=True)
    # by first document: numpy sorts the values as bytes, which differs between machines
    order = np.argsort(first)
    cluster_of = np.argsort(order)[group]
    sizes = np.bincount(cluster_of)
    path_totals = np.zeros(sizes.size, np.int64)
    np.add.at(path_totals, cluster_of, documents.path_totals)
    counts = np.repeat(sizes.astype(np.int32), length).reshape(-1, length)
    contributions = estimated_contributions(counts, sizes, path_totals)
    return Signatures(documents.ranks[first[order]], counts, sizes, path_totals, contributions), cluster_of


def _merged_in_rounds(
    clusters: Signatures, cluster_of: NDArray[np.int64], supports: Supports | None, shape: Shape
) -> tuple[Signatures, NDArray[np.int64]]:
    """The clusters when no merge shortens the description any more, and the cluster of each document.

    Costs are exact where the clusters' supports are given, else estimated.
    """
    while True:
        found = _partners(clusters, shape)
        order = _best_first(found)
        if supports is None:
            rows = merge_by_estimate(clusters, order, found.partner, shape)
        else:
            supports, rows = merge_exactly(clusters, supports, order, found.partner, shape)
        kept = rows == np.arange(rows.size)
        if kept.all():
            return clusters, cluster_of
        if supports is not None:
            supports = _supports_kept(supports, kept)
        clusters = Signatures._make(column[kept] for column in clusters)
        cluster_of = (np.cumsum(kept) - 1)[rows][cluster_of]


def _best_first(found: Partners) -> NDArray[np.int64]:
    """The clusters that have a partner, those whose merging leaves the fewest bits first."""
    willing = np.flatnonzero(found.partner >= 0)
    return willing[np.argsort(found.bits[willing], kind="stable")]


def _supports_kept(clusters: Supports, kept: NDArray[np.bool_]) -> Supports:
    return clusters._replace(
        starts=clusters.starts[kept],
        ends=clusters.ends[kept],
        sizes=clusters.sizes[kept],
        contributions=clusters.contributions[kept],
    )


def _partners(clusters: Signatures, shape: Shape) -> Partners:
    """For each cluster a partner of maximal Jaccard, or nearly so where there are many clusters.

    Clusters that agree on most ranks stand next to each other in at least one
    of the orders: sorting by several ranks is hashing into buckets of all
    lengths from long to short, and the next neighbours share the longest.
    """
    count, length = clusters.ranks.shape
    found = no_partners(count)
    if count <= _FEW_CLUSTERS:
        compare_all(clusters, shape, found)
        return found
    for start in range(0, length, _SORTED_RANKS):
        order = np.lexsort(clusters.ranks[:, start : start + _SORTED_RANKS].T)
        compare_neighbours(clusters, order, _NEIGHBOURS, shape, found)
    return found
