"""Frequent sets: the same as by trying all of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.learning.known_records.frequent_sets import Baskets, frequent_sets

ITEMS = 6
# Pages of baskets of items; what occurs alone on a page need be in no basket.
pages_of_baskets = st.lists(
    st.lists(st.frozensets(st.integers(0, ITEMS - 1)), max_size=5).map(tuple), min_size=1, max_size=8
)
pairs = st.frozensets(st.tuples(st.integers(0, ITEMS - 1), st.integers(0, ITEMS - 1)), max_size=6)


def as_arrays(page: tuple[frozenset[int], ...]) -> Baskets:
    items = sorted(frozenset().union(*page))
    holds = [[item in basket for item in items] for basket in page]
    return Baskets(np.array(items, np.int64), np.array(holds, np.bool_).reshape(len(page), len(items)))


def support(page_baskets: list[tuple[frozenset[int], ...]], items: tuple[int, ...]) -> int:
    return sum(any(basket.issuperset(items) for basket in page) for page in page_baskets)


@given(pages_of_baskets, pairs, st.integers(1, 3))
def test_they_are_those_that_trying_all_sets_finds(
    pages: list[tuple[frozenset[int], ...]], apart: frozenset[tuple[int, int]], least: int
) -> None:
    excluded = np.zeros((ITEMS, ITEMS), np.bool_)
    for one, other in apart:
        excluded[one, other] = excluded[other, one] = True
    expected: list[dict[tuple[int, ...], int]] = []
    for size in range(1, ITEMS + 1):
        frequent = {
            items: of_set
            for items in combinations(range(ITEMS), size)
            if (of_set := support(pages, items)) >= least
            and not any(excluded[pair] for pair in combinations(items, 2))
        }
        if frequent:
            expected.append(frequent)

    alone = [support(pages, (item,)) for item in range(ITEMS)]
    found = frequent_sets([as_arrays(page) for page in pages if page], alone, least, excluded)

    assert found == expected


def test_two_records_that_agree_in_one_thing_each_do_not_agree_in_both() -> None:
    page = (frozenset({0}), frozenset({1}))

    assert frequent_sets([as_arrays(page)], [1, 1], 1, np.zeros((2, 2), np.bool_)) == [{(0,): 1, (1,): 1}]


def test_a_page_may_have_more_baskets_than_a_word_has_bits() -> None:
    crowd = tuple(frozenset({0, item}) for item in range(3, 200))
    page = (*crowd, frozenset({0, 1, 2}))

    levels = frequent_sets([as_arrays(page)], [1] * 200, 1, np.zeros((200, 200), np.bool_))

    assert levels[2] == {(0, 1, 2): 1}


def test_of_too_many_sets_those_with_the_most_support_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siteloom.learning.known_records.frequent_sets._MOST_SETS", 2)
    often, once = (frozenset(range(4)),), (frozenset({0, 1, 2, 3, 4, 5}),)

    levels = frequent_sets([as_arrays(often), as_arrays(once)], [2] * 4 + [1] * 2, 1, np.zeros((6, 6), bool))

    assert levels[2] == {(0, 1, 2): 2, (0, 1, 3): 2}
