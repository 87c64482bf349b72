"""How long a description of documents by templates is, and its parts.

The documents' paths are a matrix of zeros and ones (a row per path, a column
per document). Written as templates times members plus differences, it takes
the fewer bits the better the clusters are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.kernels.description_length import Shape, Supports, exact_contributions, matrix_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from siteloom.clustering.text.essential import PathSets


class DescriptionLength(NamedTuple):
    """The bits of Equation 1: the matrices of templates, of members and of differences."""

    templates: float
    members: float
    differences: float

    @property
    def total(self) -> float:
        """All bits."""
        return self.templates + self.members + self.differences


def description_length(sets: PathSets, clusters: Sequence[Sequence[int]]) -> DescriptionLength:
    """The bits that documents take when each cluster is described by its optimal template."""
    template, extra, missing = clusters_with_supports(sets, clusters).contributions.sum(axis=0)
    paths, documents = matrix_shape(sets)
    return DescriptionLength(
        matrix_bits(template, 0, paths * len(clusters)),
        documents * math.log2(documents) if documents else 0.0,
        matrix_bits(extra, missing, paths * documents),
    )


def matrix_shape(sets: PathSets) -> Shape:
    """The rows and columns of the documents' matrix."""
    return Shape(float(sets.path_count), float(len(sets)))


def clusters_with_supports(sets: PathSets, clusters: Sequence[Sequence[int]]) -> Supports:
    """Clusters of documents with the exact supports of their paths."""
    rows = [_supports(sets, members) for members in clusters]
    ends = np.cumsum([paths.size for paths, _ in rows], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends])[: len(rows)]
    paths = np.concatenate([np.empty(0, np.int32), *(paths for paths, _ in rows)])
    support = np.concatenate([np.empty(0, np.int32), *(support for _, support in rows)])
    sizes = np.array([len(members) for members in clusters], np.int64)
    contributions = exact_contributions(starts, ends, support, sizes)
    return Supports(paths.size, starts, ends, paths, support, sizes, contributions)


def _supports(sets: PathSets, members: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    joined = np.concatenate([sets.numbers(document) for document in members])
    paths, support = np.unique(joined, return_counts=True)
    return paths, support.astype(np.int32)
