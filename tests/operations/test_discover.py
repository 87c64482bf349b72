"""Tables of clusters in a store, and columns of them kept as annotations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Example, Page
from siteloom.core.settings import StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.operations.discover import (
    TablePages,
    attribute_name,
    cell_text,
    discover_table,
    example_cells,
    keep_columns,
    pages_of,
)
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import guide, of_kind
from tests.store.helpers import put

RESTAURANTS = of_kind(guide(), "restaurant")[:16]
TRUTH = {one.page.url: one.truth for one in RESTAURANTS}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(StoreSettings(str(tmp_path / "workspace")), create=True)) as opened:
        yield opened


def restaurants(store: Store) -> TablePages:
    put(store, *(one.page for one in RESTAURANTS))
    cluster_store(store, "vertex")
    clusters, addresses = store.clusters()
    return pages_of(max(clusters, key=lambda one: one.size), addresses)


def test_columns_are_kept_as_annotations_beside_those_there_are(store: Store) -> None:
    pages = restaurants(store)
    annotated = pages.addresses[0]
    rating = tuple(TRUTH[annotated.url]["rating"])
    own = Example(store.page(annotated), {"rating": rating})
    store.save_example(annotated, own, "ana")
    read = 0

    def count(more: int) -> None:
        nonlocal read
        read += more

    table = discover_table(store, pages, on_page=count)
    assert read == len(table.rows) == len(pages.addresses) > 10

    accepted = keep_columns(store, pages, table, {"name": "title", "phone": "Phone"})

    assert set(accepted.agreement) == {"name", "phone"}
    examples = store.examples(pages.site)
    names = {one.page.url: one.values["name"] for one in examples if one.values.get("name")}
    assert len(names) >= 5
    assert all(tuple(texts) == tuple(TRUTH[url]["name"]) for url, texts in names.items())
    (kept,) = [one for one in examples if one.page.url == annotated.url]
    assert tuple(kept.values["rating"]) == rating
    before = store.examples(pages.site)
    keep_columns(store, pages, table, {"name": "title", "phone": "Phone"})
    assert store.examples(pages.site) == before


def test_an_unknown_column_keeps_nothing(store: Store) -> None:
    pages = restaurants(store)
    table = discover_table(store, pages)
    with pytest.raises(UsageError, match="There is no column 'shoe size'"):
        keep_columns(store, pages, table, {"size": "shoe size"})
    assert store.examples() == []


def test_pages_that_cannot_be_read_give_no_table(store: Store) -> None:
    put(store, *(Page(f"https://a.example/{number}", b"") for number in range(3)), site="a.example")
    addresses = tuple(PageAddress("a.example", f"https://a.example/{number}") for number in range(3))
    with pytest.raises(SourceError, match=r"None of the pages of a.example/1 can be read: ."):
        discover_table(store, TablePages("a.example/1", "a.example", addresses))


def test_examples_of_a_column_differ_and_are_short(store: Store) -> None:
    table = discover_table(store, restaurants(store))
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
