"""Pages and records of a store: indexed as they come, found, and gone when they are outdated."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from siteloom.errors import StoreBusy, UsageError
from siteloom.model import Page
from siteloom.searching import IndexUpdate, Search, SearchResult, search_store, update_index
from siteloom.store import WITHDRAWN, ExtractedRow, Store
from siteloom.store.lock import write_lock

from .store.helpers import day, put

NAMES = ("Oak", "Elm", "Fir", "Ash", "Yew", "Fern", "Moss", "Reed")


def plant(number: int, about: str = "a plant of the north", on_day: int = 0) -> Page:
    text = (
        f"<title>{NAMES[number]} - Garden</title><body><div>Search our garden catalogue</div>"
        f"<h1>{NAMES[number]}</h1><p>It is {about}.</p></body>"
    )
    return Page(f"http://a.example/{NAMES[number]}", text.encode(), day(on_day))


def row(name: str, light: str) -> ExtractedRow:
    url = f"http://a.example/{name}"
    content = {"url": url, "wrapper": "plants", "values": {"name": [name], "light": [light]}}
    return ExtractedRow(url, "plants", 1, json.dumps(content))


def extract(store: Store, rows: Sequence[tuple[str, str]]) -> None:
    with store.extracting({}, str(rows)) as extraction:
        extraction.commit(0, [row(*found) for found in rows], [], {})


def found(store: Store, text: str, **options: str) -> list[tuple[str, str]]:
    result = search_store(store, Search(text, **options))  # type: ignore[arg-type]
    return [(hit.kind, hit.url.removeprefix("http://a.example/")) for hit in result.hits]


@pytest.fixture
def garden(store: Store) -> Store:
    put(store, *(plant(number) for number in range(len(NAMES))))
    store.save_wrapper("plants", "a.example", "{}", "learn")
    extract(store, [("Oak", "sun"), ("Elm", "full shade")])
    return store


def test_pages_without_template_and_records_are_found(garden: Store) -> None:
    assert update_index(garden) == IndexUpdate(added_pages=8, added_records=2)
    assert sorted(found(garden, "oak")) == [("page", "Oak"), ("record", "Oak")]
    assert found(garden, "shade") == [("record", "Elm")]
    assert found(garden, "catalogue") == []
    assert found(garden, "catalogue oak -sun") == [("page", "Oak")]
    (record,) = search_store(garden, Search("elm", attribute="name")).hits
    assert record.values == {"name": ("Elm",), "light": ("full shade",)}
    assert (record.site, record.title.marked("[", "]"), record.attributes) == (
        "a.example",
        "[Elm]",
        ("name",),
    )
    assert (record.snippet.text, record.snippet.places) == ("light: full shade", ())


def test_what_has_all_words_comes_alone_and_else_what_has_some(garden: Store) -> None:
    update_index(garden)
    assert search_store(garden, Search("elm shade")).has_all_words
    result = search_store(garden, Search("elm zebra"))
    assert not result.has_all_words
    assert {hit.url for hit in result.hits} == {"http://a.example/Elm"}
    assert search_store(garden, Search("zebra")) == SearchResult((), False)


def test_only_what_is_new_is_indexed_and_what_is_outdated_goes(garden: Store) -> None:
    update_index(garden)
    runs = len(garden.runs(100))
    assert update_index(garden) == IndexUpdate()
    put(garden, plant(0, "a plant of the south", on_day=1), plant(1, on_day=1))
    assert found(garden, "south") == []
    assert update_index(garden) == IndexUpdate(added_pages=1, removed_pages=1)
    assert found(garden, "south") == [("page", "Oak")]
    assert ("page", "Oak") not in found(garden, "north")
    extract(garden, [("Oak", "sun"), ("Fir", "shade")])
    assert update_index(garden) == IndexUpdate(added_records=1, removed_records=1)
    assert found(garden, "shade") == [("record", "Fir")]
    assert [run.verb for run in garden.runs(100)[: len(garden.runs(100)) - runs]] == [
        "search",
        "extract",
        "search",
        "ingest",
    ]


def test_records_of_a_wrapper_that_is_withdrawn_go_and_come_back(garden: Store) -> None:
    update_index(garden)
    garden.save_wrapper("plants", "a.example", "{}", WITHDRAWN)
    assert update_index(garden) == IndexUpdate(removed_records=2)
    assert found(garden, "shade") == []
    garden.save_wrapper("plants", "a.example", "{}", "learn")
    assert update_index(garden) == IndexUpdate(added_records=2)
    assert found(garden, "shade") == [("record", "Elm")]


def test_a_page_that_cannot_be_read_is_looked_at_once(store: Store) -> None:
    put(store, plant(0), Page("http://a.example/bad", b"<div>" * 3_000, day(0)))
    assert update_index(store) == IndexUpdate(added_pages=2)
    assert update_index(store) == IndexUpdate()
    (run,) = [run for run in store.runs(10) if run.verb == "search"]
    assert [failure.url for failure in store.failures(run.id)] == ["http://a.example/bad"]
    assert found(store, "oak") == [("page", "Oak")]


def test_while_another_process_writes_one_can_search(garden: Store) -> None:
    update_index(garden)
    put(garden, plant(0, "a plant of the south", on_day=1))
    with write_lock(garden.folder):
        with pytest.raises(StoreBusy):
            update_index(garden)
        assert ("page", "Oak") in found(garden, "north oak")


def test_one_can_search_while_pages_are_indexed(garden: Store) -> None:
    update_index(garden)
    put(garden, *(plant(number, "a plant of the south", on_day=1) for number in range(8)))
    seen = []
    update_index(garden, on_page=lambda _: seen.append(found(garden, "oak")))
    assert len(seen) == 16  # each is counted, then indexed
    assert all(("record", "Oak") in hits for hits in seen)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (Search("x", site="b.example"), "There is no site b.example to search in: there are a.example."),
        (Search("x", cluster="a/1"), "There is no cluster a/1: siteloom cluster lists them."),
        (
            Search("x", attribute="colour"),
            "no attribute colour to search in: there are light, name.",
        ),
        (
            Search("x", attribute="name", kind="page"),
            "Only records have attributes: leave out",
        ),
        (Search("-x"), "There is no word to look for besides what is excluded: give at least one."),
    ],
)
def test_mistakes_are_told_in_a_sentence(garden: Store, search: Search, message: str) -> None:
    update_index(garden)
    with pytest.raises(UsageError) as told:
        search_store(garden, search)
    assert message in str(told.value)
