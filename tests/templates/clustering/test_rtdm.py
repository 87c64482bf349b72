"""Pages are clustered by the distance of their trees."""

from __future__ import annotations

import pickle
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.templates.clustering import tree_distance
from siteloom.templates.clustering.tree_distance import Tree, distance, rtdm_clusters, similarity
from tests.html.trees import tree as parsed

LIST = "<h1/><p/><ul><li/><li/></ul><div><a/></div>"
LIST_CHANGED = "<h1/><p/><p/><ul><li/><li/><li/></ul><span><a/></span>"


def page(body: str) -> Tree:
    """The tree of exactly these elements, which an HTML parser might mend."""
    return Tree.of(etree.fromstring(f"<html><body>{body}</body></html>"))


def leaves(*counts: int) -> Tree:
    """A page of so many leaves of a first kind, of a second, and so on."""
    return page("".join(f"<tag{kind}/>" * count for kind, count in enumerate(counts)))


def test_the_worked_example() -> None:
    a, b = page(LIST), page(LIST_CHANGED)
    assert (len(a), len(b)) == (9, 11)
    assert distance(a, b) == distance(b, a) == 6
    assert similarity(a, b) == pytest.approx(0.7)


def test_texts_are_leaves_without_content() -> None:
    assert len(page("<p>one</p>two")) == 5
    assert distance(page("<p>one</p>two"), page("<p>three</p>four")) == 0
    assert distance(page("<p>one</p>"), page("<p/>")) == 1
    assert distance(page("<p>one</p>"), page("<p><b/></p>")) == 1


def test_blank_texts_comments_and_instructions_are_no_nodes() -> None:
    assert distance(page("<p/><p/>"), page(" <p>\n\xa0</p> <!-- c --> <p/><?x y?>")) == 0
    assert distance(page("a<p/>b"), page("a<!-- c --><p/><?x y?>b")) == 0


def test_what_stands_behind_the_root_is_no_part_of_its_tree() -> None:
    root = etree.fromstring("<div><p>a</p>behind</div>")
    assert len(Tree.of(root[0])) == 2


def test_any_tag_name_of_broken_markup_is_a_label() -> None:
    a, b = Tree.of(parsed('<o:p>x</o:p><a"b>y')), Tree.of(parsed("<o:p>x</o:p><é>y"))
    assert similarity(a, a) == 1
    assert similarity(a, b) < 1


def test_a_page_as_deep_as_the_parser_allows() -> None:
    depth = 2_000
    a, b = (Tree.of(parsed("<div>" * depth + text)) for text in ("a", "<b>a</b>"))
    assert len(a) > depth
    assert distance(a, b) == 2  # the text becomes <b>, which gets a text
    assert rtdm_clusters([a, b]) == ((0, 1),)


def test_trees_can_be_sent_to_other_processes() -> None:
    a = page(LIST)
    assert distance(pickle.loads(pickle.dumps(a)), a) == 0


def test_no_page_and_one_page() -> None:
    assert rtdm_clusters([]) == ()
    assert rtdm_clusters([page(LIST)]) == ((0,),)


def test_identical_pages_are_one_cluster_at_any_threshold() -> None:
    assert rtdm_clusters([page(LIST)] * 5, threshold=1.0) == ((0, 1, 2, 3, 4),)


def test_the_threshold_itself_is_similar_enough() -> None:
    trees = [page(LIST), page(LIST_CHANGED)]
    assert rtdm_clusters(trees, threshold=0.7) == ((0, 1),)
    assert rtdm_clusters(trees, threshold=0.71) == ((0,), (1,))


def test_a_mean_of_similarities_that_all_equal_the_threshold_is_similar_enough() -> None:
    # Every two of them differ in one leaf, of 7 nodes each. The mean of
    # three times 13/14 comes out below it, as floating point goes.
    trees = [page("<p/>" * 4 + f"<tag{kind}/>") for kind in range(7)]
    assert rtdm_clusters(trees, threshold=13 / 14) == (tuple(range(7)),)


def test_clusters_come_by_size_then_by_their_first_page() -> None:
    a, b, c, d = leaves(10), leaves(0, 10), leaves(0, 0, 10), leaves(0, 0, 0, 10)
    assert rtdm_clusters([a, b, c, b, d, c, c, d]) == ((2, 5, 6), (1, 3), (4, 7), (0,))


def test_clusters_are_merged_by_their_mean_similarity() -> None:
    # Each is similar to the next by .83 and more. Of the clusters of two, the
    # means to what is near them are .704 (0, 1 to 2, 3) and .760 (2, 3 to 4),
    # and the lowest similarity of 2, 3 to 4 is .688.
    chain = [leaves(count) for count in (10, 14, 20, 28, 40)]
    assert rtdm_clusters(chain, threshold=0.8) == ((0, 1), (2, 3), (4,))
    assert rtdm_clusters(chain, threshold=0.7) == ((2, 3, 4), (0, 1))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=9),
    st.sampled_from([0.5, 0.8, 0.9]),
)
def test_pairs_that_are_not_compared_change_nothing(counts: list[tuple[int, int]], threshold: float) -> None:
    trees = [leaves(*count) for count in counts]
    clusters = rtdm_clusters(trees, threshold)
    if trees:
        all_compared = tree_distance._average_linkage(
            trees, list(range(len(trees))), threshold - tree_distance._ROUNDING
        )
        assert set(clusters) == set(all_compared)
    assert sorted(number for cluster in clusters for number in cluster) == list(range(len(trees)))
    for a, b in combinations(clusters, 2):
        total = sum(similarity(trees[i], trees[j]) for i in a for j in b)
        assert total / (len(a) * len(b)) < threshold


def test_most_pairs_of_unlike_pages_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(a: Tree, b: Tree) -> float:
        compared.append((a, b))
        return similarity(a, b)

    monkeypatch.setattr(tree_distance, "similarity", counted)
    assert len(rtdm_clusters([leaves(10), leaves(0, 10), leaves(0, 0, 10)] * 4)) == 3
    assert len(compared) == 3 * 6
