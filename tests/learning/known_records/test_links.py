"""Relations as arrays, held against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from siteloom.learning.known_records.record_arrays import is_run_start, make_links

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), max_size=40)


def arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    left, right = np.array(pairs, np.int32).reshape(-1, 2).T
    return left, right


@given(PAIRS, st.lists(st.integers(0, 9), max_size=12))
def test_expanding_is_looking_up_each(pairs: list[tuple[int, int]], asked: list[int]) -> None:
    links = make_links(*arrays(pairs), 10)

    origin, right = links.expand(np.array(asked, np.int32))

    expected = [
        (at, other)
        for at, left in enumerate(asked)
        for other in sorted({two for one, two in pairs if one == left})
    ]
    assert list(zip(origin.tolist(), right.tolist(), strict=True)) == expected


@given(PAIRS)
def test_each_pair_is_linked_once(pairs: list[tuple[int, int]]) -> None:
    links = make_links(*arrays(pairs), 10)

    assert [(left, right) for left in range(10) for right in links.of(left).tolist()] == sorted(set(pairs))
    assert links.counts().tolist() == [len(links.of(left)) for left in range(10)]


def test_large_numbers_are_kept_apart() -> None:
    links = make_links(np.array([1, 1, 0]), np.array([2**31 - 1, 0, 2**31 - 2]), 2)

    assert links.of(0).tolist() == [2**31 - 2]
    assert links.of(1).tolist() == [0, 2**31 - 1]


@given(st.lists(st.integers(-3, 3)).map(sorted))
def test_firsts_begin_each_run(ordered: list[int]) -> None:
    found = is_run_start(np.array(ordered, np.int64))

    assert np.array(ordered)[found].tolist() == sorted(set(ordered))
    assert found.tolist() == [at == 0 or ordered[at - 1] != one for at, one in enumerate(ordered)]
