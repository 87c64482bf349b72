"""Clusters by tree distance: the baseline of Reis, Golgher, da Silva and Laender (WWW 2004).

Exact and slow, it compares whole trees, pair by pair. The clusters that are
used are made from signatures; these are what they are measured against.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from lxml import etree

from siteloom.errors import UsageError
from siteloom.kernels.markup import name_hash
from siteloom.kernels.tree_distance import (
    LabelPaths,
    TreeArrays,
    distance_bound,
    label_paths,
    tree_arrays,
    tree_distance,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from siteloom.dom import Element

_TEXT = "#text"  # as the DOM standard names text nodes; no tag can look like it

# The mean of equal similarities differs from them by rounding; true means that
# differ do so by far more, for they are fractions of node counts.
_ROUNDING = 1e-9


# So many pages of one site take about half an hour.
_MOST_COMPARED = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The tree of a page as the distance sees it: tags, and texts without their content."""

    arrays: TreeArrays
    paths: LabelPaths

    @classmethod
    def of(cls, root: Element) -> Tree:
        """The tree below and with an element; comments and blank texts are no part of it."""
        labels: list[np.uint64] = []
        sizes: list[int] = []
        open_nodes: list[int] = []

        def add_text(text: str | None) -> None:
            if text and not text.isspace():
                labels.append(_label(_TEXT))
                sizes.append(1)

        for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
            if event == "start":
                open_nodes.append(len(labels))
                labels.append(_label(str(node.tag)))
                sizes.append(0)  # known at its end
                add_text(node.text)
                continue
            if event == "end":
                start = open_nodes.pop()
                sizes[start] = len(labels) - start
            if open_nodes:
                add_text(node.tail)
        arrays = tree_arrays(np.array(labels, np.uint64), np.array(sizes, np.int64))
        return cls(arrays, label_paths(arrays))

    def __len__(self) -> int:
        return self.arrays.labels.size


def distance(a: Tree, b: Tree) -> int:
    """How many nodes must be deleted, inserted or relabelled to make one tree of the other."""
    return tree_distance(a.arrays, b.arrays)


def similarity(a: Tree, b: Tree) -> float:
    """1 for identical trees, 0 for trees that have nothing in common."""
    return 1 - distance(a, b) / (len(a) + len(b))


def rtdm_clusters(trees: Sequence[Tree], threshold: float = 0.8) -> tuple[tuple[int, ...], ...]:
    """The trees by number, in clusters: largest first, equally large ones by their first tree.

    The two most similar clusters are merged, again and again, while the mean
    similarity of their trees is at least the threshold.
    """
    if len(trees) > _MOST_COMPARED:
        raise UsageError(
            f"rtdm compares every two of {len(trees):,} pages, and does so for {_MOST_COMPARED:,} at most: "
            "use vertex or text-max."
        )
    least = threshold - _ROUNDING
    clusters = [
        cluster
        for component in _components(trees, least)
        for cluster in _average_linkage(trees, component, least)
    ]
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster), cluster[0])))


@lru_cache(maxsize=4_096)  # there are some hundred tags, but broken markup makes up more
def _label(tag: str) -> np.uint64:
    return name_hash(tag)


def _components(trees: Sequence[Tree], least: float) -> list[list[int]]:
    """The trees in groups that no cluster can cross.

    If the mean similarity of two clusters reaches the threshold, so does that
    of some pair, and the upper bound of this pair. Hence clusters keep to the
    connected components of the pairs whose bound does, and between components
    no distance is needed.
    """
    components = []
    left = list(range(len(trees)))
    while left:
        component = [left.pop(0)]
        for member in component:  # grows while it is walked
            near = [other for other in left if _similarity_bound(trees[member], trees[other]) >= least]
            component += near
            left = sorted(set(left).difference(near))
        components.append(sorted(component))
    return components


def _similarity_bound(a: Tree, b: Tree) -> float:
    """A similarity that the true one is never above."""
    return 1 - distance_bound(a.paths, b.paths) / (len(a) + len(b))


def _average_linkage(trees: Sequence[Tree], members: list[int], least: float) -> list[tuple[int, ...]]:
    means = _similarities([trees[member] for member in members])
    clusters = {number: [member] for number, member in enumerate(members)}
    while True:
        # Of equal pairs the first one is merged, so the result is always the same.
        first, second = divmod(int(means.argmax()), len(members))
        if means[first, second] < least:
            return [tuple(sorted(cluster)) for cluster in clusters.values()]
        weights = len(clusters[first]), len(clusters[second])
        merged = np.average(means[[first, second]], axis=0, weights=weights)
        means[first], means[:, first] = merged, merged
        means[second], means[:, second] = -np.inf, -np.inf
        means[first, first] = -np.inf
        clusters[first] += clusters.pop(second)


def _similarities(trees: Sequence[Tree]) -> NDArray[np.float64]:
    """The similarity of every two trees; that of a tree and itself is left out as -inf."""
    result = np.full((len(trees), len(trees)), -np.inf)
    for i, tree in enumerate(trees):
        for j in range(i):
            result[i, j] = result[j, i] = similarity(tree, trees[j])
    return result
