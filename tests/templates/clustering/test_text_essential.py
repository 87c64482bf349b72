"""The essential paths of documents."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.templates.clustering.text_mdl import (
    equal_documents,
    essential_paths,
    path_sets,
    select_documents,
)
from tests.templates.clustering.path_documents import document, letters, some_documents


def plain_essential(documents: list[frozenset[int]]) -> list[list[int]]:
    support = Counter(path for paths in documents for path in paths)
    essential = []
    for paths in documents:
        frequencies = Counter(support[path] for path in paths if support[path] >= 2)
        threshold = max(frequencies, key=lambda value: (frequencies[value], value), default=1)
        essential.append(sorted(path for path in paths if support[path] >= threshold))
    return essential


@given(some_documents)
def test_essential_paths_agree_with_plain_python(documents: list[frozenset[int]]) -> None:
    sets = essential_paths([document(paths) for paths in documents])
    expected = plain_essential(documents)
    assert [sets.document(d).tolist() for d in range(len(sets))] == expected
    assert sets.hashes.tolist() == sorted({path for paths in expected for path in paths})


def test_a_template_outlives_the_texts_of_its_pages() -> None:
    pages = [letters("abcd" + own) for own in ("efghijkl", "mnopqrst", "uvwxyz")]
    sets = essential_paths(pages)
    assert all(sets.document(page).tolist() == letters("abcd").tolist() for page in range(3))


def test_of_equally_frequent_supports_the_largest_is_the_threshold() -> None:
    """Supports of the first: a and b 3, c and d 2."""
    sets = essential_paths([letters("abcd"), letters("abc"), letters("abd")])
    assert sets.document(0).tolist() == letters("ab").tolist()


def test_all_paths_of_a_document_that_shares_none_are_essential() -> None:
    sets = essential_paths([letters("ab"), letters("cd")])
    assert [sets.document(d).tolist() for d in range(2)] == [[97, 98], [99, 100]]


@given(st.lists(st.frozensets(st.integers(0, 30), min_size=1, max_size=12), max_size=8), st.data())
def test_path_numbers_do_not_depend_on_the_order_of_documents(
    documents: list[frozenset[int]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(documents))))
    arrays = [document(paths) for paths in documents]
    sets, permuted = essential_paths(arrays), essential_paths([arrays[d] for d in order])
    assert sets.hashes.tolist() == permuted.hashes.tolist()
    for position, d in enumerate(order):
        assert permuted.numbers(position).tolist() == sets.numbers(d).tolist()


def test_chosen_documents_keep_their_paths() -> None:
    sets = select_documents(path_sets([letters("ab"), letters("bc"), letters("xy")]), np.array([2, 1]))
    assert [sets.document(d).tolist() for d in range(2)] == [[120, 121], [98, 99]]
    assert sets.path_count == 4


def test_equal_documents_are_found() -> None:
    sets = path_sets([letters("ab"), letters("a"), letters("ab"), letters("b"), letters("a")])
    assert equal_documents(sets).tolist() == [0, 1, 0, 3, 1]


@pytest.mark.parametrize("paths", [[2, 1], [1, 1]])
def test_a_document_that_is_no_sorted_set_is_refused(paths: list[int]) -> None:
    with pytest.raises(ValueError, match=r"numpy\.unique"):
        essential_paths([letters("ab"), np.array(paths, np.uint64)])


def test_documents_may_begin_below_the_end_of_the_one_before() -> None:
    assert len(path_sets([letters(""), letters("xy"), letters("ab"), letters("")])) == 4
