"""TEXT-MDL and TEXT-HASH merge what shortens the description most."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.templates.clustering.description_length import (
    estimated_changes,
    exact_changes,
    merge_signatures,
)
from siteloom.templates.clustering.text_mdl import (
    ExactCosts,
    Merge,
    PathSets,
    after_merges,
    best_merges,
    clusters_with_supports,
    description_length,
    matrix_shape,
    path_sets,
    text_mdl,
)
from siteloom.templates.clustering.text_minhash import signatures, text_hash
from tests.templates.clustering.path_documents import document, letters

EXAMPLE = [letters(text) for text in ("abcde", "abcdf", "abcdg", "vwxy", "vwxyz")]
MEMBERS = 5 * math.log2(5)

filled_documents = st.lists(st.frozensets(st.integers(0, 20), min_size=1, max_size=8), min_size=1, max_size=7)


def singles(sets: PathSets) -> list[list[int]]:
    return [[d] for d in range(len(sets))]


def plain_text_mdl(sets: PathSets) -> list[list[int]]:
    """TEXT-MDL with every cost computed anew."""
    clusters = singles(sets)
    current = description_length(sets, clusters).total
    while len(clusters) > 1:
        candidates = []
        for later, earlier in ((b, a) for b in range(len(clusters)) for a in range(b)):
            merged = list(clusters)
            merged[earlier] = clusters[earlier] + merged.pop(later)
            candidates.append((description_length(sets, merged).total, merged))
        best, merged = min(candidates, key=lambda candidate: round(candidate[0], 6))
        if best >= current - 1e-9:
            break
        clusters, current = merged, best
    return [sorted(cluster) for cluster in clusters]


def test_the_merges_of_a_known_example() -> None:
    sets = path_sets(EXAMPLE)
    merges = list(best_merges(ExactCosts(sets, singles(sets)), matrix_shape(sets)))
    assert [merge.bits + MEMBERS for merge in merges] == pytest.approx([65.433, 62.763, 54.850], abs=2e-3)
    assert [set(merge[:2]) for merge in merges] == [{3, 4}, {0, 1}, {0, 2}]
    assert text_mdl(sets, singles(sets)) == [[0, 1, 2], [3, 4]]
    contributions = clusters_with_supports(sets, [[0, 1, 2], [3, 4]]).contributions
    assert contributions.sum(axis=0).tolist() == [8, 4, 0]


@given(filled_documents)
def test_merging_agrees_with_costs_computed_anew(documents: list[frozenset[int]]) -> None:
    sets = path_sets([document(paths) for paths in documents])
    assert text_mdl(sets, singles(sets)) == plain_text_mdl(sets)


@given(filled_documents)
def test_no_merge_is_left_that_would_shorten_the_description(documents: list[frozenset[int]]) -> None:
    sets = path_sets([document(paths) for paths in documents])
    clusters = text_mdl(sets, singles(sets))
    total = description_length(sets, clusters).total
    assert total <= description_length(sets, singles(sets)).total + 1e-9
    for one, other in combinations(clusters, 2):
        rest = [cluster for cluster in clusters if cluster not in (one, other)]
        assert description_length(sets, [*rest, one + other]).total >= total - 1e-9


def test_merging_goes_on_from_given_clusters() -> None:
    assert text_mdl(path_sets(EXAMPLE), [[2], [0, 1], [4, 3]]) == [[0, 1, 2], [3, 4]]


def test_merges_are_carried_out_one_after_the_other() -> None:
    merges = [Merge(1, 3, 0.0), Merge(0, 1, 0.0)]
    assert after_merges([[4], [1], [2], [3]], merges) == [[1, 3, 4], [2]]


def test_text_hash_finds_the_clusters_of_the_example() -> None:
    assert text_hash(path_sets(EXAMPLE), 256) == [[0, 1, 2], [3, 4]]


def test_a_cluster_of_identical_documents_is_estimated_exactly() -> None:
    clusters = signatures(path_sets([letters("abcdefg")] * 5), 64)
    for absorbed in range(1, 5):
        merge_signatures(clusters, 0, absorbed)
    assert (clusters.counts[0] == 5).all()
    assert clusters.contributions[0].tolist() == [7, 0, 0]


def test_a_single_document_is_estimated_exactly() -> None:
    assert signatures(path_sets([letters("abcdefg")]), 64).contributions.tolist() == [[7, 0, 0]]


@pytest.mark.parametrize(("length", "tolerance"), [(256, 0.25), (4096, 0.07)])
def test_longer_signatures_estimate_better(length: int, tolerance: float) -> None:
    """Eight documents that each have about nine in ten of 220 paths."""
    random = np.random.default_rng(3)
    documents = [document(np.flatnonzero(random.random(220) < 0.9).tolist()) for _ in range(8)]
    sets = path_sets(documents)
    clusters = signatures(sets, length)
    for absorbed in range(1, 8):
        merge_signatures(clusters, 0, absorbed)
    exact = clusters_with_supports(sets, [list(range(8))]).contributions[0]
    assert np.abs(clusters.contributions[0] - exact)[0] < tolerance * exact[0]
    assert np.abs(clusters.contributions[0] - exact)[2] < tolerance * exact[2]


def test_estimated_changes_are_near_the_exact_ones() -> None:
    random = np.random.default_rng(4)
    sets = path_sets([document(random.permutation(400)[:200].tolist()) for _ in range(20)])
    others = np.arange(1, 20)
    exact = exact_changes(clusters_with_supports(sets, singles(sets)), 0, others)
    estimated = estimated_changes(signatures(sets, 1024), 0, others)
    assert np.abs(estimated - exact).max() < 0.1 * 400


def test_signatures_of_one_length_are_always_the_same() -> None:
    sets = path_sets(EXAMPLE)
    assert np.array_equal(signatures(sets, 16).ranks, signatures(sets, 32).ranks[:, :16])
