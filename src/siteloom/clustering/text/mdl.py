"""TEXT-MDL: the two clusters whose merging shortens the description most are merged, until none does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from siteloom.clustering.text.cost import clusters_with_supports, matrix_shape
from siteloom.kernels.description_length import (
    Shape,
    cheapest_merge,
    description_bits,
    exact_changes,
    merge_supports,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from siteloom.clustering.text.essential import PathSets


class MergeCosts(Protocol):
    """Clusters that know what they contribute to the description and what merging two would change."""

    @property
    def contributions(self) -> NDArray[np.float64]:
        """A row for each cluster: paths of the template, beyond it, and lacking from it."""

    def changes(self, cluster: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
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

    def changes(self, cluster: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """How merging a cluster with each of the others would change the sum of contributions."""
        return exact_changes(self._clusters, cluster, others)

    def merge(self, into: int, absorbed: int) -> None:
        """Merges two clusters."""
        self._clusters = merge_supports(self._clusters, into, absorbed)


class Merge(NamedTuple):
    """A cluster took in another, and the templates and differences now take so many bits."""

    into: int
    absorbed: int
    bits: float


def text_mdl(sets: PathSets, clusters: Sequence[Sequence[int]]) -> list[list[int]]:
    """Merges clusters by exact costs until no merge shortens the description.

    Time and memory grow with the square of the number of clusters at least:
    2,000 clusters take 100 MB.
    """
    return after_merges(clusters, best_merges(ExactCosts(sets, clusters), matrix_shape(sets)))


def best_merges(costs: MergeCosts, shape: Shape) -> Iterator[Merge]:
    """The merge that shortens the description most, again and again while one does."""
    count = len(costs.contributions)
    changes = np.zeros((count, count, 3))
    for cluster in range(1, count):
        changes[cluster, :cluster] = costs.changes(cluster, np.arange(cluster))
    alive = np.arange(count)
    totals = costs.contributions.sum(axis=0)
    bits = description_bits(shape, count, totals)
    while alive.size > 1:
        bits_after, into, absorbed = cheapest_merge(changes, alive, totals, shape)
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
    """The clusters that merges leave, the members of each ascending."""
    members = {number: list(cluster) for number, cluster in enumerate(clusters)}
    for merge in merges:
        members[merge.into] += members.pop(merge.absorbed)
    return [sorted(cluster) for cluster in members.values()]
