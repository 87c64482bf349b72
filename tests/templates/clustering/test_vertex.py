"""Pages are grouped by their signatures: the three passes, fragments merged, leftovers joined."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.templates.clustering import vertex
from siteloom.templates.clustering.vertex import (
    SignatureClustering,
    assign,
    best_masks,
    cluster_signatures,
    commit_to_best,
    group_signatures,
    pages_needed,
)
from siteloom.templates.signature import Mask
from tests.templates.clustering.test_masks import (
    ANY,
    TwinMask,
    changed,
    repeated,
    some_signatures,
    third_pass,
    two_passes,
)

A, B, C, STRANGE = b"abcdefgh", b"12345678", b"ABCDEFGH", b"!?&%*+-="


def agreement(a: bytes, b: bytes) -> int:
    return sum(x == y for x, y in zip(a, b, strict=True))


def differing(signature: bytes, *places: int, by: int = 100) -> bytes:
    """A signature that differs from another in these places."""
    return changed(signature, [(place, signature[place] + by) for place in places])


def variants(signature: bytes, same: int, others: int, places: tuple[int, int]) -> list[bytes]:
    """Some pages with a signature, and others that differ from it, each in its own way."""
    return [signature] * same + [differing(signature, *places, by=n) for n in range(1, others + 1)]


def as_twin(mask: Mask) -> TwinMask:
    return tuple(ANY if place in mask.wildcards else byte for place, byte in enumerate(mask.value))


def member_sets(found: SignatureClustering) -> list[list[int]]:
    return [list(cluster.members) for cluster in found.clusters]


def signature_groups(found: SignatureClustering, signatures: list[bytes]) -> set[frozenset[bytes]]:
    return {frozenset(signatures[page] for page in cluster.members) for cluster in found.clusters}


@given(some_signatures | repeated, st.integers(1, 6))
@example([A] * 2 + [differing(A, 0)] * 2, 3)
def test_the_passes_are_those_of_the_algorithm(signatures: list[bytes], threshold: int) -> None:
    if not signatures:
        return
    distinct, counts = np.unique(vertex._numbers(signatures), return_counts=True)
    masks = vertex._count_masks(distinct, counts)
    covering = masks.pages.copy()
    commit_to_best(masks.of_signature, counts, np.lexsort((distinct, counts)), masks.pages)

    committed = {as_twin(masks.mask(number)): int(pages) for number, pages in enumerate(masks.pages)}
    twin = two_passes(signatures)
    assert committed == dict(twin)
    assert covering.sum() == 37 * len(signatures)
    assert masks.pages.sum() == len(signatures)
    assert masks.pages.min() >= 0
    numbers = best_masks(masks.of_signature, masks.pages, threshold)
    chosen = {
        int(signature).to_bytes(8): as_twin(masks.mask(number)) if number >= 0 else None
        for signature, number in zip(distinct, numbers, strict=True)
    }
    assert chosen == third_pass(signatures, twin, threshold)


@given(some_signatures | repeated)
def test_what_the_passes_cluster_stays_clustered_and_leftovers_join_the_nearest(
    signatures: list[bytes],
) -> None:
    found = cluster_signatures(signatures)
    chosen = third_pass(signatures, two_passes(signatures), pages_needed(len(signatures)))
    plain = [page for page, signature in enumerate(signatures) if chosen[signature] is not None]
    cluster_of = {page: number for number, c in enumerate(found.clusters) for page in c.members}
    assert found.plain_coverage == pytest.approx(len(plain) / max(1, len(signatures)))
    assert found.coverage == pytest.approx(len(cluster_of) / max(1, len(signatures)))
    assert set(plain) <= set(cluster_of)
    plain_pages = Counter(cluster_of[page] for page in plain)
    for page, signature in enumerate(signatures):
        if chosen[signature] is not None:
            continue
        # for each cluster the most bytes that agree, then its size
        near = {
            number: (max(agreement(signature, signatures[p]) for p in plain if cluster_of[p] == number), size)
            for number, size in plain_pages.items()
        }
        best = max(near.values(), default=(0, 0))
        if best[0] >= 5:
            assert near[cluster_of[page]] == best
        else:
            assert page in found.unclustered


@given(some_signatures | repeated)
def test_every_page_is_in_one_cluster_or_unclustered(signatures: list[bytes]) -> None:
    found = cluster_signatures(signatures)
    pages = [page for members in member_sets(found) for page in members]
    assert sorted([*pages, *found.unclustered]) == list(range(len(signatures)))
    assert all(members == sorted(members) for members in member_sets(found))
    sizes = [len(members) for members in member_sets(found)]
    assert sizes == sorted(sizes, reverse=True)
    for cluster in found.clusters:
        assert set(cluster.accepted) == {signatures[page] for page in cluster.members}
        assert any(cluster.mask.covers(signature) for signature in cluster.accepted)
        assert pages_needed(len(signatures)) <= cluster.mask_pages <= len(cluster.members)


@given(repeated, st.randoms(use_true_random=False))
def test_the_order_of_the_pages_does_not_matter(signatures: list[bytes], dice: random.Random) -> None:
    shuffled = signatures.copy()
    dice.shuffle(shuffled)
    a, b = cluster_signatures(signatures), cluster_signatures(shuffled)
    assert signature_groups(a, signatures) == signature_groups(b, shuffled)
    assert Counter((str(c.mask), c.mask_pages, c.accepted) for c in a.clusters) == Counter(
        (str(c.mask), c.mask_pages, c.accepted) for c in b.clusters
    )
    assert (a.plain_coverage, a.coverage) == (b.plain_coverage, b.coverage)
    assert cluster_signatures(signatures) == a


@given(some_signatures | repeated)
def test_members_are_assigned_to_their_own_cluster(signatures: list[bytes]) -> None:
    found = cluster_signatures(signatures)
    assigned = assign(found.clusters, signatures)
    for number, cluster in enumerate(found.clusters):
        assert {assigned[page] for page in cluster.members} == {number}


@pytest.mark.parametrize(
    ("pages", "needed"),
    [(0, 2), (1, 2), (299, 2), (300, 3), (700, 7), (1_999, 19), (2_000, 20), (1_000_000, 20)],
)
def test_a_mask_needs_one_page_in_a_hundred_at_least_two_at_most_twenty(pages: int, needed: int) -> None:
    assert pages_needed(pages) == needed


@pytest.mark.parametrize("pages", [2, 3, 20, 500])
def test_one_signature_is_one_cluster_of_all_pages(pages: int) -> None:
    found = cluster_signatures([A] * pages)
    (cluster,) = found.clusters
    assert cluster.members == tuple(range(pages))
    assert (str(cluster.mask), cluster.mask_pages, cluster.accepted) == (A.hex(), pages, (A,))
    assert (found.unclustered, found.plain_coverage, found.coverage) == ((), 1.0, 1.0)


def test_too_few_pages_make_no_cluster() -> None:
    found = cluster_signatures([A] * 300 + [B] * 2 + [C] * 3)  # three are needed
    assert member_sets(found) == [list(range(300)), [302, 303, 304]]
    assert found.unclustered == (300, 301)
    assert found.coverage == pytest.approx(303 / 305)


def test_no_pages_one_page_and_pages_without_signature() -> None:
    assert cluster_signatures([]) == SignatureClustering((), (), 0.0, 0.0)
    assert cluster_signatures([A]) == SignatureClustering((), (0,), 0.0, 0.0)
    assert cluster_signatures([None, None]) == SignatureClustering((), (0, 1), 0.0, 0.0)
    found = cluster_signatures([None, A, None, A])
    assert (member_sets(found), found.unclustered, found.coverage) == ([[1, 3]], (0, 2), 0.5)


def test_signatures_that_all_differ_are_left_over() -> None:
    found = cluster_signatures([bytes([number] * 8) for number in range(50)])
    assert (found.clusters, len(found.unclustered), found.coverage) == ((), 50, 0.0)


@pytest.mark.parametrize("places", [(0,), (3, 7)])
def test_pages_that_differ_in_two_bytes_share_a_mask(places: tuple[int, ...]) -> None:
    found = cluster_signatures([differing(A, *places, by=number) for number in range(10)])
    (cluster,) = found.clusters
    assert cluster.mask.wildcards == frozenset(places)
    assert (cluster.mask_pages, found.plain_coverage) == (10, 1.0)


@pytest.mark.parametrize(("places", "joins"), [((0, 1, 2), True), ((0, 1, 2, 3), False)])
def test_a_leftover_joins_if_five_bytes_agree(places: tuple[int, ...], joins: bool) -> None:
    found = cluster_signatures([A] * 10 + [differing(A, *places)])
    assert (10 in found.clusters[0].members) == joins
    assert found.plain_coverage == pytest.approx(10 / 11)
    assert found.coverage == pytest.approx(1.0 if joins else 10 / 11)
    assert (differing(A, *places) in found.clusters[0].accepted) == joins


def test_a_leftover_joins_where_most_bytes_agree_and_then_the_largest_cluster() -> None:
    small, large = A, differing(A, 0, 1, 2, 3)
    nearer_to_small = differing(small, 4, 5, 6)  # 5 of the small one, 1 of the large one
    found = cluster_signatures([small] * 3 + [large] * 9 + [nearer_to_small])
    assert found.clusters[1].members == (0, 1, 2, 12)
    between = changed(A, [(0, large[0]), (1, large[1]), (4, 0)])
    assert [agreement(between, other) for other in (small, large)] == [5, 5]
    found = cluster_signatures([small] * 3 + [large] * 9 + [between])
    assert found.clusters[0].members == (*range(3, 13),)


def test_masks_whose_typical_signatures_agree_on_six_bytes_are_one_cluster() -> None:
    """Each has a mask of its own, because its variants differ in other places."""
    pages = variants(A, 5, 10, (0, 1)) + variants(differing(A, 2, 3), 4, 8, (4, 5))
    found = cluster_signatures(pages)
    (cluster,) = found.clusters
    assert (cluster.mask_pages, len(cluster.members)) == (15, 27)
    assert cluster.mask.wildcards == frozenset({0, 1})
    assert (len(cluster.accepted), found.plain_coverage) == (11 + 9, 1.0)
    apart = variants(A, 5, 10, (0, 1)) + variants(differing(A, 2, 3, 4), 4, 8, (5, 6))
    assert member_sets(cluster_signatures(apart)) == [list(range(15)), list(range(15, 27))]


def test_the_largest_cluster_is_so_with_all_its_fragments() -> None:
    """The largest mask belongs to a cluster that is smaller than another one's two masks together."""
    many = differing(A, 0, 1, 2, 3)
    fragments = variants(many, 5, 8, (4, 5)) + variants(differing(many, 6, 7), 4, 8, (2, 3))
    between = changed(A, [(0, many[0]), (1, many[1]), (7, 0)])
    assert [agreement(between, other) for other in (A, many)] == [5, 5]
    found = cluster_signatures([A] * 20 + fragments + [between])
    assert member_sets(found) == [list(range(20, 46)), list(range(20))]


def test_a_known_signature_is_assigned_to_its_cluster_even_if_a_larger_mask_covers_it() -> None:
    clusters = cluster_signatures([A] * 9 + [B] * 3).clusters
    covering = vertex.SignatureCluster((0,), Mask(bytes(8), frozenset(range(8))), 100, (C,))
    assert assign((covering, *clusters), [A, B, C, STRANGE]) == (1, 2, 0, 0)


def test_a_new_signature_is_assigned_by_mask_then_by_agreement() -> None:
    seen = [differing(A, 0, 7, by=number) for number in range(9)] + [B] * 3
    clusters = cluster_signatures(seen).clusters
    covered, near = differing(A, 0, 7, by=77), differing(B, 0, 1, 2)
    assert assign(clusters, [covered, near, STRANGE, None]) == (0, 1, None, None)
    assert assign(clusters, [differing(B, 0, 1, 2, 3)]) == (None,)


def test_nothing_is_assigned_where_there_is_nothing() -> None:
    assert assign((), [A, None]) == (None, None)
    assert assign(cluster_signatures([A, A]).clusters, []) == ()
    assert assign(cluster_signatures([A, A]).clusters, [None]) == (None,)


def test_variants_of_ten_templates_are_ten_clusters() -> None:
    """Most pages have the signature of their template, the others differ in up to two bytes."""
    dice = random.Random(3)
    templates = [dice.randbytes(8) for _ in range(10)]
    changes = [
        [(dice.randrange(8), dice.randrange(256)) for _ in range(number % 3)] for number in range(3_000)
    ]
    found = cluster_signatures([changed(templates[n % 10], change) for n, change in enumerate(changes)])
    assert sorted(member_sets(found)) == [list(range(n, 3_000, 10)) for n in range(10)]
    assert found.plain_coverage < found.coverage == 1.0


@given(some_signatures | repeated, st.integers(0, 3), st.randoms())
def test_counted_signatures_are_grouped_as_the_pages_that_have_them(
    signatures: list[bytes], without: int, dice: random.Random
) -> None:
    pages: list[bytes | None] = [*signatures, *[None] * without]
    dice.shuffle(pages)
    whole = cluster_signatures(pages)
    counts = sorted(Counter(signatures).items())
    distinct = np.array([int.from_bytes(signature) for signature, _ in counts], np.uint64)
    groups = group_signatures(distinct, np.array([count for _, count in counts]), len(pages))
    accepted: dict[int, list[bytes]] = {}
    for (signature, _), group in zip(counts, groups.of_signature.tolist(), strict=True):
        accepted.setdefault(group, []).append(signature)
    assert {
        (tuple(accepted[group]), mask, mask_pages)
        for group, (mask, mask_pages) in enumerate(zip(groups.masks, groups.mask_pages, strict=True))
    } == {(cluster.accepted, cluster.mask, cluster.mask_pages) for cluster in whole.clusters}
    left = {page for page in whole.unclustered if pages[page] is not None}
    assert {pages[page] for page in left} == set(accepted.get(-1, ()))
    assert groups.plainly_grouped == round(whole.plain_coverage * len(pages))
