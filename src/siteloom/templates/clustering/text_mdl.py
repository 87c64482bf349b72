"""TEXT-MDL: path sets of pages, the cost model, and the merging of clusters while the description gets
shorter.

The documents' paths form a matrix of zeros and ones (a row per path, a column per document). Written as
templates times members plus differences, it takes fewer bits if the clusters are better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from siteloom.templates.clustering.description_length import (
    NumberedPaths,
    Shape,
    Supports,
    are_essential,
    cheapest_merge,
    description_bits,
    exact_changes,
    exact_contributions,
    matrix_bits,
    merge_supports,
    number_paths,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class PathSets:
    """The concatenated path sets of many documents: document d is `paths[starts[d]:starts[d + 1]]`.

    A path is a number below `path_count`, and `hashes[path]` is its hash. Paths are numbered in the order of
    their hashes, so the numbers do not depend on the order of the documents.
    """

    starts: NDArray[np.int64]
    paths: NDArray[np.int32]
    hashes: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of paths of each document."""
        return np.diff(self.starts)

    @property
    def path_count(self) -> int:
        """The number of different paths."""
        return self.hashes.size

    def numbers(self, document: int) -> NDArray[np.int32]:
        """Return the paths of a document as numbers, ascending."""
        return self.paths[self.starts[document] : self.starts[document + 1]]

    def document(self, document: int) -> NDArray[np.uint64]:
        """Return the paths of a document as hashes, ascending."""
        return self.hashes[self.numbers(document)]


def path_sets(documents: Sequence[NDArray[np.uint64]]) -> PathSets:
    """Return all paths of documents, each a sorted array of distinct path hashes."""
    starts, numbered = _number(documents)
    return _sort_paths(starts, numbered.numbers, numbered.hashes)


def essential_paths(documents: Sequence[NDArray[np.uint64]]) -> PathSets:
    """Return for each document its paths with a support of at least its own threshold.

    The threshold is the mode of the supports of its paths: the many paths of a template occur in all its
    documents. Supports of 1 do not count unless there are no others, because most texts are unique.
    """
    starts, numbered = _number(documents)
    essential = are_essential(starts, numbered.numbers, numbered.support)
    essential_before = np.concatenate([[0], np.cumsum(essential)])
    return _sort_paths(essential_before[starts], numbered.numbers[essential], numbered.hashes)


def select_documents(sets: PathSets, documents: NDArray[np.int64]) -> PathSets:
    """Return the path sets of some documents, in the order given."""
    paths = [sets.numbers(document) for document in documents.tolist()]
    joined = np.concatenate([np.empty(0, np.int32), *paths])
    return _sort_paths(_starts(sets.sizes[documents]), joined, sets.hashes)


def equal_documents(sets: PathSets) -> NDArray[np.int64]:
    """Return for each document the first one with the same paths."""
    first_document: dict[bytes, int] = {}
    return np.array(
        [
            first_document.setdefault(sets.numbers(document).tobytes(), document)
            for document in range(len(sets))
        ],
        np.int64,
    )


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _number(documents: Sequence[NDArray[np.uint64]]) -> tuple[NDArray[np.int64], NumberedPaths]:
    starts = _starts(np.array([document.size for document in documents], np.int64))
    hashes = np.concatenate([np.empty(0, np.uint64), *documents])
    ascends = np.concatenate([[True], hashes[1:] > hashes[:-1]])
    ascends[starts[starts < hashes.size]] = True
    if not ascends.all():
        raise ValueError(
            "sort the path hashes of each document and drop repeated ones: numpy.unique does both"
        )
    return starts, number_paths(starts, hashes)


def _sort_paths(starts: NDArray[np.int64], paths: NDArray[np.int32], hashes: NDArray[np.uint64]) -> PathSets:
    """Renumber paths so that all numbers occur, in the order of their hashes."""
    occurs = np.zeros(hashes.size, np.bool_)
    occurs[paths] = True
    used = np.flatnonzero(occurs)
    used = used[np.argsort(hashes[used])]
    numbers = np.empty(hashes.size, np.int32)
    numbers[used] = np.arange(used.size, dtype=np.int32)
    return PathSets(starts, numbers[paths], hashes[used])


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
    """Return the bits of documents if each cluster is described by its optimal template."""
    template, extra, missing = clusters_with_supports(sets, clusters).contributions.sum(axis=0)
    paths, documents = matrix_shape(sets)
    return DescriptionLength(
        matrix_bits(template, 0, paths * len(clusters)),
        documents * math.log2(documents) if documents else 0.0,
        matrix_bits(extra, missing, paths * documents),
    )


def matrix_shape(sets: PathSets) -> Shape:
    """Return the numbers of rows and columns of the documents' matrix."""
    return Shape(float(sets.path_count), float(len(sets)))


def clusters_with_supports(sets: PathSets, clusters: Sequence[Sequence[int]]) -> Supports:
    """Return clusters of documents with the exact supports of their paths."""
    rows = [_supports(sets, members) for members in clusters]
    ends = np.cumsum([paths.size for paths, _ in rows], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends])[: len(rows)]
    paths = np.concatenate([np.empty(0, np.int32), *(paths for paths, _ in rows)])
    support = np.concatenate([np.empty(0, np.int32), *(support for _, support in rows)])
    sizes = np.array([len(members) for members in clusters], np.int64)
    contributions = exact_contributions(starts=starts, ends=ends, support=support, sizes=sizes)
    return Supports(
        used=paths.size,
        starts=starts,
        ends=ends,
        paths=paths,
        support=support,
        sizes=sizes,
        contributions=contributions,
    )


def _supports(sets: PathSets, members: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    joined = np.concatenate([sets.numbers(document) for document in members])
    paths, support = np.unique(joined, return_counts=True)
    return paths, support.astype(np.int32)


class MergeCosts(Protocol):
    """Clusters with their contributions to the description, and the changes that merges would make."""

    @property
    def contributions(self) -> NDArray[np.float64]:
        """A row for each cluster: paths of the template, beyond it, and lacking from it."""

    def changes(self, cluster: int, other_clusters: NDArray[np.int64]) -> NDArray[np.float64]:
        """How merging a cluster with each of the others would change the sum of contributions."""

    def merge(self, into: int, absorbed: int) -> None:
        """Merges two clusters."""


class ExactCosts:
    """Clusters whose costs are computed from the supports of all their paths."""

    def __init__(self, sets: PathSets, clusters: Sequence[Sequence[int]]) -> None:
        self._clusters = clusters_with_supports(sets, clusters)

    @property
    def contributions(self) -> NDArray[np.float64]:
        """A row for each cluster: paths of the template, beyond it, and lacking from it."""
        return self._clusters.contributions

    def changes(self, cluster: int, other_clusters: NDArray[np.int64]) -> NDArray[np.float64]:
        """How merging a cluster with each of the others would change the sum of contributions."""
        return exact_changes(self._clusters, cluster, other_clusters)

    def merge(self, into: int, absorbed: int) -> None:
        """Merges two clusters."""
        self._clusters = merge_supports(self._clusters, into, absorbed)


class Merge(NamedTuple):
    """A merge of one cluster into another, and the bits of templates and differences after it."""

    into: int
    absorbed: int
    bits: float


def text_mdl(sets: PathSets, clusters: Sequence[Sequence[int]]) -> list[list[int]]:
    """Merge clusters by exact costs until no merge shortens the description.

    Time and memory grow at least with the square of the number of clusters: 2,000 clusters take 100 MB.
    """
    return after_merges(clusters, best_merges(ExactCosts(sets, clusters), matrix_shape(sets)))


def best_merges(costs: MergeCosts, shape: Shape) -> Iterator[Merge]:
    """Yield the merge that shortens the description most, repeatedly while there is one."""
    count = len(costs.contributions)
    changes = np.zeros((count, count, 3))
    for cluster in range(1, count):
        changes[cluster, :cluster] = costs.changes(cluster, np.arange(cluster))
    alive = np.arange(count)
    totals = costs.contributions.sum(axis=0)
    bits = description_bits(shape, count, totals)
    while alive.size > 1:
        bits_after, into, absorbed = cheapest_merge(changes=changes, alive=alive, totals=totals, shape=shape)
        if bits_after >= bits:
            return
        bits = bits_after
        totals += changes[absorbed, into]
        costs.merge(into, absorbed)
        alive = alive[alive != absorbed]
        earlier, later = alive[alive < into], alive[alive > into]
        changes[into, earlier] = costs.changes(into, earlier)
        changes[later, into] = costs.changes(into, later)
        yield Merge(into, absorbed, bits)


def after_merges(clusters: Sequence[Sequence[int]], merges: Iterable[Merge]) -> list[list[int]]:
    """Return the clusters after merges, the members of each ascending."""
    members = {number: list(cluster) for number, cluster in enumerate(clusters)}
    for merge in merges:
        members[merge.into] += members.pop(merge.absorbed)
    return [sorted(cluster) for cluster in members.values()]
