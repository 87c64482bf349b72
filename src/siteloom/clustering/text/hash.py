"""TEXT-HASH: TEXT-MDL with costs that extended MinHash signatures estimate, whatever the documents' size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from siteloom.clustering.text.cost import matrix_shape
from siteloom.clustering.text.mdl import after_merges, best_merges
from siteloom.kernels.description_length import (
    Signatures,
    estimated_changes,
    estimated_contributions,
    least_ranks,
    merge_signatures,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from siteloom.clustering.text.essential import PathSets


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
