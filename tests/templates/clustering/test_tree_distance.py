"""The tree distance is that of its recurrences, whatever the form of the trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.templates.clustering.tree_distance import (
    TreeArrays,
    distance_bound,
    label_paths,
    tree_arrays,
    tree_distance,
)


class Node(NamedTuple):
    label: int
    children: tuple[Node, ...] = ()

    @property
    def size(self) -> int:
        return 1 + sum(child.size for child in self.children)


def twin_distance(a: Node, b: Node) -> int:
    """The recurrences as they are written, for roots that are mapped."""
    if a == b:
        return 0
    cost = {(0, 0): 0}
    for i, left in enumerate(a.children, 1):
        cost[i, 0] = cost[i - 1, 0] + left.size
    for j, right in enumerate(b.children, 1):
        cost[0, j] = cost[0, j - 1] + right.size
    for i, left in enumerate(a.children, 1):
        for j, right in enumerate(b.children, 1):
            cost[i, j] = min(
                cost[i - 1, j] + left.size,
                cost[i, j - 1] + right.size,
                cost[i - 1, j - 1] + twin_pair_cost(left, right),
            )
    return cost[len(a.children), len(b.children)]


def twin_pair_cost(a: Node, b: Node) -> int:
    if a == b:
        return 0
    if not a.children:
        return int(a.label != b.label) + b.size - 1
    if not b.children:
        return int(a.label != b.label) + a.size - 1
    return twin_distance(a, b) if a.label == b.label else a.size + b.size


def nodes(tree: Node) -> Iterator[Node]:
    yield tree
    for child in tree.children:
        yield from nodes(child)


def arrays(tree: Node) -> TreeArrays:
    in_order = list(nodes(tree))
    labels = np.array([node.label for node in in_order], np.uint64)
    return tree_arrays(labels, np.array([node.size for node in in_order], np.int64))


def flat(labels: list[int]) -> TreeArrays:
    """A root of label 0 with a leaf for each of the labels."""
    sizes = [len(labels) + 1] + [1] * len(labels)
    return tree_arrays(np.array([0, *labels], np.uint64), np.array(sizes, np.int64))


def chain(labels: list[int]) -> TreeArrays:
    """Each node is the only child of the one before."""
    return tree_arrays(np.array(labels, np.uint64), np.arange(len(labels), 0, -1))


EMPTY = tree_arrays(np.empty(0, np.uint64), np.empty(0, np.int64))

# Few labels, so that subtrees are often alike and often nearly alike.
labels = st.integers(0, 2)
trees = st.recursive(
    labels.map(Node),
    lambda children: st.builds(Node, labels, st.lists(children, max_size=5).map(tuple)),
    max_leaves=12,
)


@given(trees, trees)
@example(Node(0), Node(1))
@example(Node(0, (Node(1),)), Node(1, (Node(0),)))
@example(Node(0, (Node(1), Node(2))), Node(0, (Node(1, (Node(2),)),)))
def test_the_kernel_agrees_with_the_recurrences(a: Node, b: Node) -> None:
    assert tree_distance(arrays(a), arrays(b)) == twin_pair_cost(a, b)


@given(trees, trees)
def test_of_trees_with_the_same_root_the_roots_are_mapped(a: Node, b: Node) -> None:
    b = b._replace(label=a.label)
    assert tree_distance(arrays(a), arrays(b)) == twin_distance(a, b)


@given(trees, trees)
def test_the_distance_is_symmetric_and_within_its_bounds(a: Node, b: Node) -> None:
    left, right = arrays(a), arrays(b)
    found = tree_distance(left, right)
    assert found == tree_distance(right, left)
    assert (found == 0) == (a == b)
    bound = distance_bound(label_paths(left), label_paths(right))
    assert abs(a.size - b.size) <= bound <= found <= a.size + b.size


@given(trees, trees, trees)
@example(Node(0, (Node(2),)), Node(0), Node(1, (Node(2),)))
def test_a_detour_saves_at_most_a_quarter(a: Node, b: Node, c: Node) -> None:
    # Two mappings in a row relabel an inner node if it is a leaf in between,
    # which one may not: at least 3 for what costs 4.
    direct = tree_distance(arrays(a), arrays(c))
    detour = tree_distance(arrays(a), arrays(b)) + tree_distance(arrays(b), arrays(c))
    assert 3 * direct <= 4 * detour


@given(trees, trees)
def test_subtrees_have_one_class_if_they_are_identical(a: Node, b: Node) -> None:
    classes = [*arrays(a).classes, *arrays(b).classes]
    subtrees = [*nodes(a), *nodes(b)]
    assert len(set(classes)) == len(set(subtrees)) == len(set(zip(classes, subtrees, strict=True)))


def test_a_tree_with_a_changed_text_leaf_differs_by_one() -> None:
    a = Node(0, (Node(1, (Node(2), Node(3))), Node(1, (Node(2), Node(3)))))
    b = Node(0, (Node(1, (Node(2), Node(4))), Node(1, (Node(2), Node(3)))))
    assert tree_distance(arrays(a), arrays(b)) == 1


@pytest.mark.parametrize(
    ("other", "expected"),
    [(EMPTY, 0), (chain([5]), 1), (flat([1, 2, 3]), 4)],
)
def test_all_of_a_tree_is_inserted_into_an_empty_one(other: TreeArrays, expected: int) -> None:
    assert tree_distance(EMPTY, other) == tree_distance(other, EMPTY) == expected
    assert distance_bound(label_paths(EMPTY), label_paths(other)) == expected


def test_a_lone_node_is_relabelled() -> None:
    assert tree_distance(chain([1]), chain([2])) == 1
    assert tree_distance(chain([1]), chain([1])) == 0


def test_very_deep_trees_need_no_recursion() -> None:
    depth = 100_000
    deep = [1] * depth
    assert tree_distance(chain(deep), chain([*deep[1:], 2])) == 1
    assert tree_distance(chain(deep), chain(deep[:-10])) == 10
    # The label above all others differs, so nothing can be mapped.
    assert tree_distance(chain(deep), chain([2, *deep[1:]])) == 2 * depth


def test_very_wide_trees_are_compared_as_sequences() -> None:
    leaves = [1 + i % 7 for i in range(3_000)]
    changed = [9, *leaves[1:1_000], *leaves[1_005:], 9]
    # The first is relabelled, five are deleted, the last is inserted.
    assert tree_distance(flat(leaves), flat(changed)) == 7


def test_trees_that_differ_in_every_leaf_are_compared_in_full() -> None:
    levels = 10
    a, b = Node(1), Node(2)
    for _ in range(levels):
        a, b = Node(0, (a, a)), Node(0, (b, b))
    assert tree_distance(arrays(a), arrays(b)) == 2**levels
