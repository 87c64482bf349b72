"""TEXT-HASH and TEXT-MAX: the same merging with MinHash estimates and bands.

The paper merges one pair at a time. Here merging goes in rounds: every cluster
finds its partner, then the pairs are merged, the best first, as far as each
still shortens the description. That takes few rounds, so the cost grows with
the number of documents instead of its square.

A band is some of a page's min-hashes together. Two pages with a share J of their paths in common have all r
min-hashes of a band in common with a probability of J**r, and one of b bands at least with 1 - (1 - J**r)**b.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.templates.clustering.description_length import (
    Partners,
    Shape,
    Signatures,
    Supports,
    compare_all,
    compare_neighbours,
    estimated_changes,
    estimated_contributions,
    least_ranks,
    merge_by_estimate,
    merge_exactly,
    merge_signatures,
    no_partners,
)
from siteloom.templates.clustering.text_mdl import (
    after_merges,
    best_merges,
    clusters_with_supports,
    matrix_shape,
)
from siteloom.templates.signature import least_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from siteloom.templates.clustering.text_mdl import PathSets


class EstimatedCosts:
    """Clusters whose costs are estimated from their signatures, which merging changes."""

    def __init__(self, signatures: Signatures) -> None:
        self._clusters = signatures

    @property
    def contributions(self) -> NDArray[np.float64]:
        """A row for each cluster: paths of the template, beyond it, and lacking from it."""
        return self._clusters.contributions

    def changes(self, cluster: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """How merging a cluster with each of the others would change the sum of contributions."""
        return estimated_changes(self._clusters, cluster, others)

    def merge(self, into: int, absorbed: int) -> None:
        """Merges two clusters."""
        merge_signatures(self._clusters, into, absorbed)


def text_hash(sets: PathSets, signature_length: int) -> list[list[int]]:
    """Merges documents, none of them empty, by estimated costs until no merge shortens the description."""
    costs = EstimatedCosts(signatures(sets, signature_length))
    documents = [[document] for document in range(len(sets))]
    return after_merges(documents, best_merges(costs, matrix_shape(sets)))


def signatures(sets: PathSets, length: int) -> Signatures:
    """The signatures of documents, none of them empty, as clusters of one each."""
    # Raw output of a bit generator, which numpy promises never to change.
    numbers = np.random.PCG64(0).random_raw(length)
    factors = (numbers & 0xFFFFFFFF | 1).astype(np.uint32)
    offsets = (numbers >> 32).astype(np.uint32)
    ranks = least_ranks(sets.starts, sets.paths, factors, offsets)
    counts = np.ones(ranks.shape, np.int32)
    sizes = np.ones(len(sets), np.int64)
    return Signatures(ranks, counts, sizes, sets.sizes, estimated_contributions(counts, sizes, sets.sizes))


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


# Of 8, 16 and 32 bands of 2, 4 and 8 min-hashes each, tried on 100 pages of each of 32 sites of SWDE and on
# 180 pages of news. With 2, large parts have pages of many sites. With 8, pages of one template are in 2.5
# parts on average, with 4 in 1.5 or 1.8. 32 bands gain little over 16, and there is a row to sort for each.
_BANDS = 16
_HASHES_OF_A_BAND = 4
_KEY_BYTES = 12  # so no two of the bands of many billion pages are equal by chance

# Any different numbers would do.
_SEEDS = np.array(
    [(0x9E3779B97F4A7C15 * n) % 2**64 for n in range(1, _BANDS * _HASHES_OF_A_BAND + 1)], np.uint64
)


class PathBands(NamedTuple):
    """The bands of a page, and all of them as one, which only pages that are made quite alike share."""

    bands: list[str]
    whole: str


def path_bands(elements: NDArray[np.uint64]) -> PathBands:
    """The bands of a page by the paths of its elements, of which there must be some.

    Texts are left out: most paths of a page end in texts of its own, which would tear its template apart.
    """
    least = least_hashes(elements, _SEEDS).astype(">u8")
    bands = [_key(number, band) for number, band in enumerate(least.reshape(_BANDS, _HASHES_OF_A_BAND))]
    return PathBands(bands, _key(_BANDS, least))


def _key(number: int, hashes: NDArray[np.uint64]) -> str:
    """The same hashes in another band are something else."""
    return blake2b(hashes.tobytes(), digest_size=_KEY_BYTES, key=bytes([number])).hexdigest()
