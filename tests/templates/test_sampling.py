"""Sampling: the pages that together show most of what differs, the most useful first."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import siteloom
from siteloom.apps.demo.sites import directory_site
from siteloom.core.errors import UsageError
from siteloom.core.model import Page
from siteloom.core.settings import ParseSettings, StoreSettings
from siteloom.operations.cluster import cluster_store, sample_cluster
from siteloom.operations.page_import import import_pages
from siteloom.sources.open_sources import open_source
from siteloom.store.workspace_folder import open_store
from siteloom.templates.essential_paths import PathSet
from siteloom.templates.sampling import sample, sample_order, sample_stream

# A page as (path, content) pairs; few of either, so that pages share them. None does not parse.
Pairs = frozenset[tuple[int, int]]
pages_of_pairs = st.lists(
    st.none() | st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=8), max_size=8
)

UNPARSABLE = Page("https://shop.example/empty", b"")


def path_set(pairs: Pairs) -> PathSet:
    in_order = sorted(pairs)
    return PathSet(
        np.arange(5, dtype=np.uint64),
        np.array([100 * path + content for path, content in in_order], np.uint64),
        np.array([path for path, _ in in_order], np.uint64),
    )


def path_sets(pages: list[Pairs | None]) -> list[PathSet | None]:
    return [None if page is None else path_set(page) for page in pages]


def weights(pages: list[Pairs | None]) -> dict[int, Fraction]:
    """w(X) = F(X) I(X) as it is written, for each path X."""
    usable = [page for page in pages if page is not None]
    found = {}
    for path in {path for page in usable for path, _ in page}:
        contents = {content for page in usable for other, content in page if other == path}
        pages_with = sum((path, content) in page for page in usable for content in contents)
        pages_of_path = sum(any(other == path for other, _ in page) for page in usable)
        found[path] = pages_of_path * (1 - Fraction(pages_with, len(usable) * len(contents)))
    return found


def paths_of(page: Pairs | None) -> set[int]:
    return {path for path, _ in page or ()}


def cover(
    pages: list[Pairs | None], among: list[int], seen: set[int]
) -> list[tuple[int, Fraction, Fraction]]:
    """The greedy choice as it is written, until all is seen: page, what it adds, the share seen by then."""
    weight = weights(pages)
    picks: list[tuple[int, Fraction, Fraction]] = []
    while True:
        gains = [sum((weight[path] for path in paths_of(pages[n]) - seen), Fraction(0)) for n in among]
        gain = max(gains, default=Fraction(0))
        if gain == 0:
            return picks
        best = among[gains.index(gain)]
        seen = seen | paths_of(pages[best])
        unseen = sum((weight[path] for path in weight.keys() - seen), Fraction(0))
        picks.append((best, gain, 1 - unseen / sum(weight.values(), Fraction(0))))


def twin(pages: list[Pairs | None], k: int, annotated: set[int]) -> list[tuple[int, object, object]]:
    """Cover after cover of the pages that are left, and what no cover takes in its order; in exact numbers.

    Only the first cover knows what was annotated, and only its pages add anything.
    """
    left = [n for n, page in enumerate(pages) if page is not None and n not in annotated]
    order: list[tuple[int, object, object]] = []
    for page, gain, covered in cover(pages, left, {path for n in annotated for path in paths_of(pages[n])}):
        order.append((page, pytest.approx(float(gain)), pytest.approx(float(covered))))
        left.remove(page)
    while left:
        again = [page for page, _, _ in cover(pages, left, set())] or left
        order += [(page, 0, 1) for page in again]
        left = [page for page in left if page not in again]
    return order[:k]


@given(pages_of_pairs, st.integers(1, 9), st.data())
def test_the_choice_is_that_of_the_greedy_algorithm(
    pages: list[Pairs | None], k: int, data: st.DataObject
) -> None:
    annotated = data.draw(st.sets(st.integers(0, len(pages) - 1))) if pages else set()
    order = sample_order(path_sets(pages), k, annotated)
    found = [(picked.page, picked.gain, picked.covered) for picked in order]
    assert found == twin(pages, k, annotated)


@given(pages_of_pairs, st.integers(1, 9), st.data())
def test_as_many_pages_are_given_as_are_asked_for_if_so_many_parse(
    pages: list[Pairs | None], k: int, data: st.DataObject
) -> None:
    annotated = data.draw(st.sets(st.integers(0, len(pages) - 1))) if pages else set()
    usable = {place for place, page in enumerate(pages) if page is not None} - annotated
    order = [picked.page for picked in sample_order(path_sets(pages), k, annotated)]
    assert len(order) == len(set(order)) == min(k, len(usable))
    assert usable.issuperset(order)


@given(pages_of_pairs, st.integers(1, 9))
def test_gains_fall_and_what_is_covered_grows_up_to_all(pages: list[Pairs | None], k: int) -> None:
    order = sample_order(path_sets(pages), k)
    gains = [picked.gain for picked in order]
    assert gains == pytest.approx(sorted(gains, reverse=True))
    useful = sum(gain > 0 for gain in gains)
    covered = [picked.covered for picked in order[:useful]]
    assert covered == sorted(set(covered))
    assert [(picked.gain, picked.covered) for picked in order[useful:]] == [(0, 1)] * (len(order) - useful)
    assert len({picked.page for picked in order}) == len(order)
    everything = sample_order(path_sets(pages), len(pages) + 1)
    assert order == everything[:k]
    assert not everything or everything[-1].covered == 1


@given(pages_of_pairs.filter(bool), st.integers(1, 9))
def test_to_annotate_the_first_useful_pages_leaves_the_others_in_order(
    pages: list[Pairs | None], k: int
) -> None:
    order = sample_order(path_sets(pages), len(pages))
    annotated = [picked.page for picked in order[:k] if picked.gain > 0]
    assert sample_order(path_sets(pages), len(pages), annotated) == order[len(annotated) :]


def html_pages(*bodies: str) -> list[Page]:
    return [Page(f"https://shop.example/{n}", body.encode()) for n, body in enumerate(bodies)]


def test_the_worked_example() -> None:
    """M = 4: boilerplate weighs nothing, h1 3, h2 on two pages 1.5, h3 on one page 0.75."""
    pages = html_pages(
        "<nav>Home</nav><h1>A</h1><h2>a</h2>",
        "<nav>Home</nav><h1>B</h1>",
        "<nav>Home</nav><h1>C</h1><h2>c</h2>",
        "<nav>Home</nav><h1>D</h1><h3>x</h3>",
    )
    found = sample_stream(iter(pages), 10)
    assert [(pick.page, pick.gain) for pick in found.order] == [(0, 4.5), (3, 0.75), (2, 0), (1, 0)]
    assert [pick.covered for pick in found.order] == pytest.approx([4.5 / 5.25, 1, 1, 1])
    assert found.covers_all
    assert sample_stream(iter(pages), 2).covers_all
    assert not sample_stream(iter(pages), 1).covers_all
    assert siteloom.sample(pages) == [0, 3, 2, 1]
    assert siteloom.sample(pages, k=3) == [0, 3, 2]
    assert siteloom.sample(pages, k=1) == [0]


def test_an_annotated_page_is_seen_already() -> None:
    pages = html_pages("<h1>A</h1><h2>a</h2>", "<h1>B</h1>", "<h1>C</h1><h2>c</h2><h3>x</h3>", "<h1>D</h1>")
    assert sample(pages) == [2, 0, 1, 3]
    assert sample(pages, annotated=[0]) == [2, 1, 3]
    assert sample(pages, annotated=[2]) == [0, 1, 3]
    order = sample_stream(pages, 10, {"https://shop.example/0", "https://elsewhere.example/"}).order
    assert [(pick.page, pick.gain, pick.covered) for pick in order] == [(2, 0.75, 1), (1, 0, 1), (3, 0, 1)]
    assert sample(pages, annotated=[0, 1, 2, 3]) == []


def test_pages_that_do_not_parse_count_for_nothing() -> None:
    pages = html_pages("<h1>A</h1>", "<h1>B</h1><h2>b</h2>", "<h1>C</h1>")
    with_others = [UNPARSABLE, *pages, UNPARSABLE]
    assert sample(with_others) == [place + 1 for place in sample(pages)] == [2, 1, 3]
    assert sample(with_others, annotated=[0]) == [2, 1, 3]
    found, alone = sample_stream(with_others, 10), sample_stream(pages, 10)
    assert [pick.gain for pick in found.order] == [pick.gain for pick in alone.order]
    assert [failure.reason for failure in found.failures] == ["empty page"] * 2
    assert sample_stream(pages, 10, limits=ParseSettings(max_tags=1)).order == []


@pytest.mark.parametrize(
    "bodies", [(), ("<h1>A</h1>",), ("<h1>A</h1>", "<h1>A</h1>"), ("<h1></h1>", "<h1></h1>")]
)
def test_where_nothing_differs_pages_come_in_their_order_and_add_nothing(bodies: tuple[str, ...]) -> None:
    pages = html_pages(*bodies)
    assert sample(pages) == list(range(len(bodies)))
    found = sample_stream(pages, 10)
    assert [(pick.gain, pick.covered) for pick in found.order] == [(0, 1)] * len(bodies)
    assert found.covers_all


def test_sums_that_differ_by_rounding_alone_are_equal() -> None:
    """Two kinds of pages with paths of the same weights, added up in the order 1, 2, 3 and 3, 2, 1."""
    contents = iter(range(100))

    def page(*paths: int) -> PathSet:
        return path_set(frozenset((path, next(contents)) for path in paths))

    ascending = [page(1, 2, 3), page(2, 3), page(3)]
    descending = [page(4, 5, 6), page(4, 5), page(4)]
    assert [pick.page for pick in sample_order([*ascending, *descending, page()], 2)] == [0, 3]
    assert [pick.page for pick in sample_order([*descending, *ascending, page()], 2)] == [0, 3]


@pytest.mark.parametrize("k", [0, -1])
def test_a_number_of_pages_that_is_none(k: int) -> None:
    expected = f"The number of pages to choose must be at least 1, not {k}."
    with pytest.raises(UsageError, match=expected):
        sample([], k)
    with pytest.raises(UsageError, match=expected):
        sample_order([], k)


@pytest.mark.parametrize("page", [-1, 2])
def test_an_annotated_page_that_is_not_there(page: int) -> None:
    with pytest.raises(UsageError, match=f"There is no page {page} to be annotated among 2 pages"):
        sample(html_pages("<p>a", "<p>b"), annotated=[page])


def test_an_annotated_page_of_a_large_cluster_is_always_looked_at(tmp_path: Path) -> None:
    """Of 250 pages 100 are looked at; the one with a note is not among them unless it was annotated."""
    folder = tmp_path / "pages"
    folder.mkdir()
    for number in range(250):
        note = "sold out" if number == 4 else ""
        body = f"<body><h1>{number}</h1><p>About {number}</p><i>{note}</i></body>"
        (folder / f"{number:03}.html").write_text(body, encoding="utf-8")
    store = open_store(StoreSettings(str(tmp_path / "workspace")), create=True)
    try:
        import_pages(store, [open_source(folder)])
        cluster_store(store, "vertex")
        (cluster,), addresses = store.clusters()
        plain = sample_cluster(store, cluster, addresses, 5)
        noted = next(page.url for page in addresses if page.url.endswith("004.html"))
        assert len(plain.urls) == 100
        assert noted not in plain.urls
        assert [pick.gain > 0 for pick in plain.order] == [True, False, False, False, False]
        after = sample_cluster(store, cluster, addresses, 5, {noted})
        assert len(after.urls) == 101
        assert noted in after.urls
        assert [pick.gain for pick in after.order] == [0] * 5
        assert noted not in {after.urls[pick.page] for pick in after.order}
    finally:
        store.close()


def test_the_first_pages_of_a_site_show_nearly_all_of_it() -> None:
    pages = [page.page for page in directory_site() if page.kind == "restaurant"]
    found = sample_stream(pages, 10)
    assert len(found.order) == 10
    assert found.order[-1].covered > 0.95
    assert [pick.page for pick in found.order] == sample(pages)
