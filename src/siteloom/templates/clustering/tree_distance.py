"""RTDM: cluster pages by tree edit distance, with a compiled kernel.

A tree is given as arrays over its nodes in document order. The first child of a node follows it, and the
sibling of a child follows the child's subtree, so labels and subtree sizes describe a tree completely.

The method is exact and slow: it compares whole trees, pair by pair. It is the reference for the clusters from
signatures, which are used in production.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from siteloom.core.compiled import njit
from siteloom.core.errors import UsageError
from siteloom.html.tag_scanner import name_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from siteloom.html.parser import Element


# The finaliser of SplitMix64 and its increment, which prevents that 0 is mixed to 0.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
# Any odd number except 1; it makes the order of two chained values matter.
_ODD = np.uint64(3)

# The cost of a pair whose children must be compared first.
_UNKNOWN = -1

# The state of a pair of nodes while their children are compared: the start and the number of each node's
# children on its stack, the start of the matrix row, the next cell, and the value diagonal to it.
_A_FIRST, _A_COUNT, _B_FIRST, _B_COUNT, _ROW, _CELL_ROW, _CELL_COLUMN, _DIAGONAL = range(8)


class TreeArrays(NamedTuple):
    """A tree by nodes in document order: label, nodes in the subtree, class.

    Two nodes, of any trees, have the same class if their subtrees are identical. Classes are 64-bit hashes,
    so different subtrees have the same class only by chance.
    """

    labels: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    classes: NDArray[np.uint64]


class LabelPaths(NamedTuple):
    """The sorted hashes of the labels from the root to each node, and to its parent."""

    nodes: NDArray[np.uint64]
    parents: NDArray[np.uint64]


def tree_arrays(labels: NDArray[np.uint64], sizes: NDArray[np.int64]) -> TreeArrays:
    """Return the arrays of a tree, given the labels and subtree sizes of its nodes in document order."""
    return TreeArrays(labels, sizes, _classes(labels, sizes))


def label_paths(tree: TreeArrays) -> LabelPaths:
    """Return the label paths of a tree, for `distance_bound`."""
    nodes, parents = _paths(tree.labels, tree.sizes)
    return LabelPaths(np.sort(nodes), np.sort(parents))


def tree_distance(tree: TreeArrays, other_tree: TreeArrays) -> int:
    """Return the lowest cost of a restricted top-down mapping, in at most |A|·|B| steps.

    Deleting, inserting and relabelling a node cost 1 each; only a leaf may be mapped to a node with another
    label. Trees whose roots cannot be mapped have nothing in common.
    """
    return int(_distance(tree, other_tree))


def distance_bound(paths: LabelPaths, other_paths: LabelPaths) -> int:
    """Return a lower bound of `tree_distance`, in |A|+|B| steps.

    Only leaves are relabelled, so two mapped nodes have parents with the same label path. The number of
    mapped pairs is at most that of shared parent paths, and the number of unchanged pairs at most that of
    shared node paths.
    """
    return int(
        paths.nodes.size
        + other_paths.nodes.size
        - _count_shared(paths.parents, other_paths.parents)
        - _count_shared(paths.nodes, other_paths.nodes)
    )


@njit(cache=True)
def _chain(left_value, right_value):  # type: ignore[no-untyped-def]
    value = left_value * _ODD + right_value + _INCREMENT
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(cache=True)
def _classes(labels, sizes):  # type: ignore[no-untyped-def]
    classes = np.empty(labels.size, np.uint64)
    for node in range(labels.size - 1, -1, -1):  # children follow their parents
        value = _chain(labels[node], np.uint64(0))
        child = node + 1
        while child < node + sizes[node]:
            value = _chain(value, classes[child])
            child += sizes[child]
        classes[node] = value
    return classes


@njit(cache=True)
def _paths(labels, sizes):  # type: ignore[no-untyped-def]
    nodes = np.empty(labels.size, np.uint64)
    parents = np.empty(labels.size, np.uint64)
    if labels.size:
        parents[0] = np.uint64(0)
    for node in range(labels.size):
        nodes[node] = _chain(parents[node], labels[node])
        child = node + 1
        while child < node + sizes[node]:
            parents[child] = nodes[node]
            child += sizes[child]
    return nodes, parents


@njit(cache=True)
def _count_shared(values, other_values):  # type: ignore[no-untyped-def]
    """Return the number of common values of two sorted arrays, counting repeated values."""
    count = 0
    i = 0
    j = 0
    while i < values.size and j < other_values.size:
        if values[i] == other_values[j]:
            count += 1
            i += 1
            j += 1
        elif values[i] < other_values[j]:
            i += 1
        else:
            j += 1
    return count


@njit(cache=True)
def _pair_cost(tree_a, tree_b, i, j):  # type: ignore[no-untyped-def]
    """Return the cost of turning one subtree into the other, or `_UNKNOWN` if children must be compared."""
    if tree_a.classes[i] == tree_b.classes[j]:
        return 0
    same_label = tree_a.labels[i] == tree_b.labels[j]
    if tree_a.sizes[i] == 1 or tree_b.sizes[j] == 1:
        return tree_a.sizes[i] + tree_b.sizes[j] - 2 + (0 if same_label else 1)
    return _UNKNOWN if same_label else tree_a.sizes[i] + tree_b.sizes[j]


@njit(cache=True)
def _stack_children(sizes, node, stack, top):  # type: ignore[no-untyped-def]
    child = node + 1
    while child < node + sizes[node]:
        stack[top] = child
        top += 1
        child += sizes[child]
    return top


@njit(cache=True)
def _start_pair(tree_a, tree_b, i, j, a_stack, b_stack, rows, frames, level):  # type: ignore[no-untyped-def]
    """Start comparing the children of a pair of nodes.

    Children that are identical, from either end on, are mapped to each other immediately. That never costs
    more: mapping one of them to another subtree costs at least their difference in size, and its twin costs
    in full.
    """
    a_first = 0
    b_first = 0
    row = 0
    if level > 0:
        above = frames[level - 1]
        a_first = above[_A_FIRST] + above[_A_COUNT]
        b_first = above[_B_FIRST] + above[_B_COUNT]
        row = above[_ROW] + above[_B_COUNT] + 1
    a_end = _stack_children(tree_a.sizes, i, a_stack, a_first)
    b_end = _stack_children(tree_b.sizes, j, b_stack, b_first)
    while a_first < a_end and b_first < b_end:
        if tree_a.classes[a_stack[a_first]] != tree_b.classes[b_stack[b_first]]:
            break
        a_first += 1
        b_first += 1
    while a_first < a_end and b_first < b_end:
        if tree_a.classes[a_stack[a_end - 1]] != tree_b.classes[b_stack[b_end - 1]]:
            break
        a_end -= 1
        b_end -= 1

    b_count = b_end - b_first
    rows[row] = 0
    for k in range(b_count):
        rows[row + k + 1] = rows[row + k] + tree_b.sizes[b_stack[b_first + k]]
    frame = frames[level]
    frame[_A_FIRST] = a_first
    frame[_A_COUNT] = a_end - a_first
    frame[_B_FIRST] = b_first
    frame[_B_COUNT] = b_count
    frame[_ROW] = row
    frame[_CELL_ROW] = 0
    frame[_CELL_COLUMN] = b_count  # row 0 is done


@njit(cache=True)
def _fill_matrix(tree_a, tree_b, a_stack, b_stack, rows, frame, cost):  # type: ignore[no-untyped-def]
    """Fill the matrix of a pair from its next cell on, whose `cost` may be known already.

    Only one row is kept, in place. Returns the pair of children that must be compared before the next cell
    can be filled, or (-1, -1) at the end.
    """
    a_first = frame[_A_FIRST]
    b_first = frame[_B_FIRST]
    b_count = frame[_B_COUNT]
    row = frame[_ROW]
    i = frame[_CELL_ROW]
    j = frame[_CELL_COLUMN]
    diagonal = frame[_DIAGONAL]
    while True:
        if j == b_count:
            if i == frame[_A_COUNT]:
                return -1, -1
            diagonal = rows[row]
            rows[row] += tree_a.sizes[a_stack[a_first + i]]
            i += 1
            j = 0
            continue
        a_child = a_stack[a_first + i - 1]
        b_child = b_stack[b_first + j]
        a_size = tree_a.sizes[a_child]
        b_size = tree_b.sizes[b_child]
        cell = row + j + 1
        best = min(rows[cell] + a_size, rows[cell - 1] + b_size)
        # A pair costs at least its difference in size.
        if cost == _UNKNOWN and diagonal + abs(a_size - b_size) < best:
            cost = _pair_cost(tree_a, tree_b, a_child, b_child)
            if cost == _UNKNOWN:
                frame[_CELL_ROW] = i
                frame[_CELL_COLUMN] = j
                frame[_DIAGONAL] = diagonal
                return a_child, b_child
        if cost != _UNKNOWN:
            best = min(best, diagonal + cost)
            cost = _UNKNOWN
        diagonal = rows[cell]
        rows[cell] = best
        j += 1


@njit(cache=True)
def _distance(tree_a, tree_b):  # type: ignore[no-untyped-def]
    if tree_a.labels.size == 0 or tree_b.labels.size == 0:
        return tree_a.labels.size + tree_b.labels.size
    cost = _pair_cost(tree_a, tree_b, 0, 0)
    if cost != _UNKNOWN:
        return cost

    # The nodes whose children are being compared are on one path in each tree, so together they have fewer
    # children than the tree has nodes.
    a_stack = np.empty(tree_a.labels.size, np.int64)
    b_stack = np.empty(tree_b.labels.size, np.int64)
    rows = np.empty(2 * tree_b.labels.size, np.int64)
    frames = np.empty((min(tree_a.labels.size, tree_b.labels.size), 8), np.int64)
    level = 0
    _start_pair(tree_a, tree_b, 0, 0, a_stack, b_stack, rows, frames, level)
    while True:
        frame = frames[level]
        i, j = _fill_matrix(tree_a, tree_b, a_stack, b_stack, rows, frame, cost)
        cost = _UNKNOWN
        if i >= 0:
            level += 1
            _start_pair(tree_a, tree_b, i, j, a_stack, b_stack, rows, frames, level)
            continue
        cost = rows[frame[_ROW] + frame[_B_COUNT]]
        if level == 0:
            return cost
        level -= 1


_TEXT = "#text"  # as the DOM standard names text nodes; no tag can look like it

# The mean of equal similarities differs from them by rounding; different true means differ by far more, since
# they are fractions of node counts.
_ROUNDING = 1e-9


# This many pages of one site take about half an hour.
_MOST_COMPARED = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The tree of a page for the distance: tags, and texts without their content."""

    arrays: TreeArrays
    paths: LabelPaths

    @classmethod
    def of(cls, root: Element) -> Tree:
        """Return the tree of an element, without comments and blank texts."""
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


def distance(tree: Tree, other_tree: Tree) -> int:
    """Return the number of nodes to delete, insert or relabel to turn one tree into the other."""
    return tree_distance(tree.arrays, other_tree.arrays)


def similarity(tree: Tree, other_tree: Tree) -> float:
    """Return the similarity of two trees: 1 for identical ones, 0 for those with nothing in common."""
    return 1 - distance(tree, other_tree) / (len(tree) + len(other_tree))


def rtdm_clusters(trees: Sequence[Tree], threshold: float = 0.8) -> tuple[tuple[int, ...], ...]:
    """Cluster trees, given by number: largest clusters first, equally large ones by their first tree.

    The two most similar clusters are merged repeatedly, while the mean similarity of their trees is at least
    the threshold.
    """
    if len(trees) > _MOST_COMPARED:
        raise UsageError(
            f"rtdm compares every two of {len(trees):,} pages, and does so for {_MOST_COMPARED:,} at most: "
            "use vertex or text-max."
        )
    min_similarity = threshold - _ROUNDING
    clusters = [
        cluster
        for component in _components(trees, min_similarity)
        for cluster in _average_linkage(trees, component, min_similarity)
    ]
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster), cluster[0])))


@lru_cache(maxsize=4_096)  # there are a few hundred tags, but broken markup has more
def _label(tag: str) -> np.uint64:
    return name_hash(tag)


def _components(trees: Sequence[Tree], min_similarity: float) -> list[list[int]]:
    """Split the trees into components that no cluster can cross.

    If the mean similarity of two clusters reaches the threshold, so does that of some pair, and its upper
    bound. Hence clusters stay within the connected components of pairs whose bound reaches it, and no
    distance between components is needed.
    """
    components = []
    remaining = list(range(len(trees)))
    while remaining:
        component = [remaining.pop(0)]
        for member in component:  # grows while it is walked
            similar_trees = [
                other_tree
                for other_tree in remaining
                if _similarity_bound(trees[member], trees[other_tree]) >= min_similarity
            ]
            component += similar_trees
            remaining = sorted(set(remaining).difference(similar_trees))
        components.append(sorted(component))
    return components


def _similarity_bound(tree: Tree, other_tree: Tree) -> float:
    """Return an upper bound of the similarity of two trees."""
    return 1 - distance_bound(tree.paths, other_tree.paths) / (len(tree) + len(other_tree))


def _average_linkage(
    trees: Sequence[Tree], members: list[int], min_similarity: float
) -> list[tuple[int, ...]]:
    means = _similarities([trees[member] for member in members])
    clusters = {number: [member] for number, member in enumerate(members)}
    while True:
        # Ties go to the first pair, so the result is deterministic.
        cluster_a, cluster_b = divmod(int(means.argmax()), len(members))
        if means[cluster_a, cluster_b] < min_similarity:
            return [tuple(sorted(cluster)) for cluster in clusters.values()]
        weights = len(clusters[cluster_a]), len(clusters[cluster_b])
        merged = np.average(means[[cluster_a, cluster_b]], axis=0, weights=weights)
        means[cluster_a], means[:, cluster_a] = merged, merged
        means[cluster_b], means[:, cluster_b] = -np.inf, -np.inf
        means[cluster_a, cluster_a] = -np.inf
        clusters[cluster_a] += clusters.pop(cluster_b)


def _similarities(trees: Sequence[Tree]) -> NDArray[np.float64]:
    """Return the similarity of every two trees; that of a tree with itself is -inf."""
    result = np.full((len(trees), len(trees)), -np.inf)
    for i, tree in enumerate(trees):
        for j in range(i):
            result[i, j] = result[j, i] = similarity(tree, trees[j])
    return result
