"""TEXT-HASH and TEXT-MAX: merge clusters with MinHash estimates and bands.

The paper merges one pair at a time. Here, merging goes in rounds: every cluster finds its partner, then the
pairs are merged, the best first, if each still shortens the description. That takes few rounds, so the cost
grows with the number of documents instead of its square.

A band combines some of a page's min-hashes. Two pages with a share J of their paths in common have all r
min-hashes of a band in common with a probability of J**r, and at least one of b bands with 1 - (1 - J**r)**b.
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
from siteloom.templates.signature import min_hashes

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

    def changes(self, cluster: int, other_clusters: NDArray[np.int64]) -> NDArray[np.float64]:
        """How merging a cluster with each of the others would change the sum of contributions."""
        return estimated_changes(self._clusters, cluster, other_clusters)

    def merge(self, into: int, absorbed: int) -> None:
        """Merges two clusters."""
        merge_signatures(self._clusters, into, absorbed)


def text_hash(sets: PathSets, signature_length: int) -> list[list[int]]:
    """Merge documents, none of them empty, by estimated costs until no merge shortens the description."""
    costs = EstimatedCosts(signatures(sets, signature_length))
    documents = [[document] for document in range(len(sets))]
    return after_merges(documents, best_merges(costs, matrix_shape(sets)))


def signatures(sets: PathSets, length: int) -> Signatures:
    """Return the signatures of documents, none of them empty, as clusters of one each."""
    # Raw output of a bit generator, which numpy promises never to change.
    numbers = np.random.PCG64(0).random_raw(length)
    factors = (numbers & 0xFFFFFFFF | 1).astype(np.uint32)
    offsets = (numbers >> 32).astype(np.uint32)
    ranks = least_ranks(starts=sets.starts, paths=sets.paths, factors=factors, offsets=offsets)
    counts = np.ones(ranks.shape, np.int32)
    sizes = np.ones(len(sets), np.int64)
    return Signatures(ranks, counts, sizes, sets.sizes, estimated_contributions(counts, sizes, sets.sizes))


# Up to this number every cluster is compared with every other: a tenth of a second.
_FEW_CLUSTERS = 2_000

# More clusters are sorted by this many ranks at a time, once for each such part of the signature, and
# compared with their next neighbours in each order. On generated documents that found partners with on
# average .999 of the maximal Jaccard, also in templates of 200 documents that all differ.
_SORTED_RANKS = 8
_NEIGHBOURS = 8


def text_max(sets: PathSets, signature_length: int) -> list[list[int]]:
    """Merge documents, none of them empty, with partners of maximal Jaccard.

    Estimated costs decide first, and exact ones once no merge shortens the description by estimate: for large
    clusters the estimates are noisy, and would split templates.
    """
    shape = matrix_shape(sets)
    clusters, cluster_of = _merge_identical(signatures(sets, signature_length))
    clusters, cluster_of = _merge_in_rounds(
        clusters=clusters, cluster_of=cluster_of, supports=None, shape=shape
    )
    supports = clusters_with_supports(sets, members(cluster_of))
    _, cluster_of = _merge_in_rounds(clusters=clusters, cluster_of=cluster_of, supports=supports, shape=shape)
    return members(cluster_of)


def members(cluster_of: NDArray[np.int64]) -> list[list[int]]:
    """Return the documents of each cluster, ascending."""
    order = np.argsort(cluster_of, kind="stable")
    ends = np.cumsum(np.bincount(cluster_of))
    return [documents.tolist() for documents in np.split(order, ends[:-1])]


def _merge_identical(documents: Signatures) -> tuple[Signatures, NDArray[np.int64]]:
    """Merge documents with identical signatures; return the clusters, and the cluster of each document."""
    length = documents.ranks.shape[1]
    as_one_value = documents.ranks.view(np.dtype((np.void, 4 * length))).ravel()
    _, first_documents, group = np.unique(as_one_value, return_index=True, return_inverse=True)
    # by first document: numpy sorts the values as bytes, which differs between machines
    order = np.argsort(first_documents)
    cluster_of = np.argsort(order)[group]
    sizes = np.bincount(cluster_of)
    path_totals = np.zeros(sizes.size, np.int64)
    np.add.at(path_totals, cluster_of, documents.path_totals)
    counts = np.repeat(sizes.astype(np.int32), length).reshape(-1, length)
    contributions = estimated_contributions(counts, sizes, path_totals)
    return Signatures(
        documents.ranks[first_documents[order]], counts, sizes, path_totals, contributions
    ), cluster_of


def _merge_in_rounds(
    clusters: Signatures, cluster_of: NDArray[np.int64], supports: Supports | None, shape: Shape
) -> tuple[Signatures, NDArray[np.int64]]:
    """Merge until no merge shortens the description; return the clusters, and the cluster of each document.

    Costs are exact if the clusters' supports are given, else estimated.
    """
    while True:
        partners = _find_partners(clusters, shape)
        order = _best_first(partners)
        if supports is None:
            rows = merge_by_estimate(clusters=clusters, order=order, partner=partners.partner, shape=shape)
        else:
            supports, rows = merge_exactly(
                clusters=clusters, supports=supports, order=order, partner=partners.partner, shape=shape
            )
        is_row_kept = rows == np.arange(rows.size)
        if is_row_kept.all():
            return clusters, cluster_of
        if supports is not None:
            supports = _keep_supports(supports, is_row_kept)
        clusters = Signatures._make(column[is_row_kept] for column in clusters)
        cluster_of = (np.cumsum(is_row_kept) - 1)[rows][cluster_of]


def _best_first(partners: Partners) -> NDArray[np.int64]:
    """Return the clusters that have a partner, those whose merge leaves the fewest bits first."""
    with_partner = np.flatnonzero(partners.partner >= 0)
    return with_partner[np.argsort(partners.bits[with_partner], kind="stable")]


def _keep_supports(clusters: Supports, is_row_kept: NDArray[np.bool_]) -> Supports:
    return clusters._replace(
        starts=clusters.starts[is_row_kept],
        ends=clusters.ends[is_row_kept],
        sizes=clusters.sizes[is_row_kept],
        contributions=clusters.contributions[is_row_kept],
    )


def _find_partners(clusters: Signatures, shape: Shape) -> Partners:
    """Find for each cluster a partner of maximal Jaccard, or nearly so among many clusters.

    Clusters that agree on most ranks are adjacent in at least one of the orders: sorting by several ranks is
    hashing into buckets of all lengths from long to short, and the next neighbours share the longest.
    """
    count, length = clusters.ranks.shape
    partners = no_partners(count)
    if count <= _FEW_CLUSTERS:
        compare_all(clusters, shape, partners)
        return partners
    for start in range(0, length, _SORTED_RANKS):
        order = np.lexsort(clusters.ranks[:, start : start + _SORTED_RANKS].T)
        compare_neighbours(clusters=clusters, order=order, reach=_NEIGHBOURS, shape=shape, partners=partners)
    return partners


# Chosen from 8, 16 and 32 bands of 2, 4 and 8 min-hashes each, tried on 100 pages of each of 32 sites of SWDE
# and on 180 pages of news. With 2, large parts mix pages of many sites. With 8, pages of one template are in
# 2.5 parts on average, with 4 in 1.5 or 1.8. 32 bands gain little over 16, and each needs a row to sort.
_BANDS = 16
_HASHES_OF_A_BAND = 4
_KEY_BYTES = 12  # enough to make chance collisions among billions of pages improbable

# Any different numbers would do.
_SEEDS = np.array(
    [(0x9E3779B97F4A7C15 * n) % 2**64 for n in range(1, _BANDS * _HASHES_OF_A_BAND + 1)], np.uint64
)


class PathBands(NamedTuple):
    """The bands of a page, and the key of all bands together, which only nearly identical pages share."""

    bands: list[str]
    combined: str


def path_bands(elements: NDArray[np.uint64]) -> PathBands:
    """Return the bands of a page by the paths of its elements, of which there must be at least one.

    Texts are left out: most paths to texts are unique to a page and would split its template.
    """
    hashes = min_hashes(elements, _SEEDS).astype(">u8")
    bands = [_key(number, band) for number, band in enumerate(hashes.reshape(_BANDS, _HASHES_OF_A_BAND))]
    return PathBands(bands, _key(_BANDS, hashes))


def _key(number: int, hashes: NDArray[np.uint64]) -> str:
    """Return the key of a band; the band's number is part of the key."""
    return blake2b(hashes.tobytes(), digest_size=_KEY_BYTES, key=bytes([number])).hexdigest()
