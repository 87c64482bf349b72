"""Paths whose content differs from page to page are informative, and make a cluster important."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.templates.essential_paths import PathSet, importance, informativeness, page_paths, path_texts
from tests.html.trees import tree

# A page as (path, content) pairs; few of either, so that pages share them.
pages_of_pairs = st.lists(
    st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=10), max_size=10
)


def path_set(pairs: frozenset[tuple[int, int]]) -> PathSet:
    in_order = sorted(pairs)
    return PathSet(
        np.arange(5, dtype=np.uint64),
        np.array([100 * path + content for path, content in in_order], np.uint64),
        np.array([path for path, _ in in_order], np.uint64),
    )


def twin(pages: list[frozenset[tuple[int, int]]]) -> dict[int, tuple[int, int, Fraction]]:
    """F(X), the number of contents and I(X) as they are written, for each path X."""
    found = {}
    for path in sorted({path for page in pages for path, _ in page}):
        contents = {content for page in pages for other, content in page if other == path}
        pages_with = [sum((path, content) in page for page in pages) for content in contents]
        pages_of_path = sum(any(other == path for other, _ in page) for page in pages)
        told = 1 - Fraction(sum(pages_with), len(pages) * len(contents))
        found[path] = (pages_of_path, len(contents), told)
    return found


@given(pages_of_pairs)
def test_informativeness_is_that_of_its_formula(pages: list[frozenset[tuple[int, int]]]) -> None:
    found = informativeness([path_set(page) for page in pages])
    expected = twin(pages)
    assert found.paths.tolist() == list(expected)
    assert found.pages.tolist() == [pages_of_path for pages_of_path, _, _ in expected.values()]
    assert found.contents.tolist() == [contents for _, contents, _ in expected.values()]
    assert found.informativeness.tolist() == pytest.approx([float(told) for _, _, told in expected.values()])
    assert found.weight.tolist() == pytest.approx([float(n * told) for n, _, told in expected.values()])
    assert all(0 <= told < 1 for told in found.informativeness)


def test_the_worked_example() -> None:
    """M = 4: boilerplate, always different, different on two pages, on one page only."""
    roots = [
        tree(f"<body><nav>Home</nav><h1>{name}</h1>{rest}</body>")
        for name, rest in [("A", "<h2>a</h2>"), ("B", "<h2>b</h2><h3>x</h3>"), ("C", ""), ("D", "")]
    ]
    found = informativeness([page_paths(root) for root in roots])
    words = {
        path: text.tags for root in roots for path, text in path_texts(root, found.paths.tolist()).items()
    }
    told = zip(found.paths.tolist(), found.informativeness.tolist(), found.weight.tolist(), strict=True)
    assert {words[path]: (i, w) for path, i, w in told} == {
        "html/body/nav": (0, 0),
        "html/body/h1": (0.75, 3),
        "html/body/h2": (0.75, 1.5),
        "html/body/h3": (0.75, 0.75),
    }


def test_pages_are_counted_and_not_nodes() -> None:
    page = page_paths(tree("<p>a</p><p>a</p><p>b</p>"))
    found = informativeness([page, page])
    assert (found.pages.tolist(), found.contents.tolist()) == ([2], [2])
    assert found.informativeness.tolist() == [0]


def test_importance_is_the_size_times_the_mean_of_what_is_told() -> None:
    pages = [frozenset({(0, 0), (1, number)}) for number in range(4)]  # I = 0 and 3/4
    assert importance([path_set(page) for page in pages], 40) == pytest.approx(40 * 0.375)


def test_only_the_twenty_heaviest_paths_count() -> None:
    """20 paths that differ from page to page, and many that are the same everywhere."""
    pages = [frozenset({(path, number if path < 20 else 0) for path in range(100)}) for number in range(5)]
    assert importance([path_set(page) for page in pages], 5) == pytest.approx(5 * 0.8)


def test_pages_that_tell_nothing_are_not_important() -> None:
    same = path_set(frozenset({(0, 0), (1, 1)}))
    assert importance([same] * 5, 5) == 0
    assert importance([], 0) == 0
    assert importance([path_set(frozenset())] * 3, 3) == 0
