"""The kernels of the description length agree with plain Python."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from siteloom.templates.clustering.description_length import (
    Shape,
    Signatures,
    are_essential,
    cheapest_merge,
    compare_all,
    compare_neighbours,
    description_bits,
    estimated_changes,
    estimated_contributions,
    exact_changes,
    least_ranks,
    matrix_bits,
    merge_by_estimate,
    merge_exactly,
    merge_signatures,
    merge_supports,
    no_partners,
    number_paths,
)
from siteloom.templates.clustering.text_mdl import PathSets, clusters_with_supports, matrix_shape, path_sets
from siteloom.templates.clustering.text_minhash import signatures

Document = frozenset[int]

LENGTH = 32

# Few different paths, so that documents share some.
a_document = st.frozensets(st.integers(0, 25), min_size=1, max_size=12)
some_documents = st.lists(a_document, min_size=2, max_size=9)
# Hashes in all parts of the table, its ends among them.
any_hash = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**58 - 1, 2**58, 2**64 - 1]))


def sets_of(documents: list[Document]) -> PathSets:
    return path_sets([np.array(sorted(document), np.uint64) for document in documents])


def plain_contribution(documents: list[Document]) -> tuple[int, int, int]:
    support = Counter(path for document in documents for path in document)
    template = {path for path, count in support.items() if count >= (len(documents) + 1) / 2}
    return (
        len(template),
        sum(len(document - template) for document in documents),
        sum(len(template - document) for document in documents),
    )


def plain_bits(counts: list[float], entries: float) -> float:
    zeros = entries - sum(counts)
    return sum(-count * math.log2(count / entries) for count in [*counts, zeros] if count > 0)


def plain_description(shape: Shape, clusters: int, totals: tuple[float, float, float]) -> float:
    template, extra, missing = totals
    templates = plain_bits([template], shape.paths * clusters)
    return templates + plain_bits([extra, missing], shape.paths * shape.documents)


def plain_rank(path: int, factor: int, offset: int) -> int:
    rank = (path * factor + offset) % 2**32
    rank = (rank ^ rank >> 16) * 0x85EBCA6B % 2**32
    rank = (rank ^ rank >> 13) * 0xC2B2AE35 % 2**32
    return rank ^ rank >> 16


def plain_estimate(counts: list[int], size: int, path_total: int) -> tuple[float, float, float]:
    """Equation 5 and Lemmas 4 and 3, as they are printed."""
    share = {level: counts.count(level) / len(counts) for level in set(counts)}
    mean = sum(level * part for level, part in share.items())
    paths_with = {level: part * path_total / mean for level, part in share.items()}
    threshold = (size + 1) / 2
    return (
        sum(number for level, number in paths_with.items() if level >= threshold),
        sum(level * number for level, number in paths_with.items() if level < threshold),
        sum((size - level) * number for level, number in paths_with.items() if level >= threshold),
    )


def agreement(ranks: NDArray[np.uint32], one: int, other: int) -> int:
    return int((ranks[one] == ranks[other]).sum())


@given(st.lists(st.frozensets(any_hash, max_size=8), max_size=6))
def test_every_path_gets_one_number_and_its_support(documents: list[frozenset[int]]) -> None:
    entries = [path for document in documents for path in sorted(document)]
    starts = np.cumsum([0, *map(len, documents)])
    numbers, hashes, support = number_paths(starts, np.array(entries, np.uint64))
    assert hashes[numbers].tolist() == entries
    assert sorted(hashes.tolist()) == sorted(set(entries))
    assert [Counter(entries)[path] for path in hashes.tolist()] == support.tolist()


def test_numbering_grows_its_table() -> None:
    many = np.unique(np.random.default_rng(0).integers(0, 2**58, 10_000, np.uint64))
    twice = np.concatenate([many, many])
    numbers, hashes, support = number_paths(np.array([0, many.size, twice.size]), twice)
    assert np.array_equal(hashes[numbers], twice)
    assert hashes.size == many.size
    assert (support == 2).all()


@given(st.lists(st.lists(st.integers(1, 6), max_size=12), max_size=5))
def test_a_documents_threshold_is_the_mode_of_its_supports(documents: list[list[int]]) -> None:
    starts = np.cumsum([0, *map(len, documents)])
    support = np.array([value for document in documents for value in document], np.int32)
    expected = []
    for document in documents:
        frequencies = Counter(value for value in document if value >= 2)
        threshold = max(frequencies, key=lambda value: (frequencies[value], value), default=1)
        expected += [value >= threshold for value in document]
    paths = np.arange(support.size, dtype=np.int32)
    assert are_essential(starts, paths, support).tolist() == expected


@given(some_documents)
def test_least_ranks_are_least(documents: list[Document]) -> None:
    sets = sets_of(documents)
    factors = np.array([1, 0xDEADBEEF, 0xFFFFFFFF], np.uint32)
    offsets = np.array([0, 77, 0xFFFFFFFF], np.uint32)
    ranks = least_ranks(sets.starts, sets.paths, factors, offsets)
    families = list(zip(factors.tolist(), offsets.tolist(), strict=True))
    assert ranks.tolist() == [
        [min(plain_rank(path, *family) for path in sets.numbers(d).tolist()) for family in families]
        for d in range(len(sets))
    ]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 1000))
def test_a_matrix_takes_its_entropy(ones: int, minus_ones: int, zeros: int) -> None:
    entries = ones + minus_ones + zeros
    expected = plain_bits([ones, minus_ones], entries) if entries else 0
    assert matrix_bits(ones, minus_ones, entries) == pytest.approx(expected, abs=1e-9)


def test_an_estimate_beyond_the_matrix_costs_no_less_than_nothing() -> None:
    assert matrix_bits(101.5, 0, 100) == 0


def test_bits_are_exact_to_a_bit_in_a_matrix_of_a_hundred_thousand_million() -> None:
    """With 10^6 paths and 10^5 documents, |M| log |M| would lose the last bits."""
    exact = 3 * math.log2(1e11 / 3) + 3 / math.log(2)
    assert matrix_bits(3, 0, 1e11) == pytest.approx(exact, abs=1e-6)


@given(some_documents)
def test_exact_changes_are_those_of_the_documents(documents: list[Document]) -> None:
    clusters = clusters_with_supports(sets_of(documents), [[d] for d in range(len(documents))])
    others = np.arange(1, len(documents))
    changes = exact_changes(clusters, 0, others)
    for other, change in zip(others.tolist(), changes.tolist(), strict=True):
        merged = plain_contribution([documents[0], documents[other]])
        alone = plain_contribution([documents[0]]), plain_contribution([documents[other]])
        assert tuple(change) == tuple(m - a - b for m, a, b in zip(merged, *alone, strict=True))


@given(some_documents)
def test_merged_supports_are_those_of_all_documents(documents: list[Document]) -> None:
    sets = sets_of(documents)
    clusters = clusters_with_supports(sets, [[d] for d in range(len(documents))])
    for absorbed in range(1, len(documents)):
        clusters = merge_supports(clusters, 0, absorbed)
    whole = clusters_with_supports(sets, [list(range(len(documents)))])
    merged = slice(clusters.starts[0], clusters.ends[0])
    assert clusters.paths[merged].tolist() == whole.paths.tolist()
    assert clusters.support[merged].tolist() == whole.support.tolist()
    assert clusters.contributions[0].tolist() == list(plain_contribution(documents))


@given(some_documents, st.randoms(use_true_random=False))
def test_signatures_merge_the_same_in_any_order(
    documents: list[Document], random: np.random.Generator
) -> None:
    sets = sets_of(documents)
    one = signatures(sets, LENGTH)
    other = signatures(sets, LENGTH)
    order = list(range(1, len(documents)))
    for absorbed in order:
        merge_signatures(one, 0, absorbed)
    random.shuffle(order)
    root = order[0]
    for absorbed in [*order[1:], 0]:
        merge_signatures(other, root, absorbed)
    for column in ("ranks", "counts", "sizes", "path_totals"):
        assert np.array_equal(getattr(one, column)[0], getattr(other, column)[root])
    assert one.contributions[0].tolist() == pytest.approx(other.contributions[root].tolist())


@given(some_documents)
def test_a_count_is_the_support_of_the_path_of_least_rank(documents: list[Document]) -> None:
    sets = sets_of(documents)
    merged = signatures(sets, LENGTH)
    own_ranks = merged.ranks.copy()
    for absorbed in range(1, len(documents)):
        merge_signatures(merged, 0, absorbed)
    assert merged.ranks[0].tolist() == own_ranks.min(axis=0).tolist()
    assert merged.counts[0].tolist() == (own_ranks == own_ranks.min(axis=0)).sum(axis=0).tolist()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(1, 500))
def test_the_estimate_is_that_of_the_lemmas(counts: list[int], path_total: int) -> None:
    estimated = estimated_contributions(np.array([counts], np.int32), np.array([9]), np.array([path_total]))
    assert estimated[0].tolist() == pytest.approx(plain_estimate(counts, 9, path_total), abs=1e-9)


@given(some_documents)
def test_estimated_changes_are_those_of_merged_signatures(documents: list[Document]) -> None:
    sets = sets_of(documents)
    change = estimated_changes(signatures(sets, LENGTH), 0, np.array([1]))[0]
    clusters = signatures(sets, LENGTH)
    before = clusters.contributions[0] + clusters.contributions[1]
    merge_signatures(clusters, 0, 1)
    assert change.tolist() == pytest.approx((clusters.contributions[0] - before).tolist())
    expected = plain_estimate(clusters.counts[0].tolist(), 2, int(clusters.path_totals[0]))
    assert clusters.contributions[0].tolist() == pytest.approx(expected, abs=1e-9)


def test_the_cheapest_merge_is_the_first_of_equally_cheap_ones() -> None:
    changes = np.zeros((4, 4, 3))
    changes[:, :, 0] = -1
    alive, totals, shape = np.array([0, 2, 3]), np.array([12.0, 0, 0]), Shape(10, 4)
    bits, into, absorbed = cheapest_merge(changes, alive, totals, shape)
    assert (into, absorbed) == (0, 2)
    assert bits == pytest.approx(plain_description(shape, 2, (11, 0, 0)))
    changes[3, 2, 0] = -5
    assert cheapest_merge(changes, alive, totals, shape)[1:] == (2, 3)


def partners_of(clusters: Signatures, shape: Shape) -> tuple[list[int], list[int], list[float]]:
    found = no_partners(clusters.sizes.size)
    compare_all(clusters, shape, found)
    return found.partner.tolist(), found.agreement.tolist(), found.bits.tolist()


@given(some_documents)
def test_a_partner_has_maximal_agreement_then_fewest_bits_then_comes_first(documents: list[Document]) -> None:
    sets = sets_of(documents)
    clusters, shape = signatures(sets, LENGTH), matrix_shape(sets)
    totals = clusters.contributions.sum(axis=0)
    partner, agreements, bits = partners_of(clusters, shape)
    for one in range(len(documents)):
        others = [other for other in range(len(documents)) if agreement(clusters.ranks, one, other)]
        others.remove(one)
        if not others:
            assert partner[one] == -1
            continue
        after = {
            other: description_bits(
                shape, len(documents) - 1, totals + estimated_changes(clusters, one, np.array([other]))[0]
            )
            for other in others
        }
        most = max(agreement(clusters.ranks, one, other) for other in others)
        nearest = [other for other in others if agreement(clusters.ranks, one, other) == most]
        assert agreements[one] == most
        assert partner[one] in nearest
        assert bits[one] == pytest.approx(min(after[other] for other in nearest))


@given(some_documents)
def test_neighbours_within_reach_are_all_compared(documents: list[Document]) -> None:
    sets = sets_of(documents)
    clusters, shape = signatures(sets, LENGTH), matrix_shape(sets)
    found = no_partners(len(documents))
    compare_neighbours(clusters, np.arange(len(documents))[::-1].copy(), len(documents), shape, found)
    assert found.agreement.tolist() == partners_of(clusters, shape)[1]


@given(some_documents, st.booleans())
def test_merging_with_partners_lowers_the_description(documents: list[Document], exact: bool) -> None:
    sets = sets_of(documents)
    clusters, shape = signatures(sets, LENGTH), matrix_shape(sets)
    supports = clusters_with_supports(sets, [[d] for d in range(len(documents))])
    before = description_bits(shape, len(documents), supports.contributions.sum(axis=0))
    partner = np.array(partners_of(clusters, shape)[0])
    order = np.flatnonzero(partner >= 0)
    if exact:
        supports, rows = merge_exactly(clusters, supports, order, partner, shape)
    else:
        rows = merge_by_estimate(clusters, order, partner, shape)
    kept = np.unique(rows)
    assert (rows[rows] == rows).all()
    assert (rows <= np.arange(rows.size)).all()
    assert clusters.sizes[kept].tolist() == np.bincount(rows)[kept].tolist()
    contributions = supports.contributions if exact else clusters.contributions
    after = description_bits(shape, kept.size, contributions[kept].sum(axis=0))
    assert after < before or kept.size == len(documents)
    if exact:
        for row in kept.tolist():
            members = [documents[d] for d in np.flatnonzero(rows == row).tolist()]
            assert contributions[row].tolist() == list(plain_contribution(members))
