"""Tables of clusters in a store, and columns of them kept as annotations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Example, Page
from siteloom.core.settings import ParseSettings, StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.operations.discover import (
    AcceptColumnsRequest,
    AcceptColumnsResult,
    DiscoverRequest,
    DiscoverResult,
    accept_columns,
    attribute_name,
    cell_text,
    discover,
    example_cells,
)
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import guide, of_kind
from tests.operations.contexts import CountingProgress, context_of
from tests.store.helpers import put
from tests.store.test_overview import cluster as stored_cluster

RESTAURANTS = of_kind(guide(), "restaurant")[:16]
TRUTH = {one.page.url: one.truth for one in RESTAURANTS}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(StoreSettings(str(tmp_path / "workspace")), create=True)) as opened:
        yield opened


def restaurants(store: Store) -> str:
    """The cluster of the restaurants."""
    put(store, *(one.page for one in RESTAURANTS))
    cluster_store(store, "vertex")
    clusters, _ = store.clusters()
    return max(clusters, key=lambda one: one.size).id


def accepted(store: Store, cluster: str, **names: str) -> AcceptColumnsResult:
    return accept_columns(context_of(store), AcceptColumnsRequest(cluster=cluster, names=names))


def discovered(store: Store, **request: object) -> DiscoverResult:
    return discover(context_of(store), DiscoverRequest(**request))  # type: ignore[arg-type]


def test_columns_are_kept_as_annotations_beside_those_there_are(store: Store) -> None:
    cluster = restaurants(store)
    progress = CountingProgress()
    found = discover(context_of(store, progress=progress), DiscoverRequest(cluster=cluster))
    assert sum(progress.counts) == found.row_count == len(found.addresses) > 10
    annotated = found.addresses[0]
    rating = tuple(TRUTH[annotated.url]["rating"])
    own = Example(store.page(annotated), {"rating": rating})
    store.save_example(annotated, own, "ana")

    result = accepted(store, cluster, name="title", phone="Phone")

    assert set(result.agreement) == {"name", "phone"}
    examples = store.examples(found.site)
    names = {one.page.url: one.values["name"] for one in examples if one.values.get("name")}
    assert len(names) >= 5
    assert all(tuple(texts) == tuple(TRUTH[url]["name"]) for url, texts in names.items())
    (kept,) = [one for one in examples if one.page.url == annotated.url]
    assert tuple(kept.values["rating"]) == rating
    accepted(store, cluster, name="title", phone="Phone")
    assert store.examples(found.site) == examples


def test_the_wrapper_of_accepted_columns_is_watched(store: Store) -> None:
    result = accepted(store, restaurants(store), name="title", phone="Phone")
    assert result.learned is not None
    (wrapper,) = result.learned.wrappers
    assert (wrapper.version, wrapper.is_learned) == (1, True)
    assert store.watched() == {wrapper.name: 1}


def test_an_unknown_column_keeps_nothing(store: Store) -> None:
    cluster = restaurants(store)
    with pytest.raises(UsageError, match="There is no column 'shoe size'"):
        accepted(store, cluster, size="shoe size")
    assert store.examples() == []


def test_two_columns_cannot_have_one_name(store: Store) -> None:
    cluster = restaurants(store)
    with pytest.raises(UsageError, match="Two columns would both be called a b"):
        accepted(store, cluster, **{"a b": "title", "a  b": "Phone"})


def test_of_a_large_cluster_some_pages_are_read(store: Store) -> None:
    cluster = restaurants(store)
    some, whole = discovered(store, cluster=cluster, page_limit=5), discovered(store, cluster=cluster)
    assert (some.pages, some.of_pages, some.row_count) == (5, whole.pages, 5)


def test_parse_limits_are_those_of_the_settings(store: Store) -> None:
    cluster = restaurants(store)
    with pytest.raises(SourceError, match="page too large"):
        discover(context_of(store, parse=ParseSettings(max_bytes=10)), DiscoverRequest(cluster=cluster))


def test_pages_that_cannot_be_read_give_no_table(store: Store) -> None:
    put(store, *(Page(f"https://a.example/{number}", b"") for number in range(3)), site="a.example")
    addresses = [PageAddress("a.example", f"https://a.example/{number}") for number in range(3)]
    with store.clustering({"site": None}) as run:
        store.save_clusters(run.id, [stored_cluster("a.example/1", 0, 1, 2)], addresses)
    with pytest.raises(SourceError, match=r"None of the pages of a.example/1 can be read: ."):
        discovered(store, cluster="a.example/1")


def test_examples_of_a_column_differ_and_are_short(store: Store) -> None:
    table = discovered(store, cluster=restaurants(store)).table
    assert table is not None
    column = next(one for one in table.columns if one.label == "title")
    cells = example_cells(table, column, 3, 10)
    assert len(set(cells)) == 3
    assert all(0 < len(cell) <= 10 for cell in cells)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Opening hours", "opening_hours"),
        ("Price (€)", "price"),
        ("a/b", "a_b"),
        ("€", "€"),
        ("Élan", "élan"),
    ],
)
def test_a_column_names_its_attribute(label: str, name: str) -> None:
    assert attribute_name(label) == name


def test_a_cell_is_one_text() -> None:
    assert cell_text(("a", "b"), 10) == "a, b"
    assert cell_text(("abcdef",), 4) == "abc…"
    assert cell_text((), 4) == ""
