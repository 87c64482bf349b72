"""Signatures choose among their masks as Algorithm 1 of Vertex says, here once more in plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.templates.clustering.vertex import best_masks, commit_to_best

TwinMask: TypeAlias = tuple[int, ...]

ANY = -1  # a wildcard, less than any byte

# Variants of few signatures, so that masks are shared and ties are common.
near_signatures = st.tuples(
    st.sampled_from([bytes(8), b"\x01" * 8, b"\x00\x01" * 4]),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=3),
).map(lambda drawn: changed(drawn[0], drawn[1]))
some_signatures = st.lists(near_signatures | st.binary(min_size=8, max_size=8), max_size=25)
repeated = st.lists(st.tuples(near_signatures, st.integers(1, 4)), max_size=12).map(
    lambda drawn: [signature for signature, times in drawn for _ in range(times)]
)


def changed(signature: bytes, changes: list[tuple[int, int]]) -> bytes:
    result = bytearray(signature)
    for place, byte in changes:
        result[place] = byte
    return bytes(result)


def masks_of(signature: bytes) -> list[TwinMask]:
    """All masks that cover a signature, the preferred first: fewer wildcards, then the greater tuple."""
    masks = [
        tuple(ANY if place in places else byte for place, byte in enumerate(signature))
        for number in range(3)
        for places in combinations(range(8), number)
    ]
    return sorted(masks, key=lambda mask: (-mask.count(ANY), mask), reverse=True)


def best(masks: list[TwinMask], pages: Counter[TwinMask]) -> TwinMask:
    return max(masks, key=lambda mask: (pages[mask], -mask.count(ANY), mask))


def two_passes(signatures: list[bytes]) -> Counter[TwinMask]:
    """How many pages each mask has after all signatures have committed."""
    pages = Counter(mask for signature in signatures for mask in masks_of(signature))
    multiplicity = Counter(signatures)
    for signature in sorted(multiplicity, key=lambda signature: (multiplicity[signature], signature)):
        kept = best(masks_of(signature), pages)
        for mask in masks_of(signature):
            if mask != kept:
                pages[mask] -= multiplicity[signature]
    return pages


def third_pass(
    signatures: list[bytes], pages: Counter[TwinMask], threshold: int
) -> dict[bytes, TwinMask | None]:
    chosen: dict[bytes, TwinMask | None] = {}
    for signature in signatures:
        left = [mask for mask in masks_of(signature) if pages[mask] >= threshold]
        chosen[signature] = best(left, pages) if left else None
    return chosen


class Kernels:
    """The kernels' arrays for some signatures, and what they make of them."""

    def __init__(self, signatures: list[bytes]) -> None:
        multiplicity = Counter(signatures)
        self.distinct = sorted(multiplicity)
        self.masks = sorted({mask for signature in self.distinct for mask in masks_of(signature)})
        number = {mask: i for i, mask in enumerate(self.masks)}
        rows = [[number[mask] for mask in masks_of(signature)] for signature in self.distinct]
        self.of_signature = np.array(rows, np.int64).reshape(-1, 37).T.copy()
        counts = np.array([multiplicity[signature] for signature in self.distinct], np.int64)
        covering = Counter(mask for signature in signatures for mask in masks_of(signature))
        self.pages = np.array([covering[mask] for mask in self.masks], np.int64)
        commit_to_best(self.of_signature, counts, np.argsort(counts, kind="stable"), self.pages)

    def committed(self) -> dict[TwinMask, int]:
        return dict(zip(self.masks, self.pages.tolist(), strict=True))

    def chosen(self, threshold: int) -> dict[bytes, TwinMask | None]:
        numbers = best_masks(self.of_signature, self.pages, threshold).tolist()
        return {
            signature: self.masks[number] if number >= 0 else None
            for signature, number in zip(self.distinct, numbers, strict=True)
        }


def test_a_signature_of_eight_bytes_has_37_masks() -> None:
    assert len(set(masks_of(b"abcdefgh"))) == 37
    assert len(set(masks_of(b"aaaaaaaa"))) == 37  # by place: equal bytes make no difference


@given(some_signatures | repeated, st.integers(1, 6))
@example([], 2)
@example([bytes(8)] * 2 + [bytes(7) + b"\x01"] * 2, 3)
def test_the_kernels_agree_with_the_algorithm(signatures: list[bytes], threshold: int) -> None:
    kernels, pages = Kernels(signatures), two_passes(signatures)
    assert kernels.committed() == dict(pages)
    assert kernels.chosen(threshold) == third_pass(signatures, pages, threshold)


@given(some_signatures | repeated)
def test_every_page_is_counted_once_after_all_have_committed(signatures: list[bytes]) -> None:
    committed = Kernels(signatures).committed()
    assert sum(committed.values()) == len(signatures)
    assert all(pages >= 0 for pages in committed.values())


def test_of_equally_good_masks_the_one_without_wildcards_is_chosen() -> None:
    signature = b"\x05" * 8
    assert Kernels([signature] * 3).chosen(2) == {signature: tuple(signature)}


def test_of_masks_with_equally_many_wildcards_the_greater_tuple_is_chosen() -> None:
    """The first signature shares one mask with the second and another with the third; it chooses first."""
    first, second, third = b"\x05" * 8, b"\x09\x09" + b"\x05" * 6, b"\x05" * 6 + b"\x09\x09"
    late_wildcards = (5, 5, 5, 5, 5, 5, ANY, ANY)
    assert Kernels([first, second, third]).chosen(1) == {
        first: late_wildcards,
        second: tuple(second),
        third: late_wildcards,
    }


@pytest.mark.parametrize(("order", "expected"), [([0, 1], [1, 0, 5]), ([1, 0], [0, 1, 5])])
def test_each_signature_chooses_by_what_the_counts_are_by_then(order: list[int], expected: list[int]) -> None:
    """The rare signature (0) likes the shared mask (0) only while the common one has not left it."""
    masks_of_signatures = np.array([[1, 2], [0, 0]])
    mask_pages = np.array([3, 1, 5])
    commit_to_best(masks_of_signatures, np.array([1, 2]), np.array(order), mask_pages)
    assert mask_pages.tolist() == expected


def test_a_mask_needs_the_pages_asked_for() -> None:
    of_signature = np.array([[0, 1]])
    assert best_masks(of_signature, np.array([2, 3]), 3).tolist() == [-1, 1]
