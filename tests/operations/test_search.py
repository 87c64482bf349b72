"""Pages and records of a store: indexed as they come, found, and gone when they are outdated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from siteloom.core.errors import StoreBusy, UsageError
from siteloom.core.file_lock import write_lock
from siteloom.core.model import Page
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.operations.search import (
    IndexUpdate,
    Search,
    SearchResult,
    look_through,
    search_store,
    update_index,
)
from siteloom.store.queries import search_index
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.store.store import Store
from tests.store.helpers import day, put

NAMES = ("Oak", "Elm", "Fir", "Ash", "Yew", "Fern", "Moss", "Reed")


def plant(number: int, about: str = "a plant of the north", on_day: int = 0) -> Page:
    text = (
        f"<title>{NAMES[number]} - Garden</title><body><div>Search our garden catalogue</div>"
        f"<h1>{NAMES[number]}</h1><p>It is {about}.</p></body>"
    )
    return Page(f"http://a.example/{NAMES[number]}", text.encode(), day(on_day))


def row(name: str, light: str, site: str = "a", wrapper: str = "plants") -> ExtractedRow:
    url = f"http://{site}.example/{name}"
    content = {"url": url, "wrapper": wrapper, "values": {"name": [name], "light": [light]}}
    return ExtractedRow(url, wrapper, 1, json.dumps(content))


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


def test_words_joined_by_marks_are_words_like_others(garden: Store) -> None:
    update_index(garden)
    assert found(garden, "full,elm/shade") == [("record", "Elm")]
    result = search_store(garden, Search("title:elm"))
    assert not result.has_all_words
    assert {hit.url for hit in result.hits} == {"http://a.example/Elm"}
    assert found(garden, '"elm shade"') == []


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
    update = update_index(store)
    assert update._replace(failures={}) == IndexUpdate(added_pages=1, failures={})
    assert list(update.failures.values()) == [1]
    assert update_index(store) == IndexUpdate()
    (run,) = [run for run in store.runs(10) if run.verb == "search"]
    assert [failure.url for failure in store.failures(run.id)] == ["http://a.example/bad"]
    assert found(store, "oak") == [("page", "Oak")]


def test_pages_of_a_site_are_indexed_anew_when_it_has_grown_to_the_double(store: Store) -> None:
    put(store, *(plant(number) for number in range(4)))
    assert update_index(store).added_pages == 4
    assert len(found(store, "catalogue")) == 4
    put(store, plant(4))
    put(store, Page("http://b.example/1", b"<p>catalogue of b", day(0)))
    assert update_index(store)[:2] == (2, 0)
    put(store, *(plant(number) for number in range(5, 8)))
    assert update_index(store)[:2] == (8, 5)
    assert found(store, "catalogue") == [("page", "http://b.example/1")]
    assert all(found(store, name) == [("page", name)] for name in NAMES)
    put(store, plant(0, "a plant of the south", on_day=1))
    assert update_index(store)[:2] == (1, 1)


def test_indexing_anew_goes_on_when_it_was_cut_short(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "_WRITTEN_AT_A_TIME", 1)
    put(store, *(plant(number) for number in range(4)))
    update_index(store)
    put(store, *(plant(number) for number in range(4, 8)))

    def cut_short(seen: list[int], after: int) -> Callable[[int], None]:
        def on_page(count: int) -> None:
            seen.append(count)
            if len(seen) > after:
                raise KeyboardInterrupt

        return on_page

    for after in (2, 6, 6):
        with pytest.raises(KeyboardInterrupt):
            update_index(store, on_page=cut_short([], after))
    assert not store.search_index.is_current()
    update_index(store)
    assert found(store, "catalogue") == []
    assert all(found(store, name) == [("page", name)] for name in NAMES)


def test_a_run_of_one_site_leaves_the_records_of_others(store: Store) -> None:
    for name in ("a", "b"):
        put(store, Page(f"http://{name}.example/1", b"<p>x", day(0)))
        store.save_wrapper(name, f"{name}.example", "{}", "learn")

    def run(site: str | None, **lights: str) -> None:
        rows = [row("1", light, site=site, wrapper=site) for site, light in lights.items()]
        with store.extracting({"site": site and f"{site}.example"}, f"{site} {lights}") as extraction:
            extraction.commit(0, rows, [], {})

    run(None, a="sun", b="shade", c="dusk")
    assert update_index(store).added_records == 3
    run("b", b="moon")
    assert update_index(store)[2:4] == (1, 1)
    for light, site in {"sun": "a", "moon": "b", "dusk": "c"}.items():
        (hit,) = search_store(store, Search(light)).hits
        assert hit.site == f"{site}.example"
    assert found(store, "shade") == []
    run("b", b="rain")
    run("a", a="snow")
    assert update_index(store)[2:4] == (2, 2)
    assert [len(found(store, light)) for light in ("sun", "moon", "rain", "snow", "dusk")] == [0, 0, 1, 1, 1]
    run(None, a="sun")
    assert update_index(store)[2:4] == (1, 3)


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


def test_hits_are_looked_through_in_pieces_and_counted(garden: Store) -> None:
    update_index(garden)
    whole = look_through(garden, Search("oak"), 0, 10)
    assert sorted(hit.kind for hit in whole.hits) == ["page", "record"]
    assert (whole.has_all_words, whole.looked_through) == (True, 2)
    assert whole.facets == ({"a.example": 2}, {}, {"page": 1, "record": 1}, {"name": 1})
    pieces = [look_through(garden, Search("oak"), first, 1) for first in range(3)]
    assert [hit for piece in pieces for hit in piece.hits] == list(whole.hits)
    assert {piece.facets.kind["page"] for piece in pieces} == {1}
    some = look_through(garden, Search("oak zebra"), 0, 10)
    assert (some.has_all_words, some.looked_through) == (False, 2)


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
