"""TEXT as a whole, by each of its methods."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.templates.clustering import text_minhash as text_max
from siteloom.templates.clustering.text import TextMethod, text_clusters
from siteloom.templates.clustering.text_mdl import (
    description_length,
    essential_paths,
    matrix_shape,
    path_sets,
    text_mdl,
)
from siteloom.templates.clustering.text_minhash import signatures
from tests.property_tests import fewer_examples
from tests.templates.clustering.path_documents import document, letters, made_from_templates, some_documents

METHODS: tuple[TextMethod, ...] = get_args(TextMethod)

every_method = pytest.mark.parametrize("method", METHODS)


def true_clusters(truth: list[int]) -> tuple[tuple[int, ...], ...]:
    clusters = [tuple(d for d, label in enumerate(truth) if label == number) for number in set(truth)]
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster), cluster[0])))


@every_method
def test_documents_of_a_template_come_together(method: TextMethod) -> None:
    documents, truth = made_from_templates(templates=12, documents=100)
    assert text_clusters(documents, method) == true_clusters(truth)


@every_method
def test_the_order_of_documents_does_not_matter_to_clear_clusters(method: TextMethod) -> None:
    documents, truth = made_from_templates(templates=7, documents=60, seed=1)
    order = np.random.default_rng(0).permutation(60).tolist()
    clusters = text_clusters([documents[d] for d in order], method)
    assert clusters == true_clusters([truth[d] for d in order])


@every_method
def test_the_same_documents_give_the_same_clusters(method: TextMethod) -> None:
    documents, _ = made_from_templates(templates=5, documents=60, presence=0.7)
    assert text_clusters(documents, method) == text_clusters(documents, method)


@every_method
@given(some_documents)
def test_clusters_are_a_partition_in_order(method: TextMethod, documents: list[frozenset[int]]) -> None:
    clusters = text_clusters([document(paths) for paths in documents], method)
    assert sorted(d for cluster in clusters for d in cluster) == list(range(len(documents)))
    assert all(list(cluster) == sorted(cluster) for cluster in clusters)
    assert list(clusters) == sorted(clusters, key=lambda cluster: (-len(cluster), cluster[0]))
    for cluster in clusters:
        assert len(cluster) == 1 or all(documents[d] for d in cluster)


@every_method
@given(some_documents)
def test_copies_of_documents_join_their_originals(
    method: TextMethod, documents: list[frozenset[int]]
) -> None:
    arrays = [document(paths) for paths in documents if paths]
    clusters = text_clusters(arrays + arrays, method)
    for cluster in clusters:
        assert {d % len(arrays) for d in cluster} == {d for d in cluster if d < len(arrays)}


@every_method
def test_no_documents_give_no_clusters(method: TextMethod) -> None:
    assert text_clusters([], method) == ()


@every_method
def test_one_document_is_one_cluster(method: TextMethod) -> None:
    assert text_clusters([letters("abc")], method) == ((0,),)


@every_method
def test_documents_without_paths_are_clusters_of_their_own(method: TextMethod) -> None:
    none = letters("")
    assert text_clusters([none, letters("abc"), none, letters("abc")], method) == ((1, 3), (0,), (2,))
    assert text_clusters([none, none], method) == ((0,), (1,))


@every_method
def test_identical_documents_are_one_cluster(method: TextMethod) -> None:
    assert text_clusters([letters("abc")] * 4, method) == ((0, 1, 2, 3),)


@every_method
def test_two_documents_that_share_nothing_stay_apart(method: TextMethod) -> None:
    assert text_clusters([letters("abc"), letters("xyz")], method) == ((0,), (1,))


@every_method
def test_templates_of_one_page_each_stay_apart(method: TextMethod) -> None:
    documents = [document(range(100 * number, 100 * number + 60)) for number in range(9)]
    assert text_clusters(documents, method) == tuple((d,) for d in range(9))


@pytest.mark.parametrize("presence", [0.7, 0.8, 0.9])
@pytest.mark.parametrize("method", ["text-hash", "text-max"])
def test_estimates_end_nearly_as_short_as_exact_costs(method: TextMethod, presence: float) -> None:
    documents, _ = made_from_templates(templates=6, documents=90, presence=presence)
    sets = essential_paths(documents)
    exact = description_length(sets, text_clusters(documents, "text-mdl")).total
    assert description_length(sets, text_clusters(documents, method)).total < 1.02 * exact


@every_method
def test_copies_give_no_variant_a_template_of_its_own(method: TextMethod) -> None:
    """Half of the pages of a template have a block that is always present in another template."""
    shop, guide, block = (set(range(start, start + 40)) for start in (0, 100, 200))
    block = set(sorted(block)[:6])
    kinds = [(shop, 50), (shop | block, 50), (guide | block, 100)]
    documents = [document(paths) for paths, copies in kinds for _ in range(copies)]
    assert text_clusters(documents, method) == (tuple(range(100)), tuple(range(100, 200)))
    with_copies = text_mdl(essential_paths(documents), [[d] for d in range(200)])
    assert len(with_copies) == 3


def test_many_clusters_find_their_partners_among_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    documents, truth = made_from_templates(templates=60, documents=900)
    monkeypatch.setattr(text_max, "_FEW_CLUSTERS", 10)
    assert text_clusters(documents, "text-max") == true_clusters(truth)


def test_exact_costs_join_what_estimates_leave_apart() -> None:
    """Signatures of 16 ranks are too noisy for clusters of a hundred documents."""
    random = np.random.default_rng(0)
    templates = np.arange(240, dtype=np.uint64).reshape(4, 60)
    sets = path_sets([templates[d % 4][random.random(60) < 0.95] for d in range(400)])
    clusters, cluster_of = text_max._merge_identical(signatures(sets, 16))
    estimated, _ = text_max._merge_in_rounds(clusters, cluster_of, None, matrix_shape(sets))
    assert estimated.sizes.size > 4
    assert sorted(text_max.text_max(sets, 16)) == [list(range(d, 400, 4)) for d in range(4)]


@given(st.integers(1, 70))
@fewer_examples(2)
def test_any_length_of_signatures_works(length: int) -> None:
    documents, _ = made_from_templates(templates=3, documents=20)
    for method in METHODS:
        assert sum(map(len, text_clusters(documents, method, length))) == 20
