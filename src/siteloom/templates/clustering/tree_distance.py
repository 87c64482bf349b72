"""RTDM: cluster by tree edit distance, with its compiled kernel.

A tree is given as arrays over its nodes in document order. The first child of
a node follows it, and the sibling of a child stands behind the child's
subtree, so labels and subtree sizes are all there is to say.

Exact and slow, it compares whole trees, pair by pair. The clusters that are
used are made from signatures; these are what they are measured against.
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


# The finaliser of SplitMix64 and its increment, which keeps 0 from being mixed to 0.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
# Any odd number but 1: tells the first of two chained values from the second.
_ODD = np.uint64(3)

# The cost of a pair of which the children must be compared first.
_UNKNOWN = -1

# What is kept of a pair of nodes while their children are compared: where the
# children of each begin on its stack and how many there are, where the row of
# the matrix begins, the cell that comes next, and the value diagonal to it.
_A_FIRST, _A_COUNT, _B_FIRST, _B_COUNT, _ROW, _I, _J, _DIAGONAL = range(8)


class TreeArrays(NamedTuple):
    """A tree by nodes in document order: label, nodes in the subtree, class.

    Two nodes, of any trees, have the same class if their subtrees are
    identical: 64-bit hashes, so that unlike subtrees agree by chance only.
    """

    labels: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    classes: NDArray[np.uint64]


class LabelPaths(NamedTuple):
    """For all nodes, sorted: the hash of the labels from the root to the node, and to its parent."""

    nodes: NDArray[np.uint64]
    parents: NDArray[np.uint64]


def tree_arrays(labels: NDArray[np.uint64], sizes: NDArray[np.int64]) -> TreeArrays:
    """The arrays of a tree, given the labels and subtree sizes of its nodes in document order."""
    return TreeArrays(labels, sizes, _classes(labels, sizes))


def label_paths(tree: TreeArrays) -> LabelPaths:
    """The label paths of a tree, for `distance_bound`."""
    nodes, parents = _paths(tree.labels, tree.sizes)
    return LabelPaths(np.sort(nodes), np.sort(parents))


def tree_distance(a: TreeArrays, b: TreeArrays) -> int:
    """The lowest cost of a restricted top-down mapping; it takes |A|·|B| steps at most.

    Deleting, inserting and relabelling a node cost 1 each; only a leaf may be
    mapped to a node of another label. Trees whose roots cannot be mapped have
    nothing in common.
    """
    return int(_distance(a, b))


def distance_bound(a: LabelPaths, b: LabelPaths) -> int:
    """A number that `tree_distance` is never below, in |A|+|B| steps.

    Only leaves are relabelled, so two mapped nodes have parents of the same
    label path. No more pairs can be mapped than the trees share parent paths,
    and no more of them unchanged than they share node paths.
    """
    return int(a.nodes.size + b.nodes.size - _shared(a.parents, b.parents) - _shared(a.nodes, b.nodes))


@njit(cache=True)
def _chained(first, second):  # type: ignore[no-untyped-def]
    value = first * _ODD + second + _INCREMENT
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(cache=True)
def _classes(labels, sizes):  # type: ignore[no-untyped-def]
    classes = np.empty(labels.size, np.uint64)
    for node in range(labels.size - 1, -1, -1):  # children stand behind their parents
        value = _chained(labels[node], np.uint64(0))
        child = node + 1
        while child < node + sizes[node]:
            value = _chained(value, classes[child])
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
        nodes[node] = _chained(parents[node], labels[node])
        child = node + 1
        while child < node + sizes[node]:
            parents[child] = nodes[node]
            child += sizes[child]
    return nodes, parents


@njit(cache=True)
def _shared(a, b):  # type: ignore[no-untyped-def]
    """How many values two sorted arrays have in common, repeated ones as often as in both."""
    count = 0
    i = 0
    j = 0
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            count += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return count


@njit(cache=True)
def _pair_cost(a, b, i, j):  # type: ignore[no-untyped-def]
    """The cost of making one subtree of the other, unless their children must be compared."""
    if a.classes[i] == b.classes[j]:
        return 0
    same_label = a.labels[i] == b.labels[j]
    if a.sizes[i] == 1 or b.sizes[j] == 1:
        return a.sizes[i] + b.sizes[j] - 2 + (0 if same_label else 1)
    return _UNKNOWN if same_label else a.sizes[i] + b.sizes[j]


@njit(cache=True)
def _stack_children(sizes, node, stack, top):  # type: ignore[no-untyped-def]
    child = node + 1
    while child < node + sizes[node]:
        stack[top] = child
        top += 1
        child += sizes[child]
    return top


@njit(cache=True)
def _open(a, b, i, j, a_stack, b_stack, rows, frames, level):  # type: ignore[no-untyped-def]
    """Start comparing the children of a pair of nodes.

    Children that are identical, from either end on, are mapped to each other
    at once. That is never dearer: to map one of them to another subtree costs
    at least their difference in size, and leaves its twin to be paid in full.
    """
    a_first = 0
    b_first = 0
    row = 0
    if level > 0:
        above = frames[level - 1]
        a_first = above[_A_FIRST] + above[_A_COUNT]
        b_first = above[_B_FIRST] + above[_B_COUNT]
        row = above[_ROW] + above[_B_COUNT] + 1
    a_end = _stack_children(a.sizes, i, a_stack, a_first)
    b_end = _stack_children(b.sizes, j, b_stack, b_first)
    while a_first < a_end and b_first < b_end:
        if a.classes[a_stack[a_first]] != b.classes[b_stack[b_first]]:
            break
        a_first += 1
        b_first += 1
    while a_first < a_end and b_first < b_end:
        if a.classes[a_stack[a_end - 1]] != b.classes[b_stack[b_end - 1]]:
            break
        a_end -= 1
        b_end -= 1

    b_count = b_end - b_first
    rows[row] = 0
    for k in range(b_count):
        rows[row + k + 1] = rows[row + k] + b.sizes[b_stack[b_first + k]]
    frame = frames[level]
    frame[_A_FIRST] = a_first
    frame[_A_COUNT] = a_end - a_first
    frame[_B_FIRST] = b_first
    frame[_B_COUNT] = b_count
    frame[_ROW] = row
    frame[_I] = 0
    frame[_J] = b_count  # row 0 is done


@njit(cache=True)
def _fill(a, b, a_stack, b_stack, rows, frame, cost):  # type: ignore[no-untyped-def]
    """Fill the matrix of a pair from its next cell on, whose pair's `cost` may be known already.

    Only one row is kept, in place. Gives the pair of children that must be
    compared before the next cell can be filled, or (-1, -1) at the end.
    """
    a_first = frame[_A_FIRST]
    b_first = frame[_B_FIRST]
    b_count = frame[_B_COUNT]
    row = frame[_ROW]
    i = frame[_I]
    j = frame[_J]
    diagonal = frame[_DIAGONAL]
    while True:
        if j == b_count:
            if i == frame[_A_COUNT]:
                return -1, -1
            diagonal = rows[row]
            rows[row] += a.sizes[a_stack[a_first + i]]
            i += 1
            j = 0
            continue
        a_child = a_stack[a_first + i - 1]
        b_child = b_stack[b_first + j]
        a_size = a.sizes[a_child]
        b_size = b.sizes[b_child]
        cell = row + j + 1
        best = min(rows[cell] + a_size, rows[cell - 1] + b_size)
        # A pair costs at least its difference in size.
        if cost == _UNKNOWN and diagonal + abs(a_size - b_size) < best:
            cost = _pair_cost(a, b, a_child, b_child)
            if cost == _UNKNOWN:
                frame[_I] = i
                frame[_J] = j
                frame[_DIAGONAL] = diagonal
                return a_child, b_child
        if cost != _UNKNOWN:
            best = min(best, diagonal + cost)
            cost = _UNKNOWN
        diagonal = rows[cell]
        rows[cell] = best
        j += 1


@njit(cache=True)
def _distance(a, b):  # type: ignore[no-untyped-def]
    if a.labels.size == 0 or b.labels.size == 0:
        return a.labels.size + b.labels.size
    cost = _pair_cost(a, b, 0, 0)
    if cost != _UNKNOWN:
        return cost

    # The nodes whose children are being compared are on one path in each tree,
    # so their children together are no more than the tree has nodes.
    a_stack = np.empty(a.labels.size, np.int64)
    b_stack = np.empty(b.labels.size, np.int64)
    rows = np.empty(2 * b.labels.size, np.int64)
    frames = np.empty((min(a.labels.size, b.labels.size), 8), np.int64)
    level = 0
    _open(a, b, 0, 0, a_stack, b_stack, rows, frames, level)
    while True:
        frame = frames[level]
        i, j = _fill(a, b, a_stack, b_stack, rows, frame, cost)
        cost = _UNKNOWN
        if i >= 0:
            level += 1
            _open(a, b, i, j, a_stack, b_stack, rows, frames, level)
            continue
        cost = rows[frame[_ROW] + frame[_B_COUNT]]
        if level == 0:
            return cost
        level -= 1


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
