"""The description length of clusters, its parts, templates and deltas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from siteloom.templates.clustering.text_mdl import description_length, path_sets
from siteloom.templates.essential_paths import page_delta, shared_paths
from tests.templates.clustering.path_documents import document, letters, some_documents

EXAMPLE = [letters(text) for text in ("abcde", "abcdf", "abcdg", "vwxy", "vwxyz")]


@pytest.mark.parametrize(
    ("clusters", "templates", "differences", "total"),
    [
        ([[0], [1], [2], [3], [4]], 58.257, 0, 69.867),
        ([[0], [1], [2], [3, 4]], None, None, 65.433),
        ([[0, 1], [2], [3, 4]], None, None, 62.763),
        ([[0, 1, 2], [3, 4]], 22.039, 21.202, 54.850),
        ([[0, 1, 2, 3, 4]], None, None, 97.146),
    ],
)
def test_the_bits_of_a_known_example(
    clusters: list[list[int]], templates: float | None, differences: float | None, total: float
) -> None:
    length = description_length(path_sets(EXAMPLE), clusters)
    assert length.members == pytest.approx(11.610, abs=5e-4)
    assert length.total == pytest.approx(total, abs=2e-3)
    if templates is not None:
        assert length.templates == pytest.approx(templates, abs=5e-4)
        assert length.differences == pytest.approx(differences, abs=5e-4)


def test_nothing_takes_no_bits() -> None:
    assert description_length(path_sets([]), []).total == 0


@pytest.mark.parametrize(
    ("texts", "template"),
    [
        ([], ""),
        (["abc"], "abc"),
        (["ab", "bc"], "b"),
        (["ab", "bc", "cd"], "bc"),
        (["a", "ab", "bc", "c"], ""),
        (["abcde", "abcdf", "abcdg"], "abcd"),
    ],
)
def test_a_template_holds_the_paths_of_more_than_half(texts: list[str], template: str) -> None:
    assert _template([letters(text) for text in texts]).tolist() == letters(template).tolist()


def test_a_delta_says_what_to_add_and_what_to_remove() -> None:
    added, removed = page_delta(letters("abx"), letters("abcd"))
    assert added.tolist() == letters("x").tolist()
    assert removed.tolist() == letters("cd").tolist()


@given(some_documents)
def test_template_and_delta_give_the_document_back(documents: list[frozenset[int]]) -> None:
    template = _template([document(paths) for paths in documents])
    for paths in documents:
        added, removed = page_delta(document(paths), template)
        assert (set(template.tolist()) | set(added.tolist())) - set(removed.tolist()) == paths
        assert not set(added.tolist()) & set(template.tolist())


@given(some_documents)
def test_no_path_taken_in_or_out_makes_a_template_cheaper(documents: list[frozenset[int]]) -> None:
    """By the linear cost that the rule minimises: the entries that are not zero."""
    template = set(_template([document(paths) for paths in documents]).tolist())

    def entries(candidate: set[int]) -> int:
        return len(candidate) + sum(len(candidate ^ paths) for paths in documents)

    for path in range(31):
        assert entries(template) <= entries(template ^ {path})


def _template(documents: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    return shared_paths(documents).paths
