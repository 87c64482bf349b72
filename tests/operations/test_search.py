"""Pages and records of a store: indexed as they come, found, and gone when they are outdated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import pytest

from siteloom.core.errors import StoreBusy, UsageError
from siteloom.core.file_lock import write_lock
from siteloom.core.model import Page
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.operations.search import Facets, SearchRequest, search, update_index
from siteloom.store.queries import search_index
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.store.store import Store
from tests.operations.contexts import CountingProgress, context_of
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
    result = search(context_of(store), SearchRequest(text=text, **options))  # type: ignore[arg-type]
    return [(hit.kind, hit.url.removeprefix("http://a.example/")) for hit in result.hits]


def updated(store: Store) -> dict[str, object]:
    """What an update of the index counts, without what is zero."""
    update = update_index(context_of(store))
    return {name: value for name, value in asdict(update).items() if value and name != "run"}


def page_counts(store: Store) -> tuple[int, int]:
    update = update_index(context_of(store))
    return update.added_pages, update.removed_pages


def record_counts(store: Store) -> tuple[int, int]:
    update = update_index(context_of(store))
    return update.added_records, update.removed_records


@pytest.fixture
def garden(store: Store) -> Store:
    put(store, *(plant(number) for number in range(len(NAMES))))
    store.save_wrapper("plants", "a.example", "{}", "learn")
    extract(store, [("Oak", "sun"), ("Elm", "full shade")])
    return store


def test_pages_without_template_and_records_are_found(garden: Store) -> None:
    assert updated(garden) == {"added_pages": 8, "added_records": 2}
    assert sorted(found(garden, "oak")) == [("page", "Oak"), ("record", "Oak")]
    assert found(garden, "shade") == [("record", "Elm")]
    assert found(garden, "catalogue") == []
    assert found(garden, "catalogue oak -sun") == [("page", "Oak")]
    (record,) = search(context_of(garden), SearchRequest(text="elm", attribute="name")).hits
    assert record.values == {"name": ("Elm",), "light": ("full shade",)}
    assert (record.site, record.title.marked("[", "]"), record.attributes) == (
        "a.example",
        "[Elm]",
        ("name",),
    )
    assert (record.snippet.text, record.snippet.places) == ("light: full shade", ())


def test_words_joined_by_marks_are_words_like_others(garden: Store) -> None:
    update_index(context_of(garden))
    assert found(garden, "full,elm/shade") == [("record", "Elm")]
    result = search(context_of(garden), SearchRequest(text="title:elm"))
    assert not result.has_all_words
    assert {hit.url for hit in result.hits} == {"http://a.example/Elm"}
    assert found(garden, '"elm shade"') == []


def test_what_has_all_words_comes_alone_and_else_what_has_some(garden: Store) -> None:
    update_index(context_of(garden))
    assert search(context_of(garden), SearchRequest(text="elm shade")).has_all_words
    result = search(context_of(garden), SearchRequest(text="elm zebra"))
    assert not result.has_all_words
    assert {hit.url for hit in result.hits} == {"http://a.example/Elm"}
    nothing = search(context_of(garden), SearchRequest(text="zebra"))
    assert (nothing.hits, nothing.has_all_words) == ((), False)


def test_only_what_is_new_is_indexed_and_what_is_outdated_goes(garden: Store) -> None:
    update_index(context_of(garden))
    runs = len(garden.runs(100))
    assert updated(garden) == {}
    put(garden, plant(0, "a plant of the south", on_day=1), plant(1, on_day=1))
    assert found(garden, "south") == []
    assert updated(garden) == {"added_pages": 1, "removed_pages": 1}
    assert found(garden, "south") == [("page", "Oak")]
    assert ("page", "Oak") not in found(garden, "north")
    extract(garden, [("Oak", "sun"), ("Fir", "shade")])
    assert updated(garden) == {"added_records": 1, "removed_records": 1}
    assert found(garden, "shade") == [("record", "Fir")]
    assert [run.verb for run in garden.runs(100)[: len(garden.runs(100)) - runs]] == [
        "search",
        "extract",
        "search",
        "ingest",
    ]


def test_records_of_a_wrapper_that_is_withdrawn_go_and_come_back(garden: Store) -> None:
    update_index(context_of(garden))
    garden.save_wrapper("plants", "a.example", "{}", WITHDRAWN)
    assert updated(garden) == {"removed_records": 2}
    assert found(garden, "shade") == []
    garden.save_wrapper("plants", "a.example", "{}", "learn")
    assert updated(garden) == {"added_records": 2}
    assert found(garden, "shade") == [("record", "Elm")]


def test_a_page_that_cannot_be_read_is_looked_at_once(store: Store) -> None:
    put(store, plant(0), Page("http://a.example/bad", b"<div>" * 3_000, day(0)))
    update = update_index(context_of(store))
    assert (update.added_pages, update.removed_pages, update.added_records) == (1, 0, 0)
    assert list(update.failures.values()) == [1]
    assert updated(store) == {}
    (run,) = [run for run in store.runs(10) if run.verb == "search"]
    assert [failure.url for failure in store.failures(run.id)] == ["http://a.example/bad"]
    assert found(store, "oak") == [("page", "Oak")]


def test_pages_of_a_site_are_indexed_anew_when_it_has_grown_to_the_double(store: Store) -> None:
    put(store, *(plant(number) for number in range(4)))
    assert update_index(context_of(store)).added_pages == 4
    assert len(found(store, "catalogue")) == 4
    put(store, plant(4))
    put(store, Page("http://b.example/1", b"<p>catalogue of b", day(0)))
    assert page_counts(store) == (2, 0)
    put(store, *(plant(number) for number in range(5, 8)))
    assert page_counts(store) == (8, 5)
    assert found(store, "catalogue") == [("page", "http://b.example/1")]
    assert all(found(store, name) == [("page", name)] for name in NAMES)
    put(store, plant(0, "a plant of the south", on_day=1))
    assert page_counts(store) == (1, 1)


class CutShort(CountingProgress):
    """Is cancelled after some steps."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def advance(self, count: int = 1) -> None:
        super().advance(count)
        if len(self.counts) > self.after:
            raise KeyboardInterrupt


def test_indexing_anew_goes_on_when_it_was_cut_short(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "_WRITTEN_AT_A_TIME", 1)
    put(store, *(plant(number) for number in range(4)))
    update_index(context_of(store))
    put(store, *(plant(number) for number in range(4, 8)))

    for after in (2, 6, 6):
        with pytest.raises(KeyboardInterrupt):
            update_index(context_of(store, progress=CutShort(after)))
    assert not store.search_index.is_current()
    update_index(context_of(store))
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
    assert update_index(context_of(store)).added_records == 3
    run("b", b="moon")
    assert record_counts(store) == (1, 1)
    for light, site in {"sun": "a", "moon": "b", "dusk": "c"}.items():
        (hit,) = search(context_of(store), SearchRequest(text=light)).hits
        assert hit.site == f"{site}.example"
    assert found(store, "shade") == []
    run("b", b="rain")
    run("a", a="snow")
    assert record_counts(store) == (2, 2)
    assert [len(found(store, light)) for light in ("sun", "moon", "rain", "snow", "dusk")] == [0, 0, 1, 1, 1]
    run(None, a="sun")
    assert record_counts(store) == (1, 3)


def test_while_another_process_writes_one_can_search(garden: Store) -> None:
    update_index(context_of(garden))
    put(garden, plant(0, "a plant of the south", on_day=1))
    with write_lock(garden.folder):
        with pytest.raises(StoreBusy):
            update_index(context_of(garden))
        assert ("page", "Oak") in found(garden, "north oak")


def test_one_can_search_while_pages_are_indexed(garden: Store) -> None:
    update_index(context_of(garden))
    put(garden, *(plant(number, "a plant of the south", on_day=1) for number in range(8)))
    seen: list[list[tuple[str, str]]] = []

    class Searching(CountingProgress):
        def advance(self, count: int = 1) -> None:
            super().advance(count)
            seen.append(found(garden, "oak"))

    update_index(context_of(garden, progress=Searching()))
    assert len(seen) == 16  # each is counted, then indexed
    assert all(("record", "Oak") in hits for hits in seen)


def test_hits_are_looked_through_in_pieces_and_counted(garden: Store) -> None:
    update_index(context_of(garden))
    whole = search(context_of(garden), SearchRequest(text="oak"))
    assert sorted(hit.kind for hit in whole.hits) == ["page", "record"]
    assert (whole.has_all_words, whole.total) == (True, 2)
    assert whole.facets == Facets(
        site={"a.example": 2}, cluster={}, kind={"page": 1, "record": 1}, attribute={"name": 1}
    )
    pieces = [
        search(context_of(garden), SearchRequest(text="oak", first=first, count=1)) for first in range(3)
    ]
    assert [hit for piece in pieces for hit in piece.hits] == list(whole.hits)
    assert {piece.facets.kind["page"] for piece in pieces} == {1}
    some = search(context_of(garden), SearchRequest(text="oak zebra"))
    assert (some.has_all_words, some.total) == (False, 2)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            SearchRequest(text="x", site="b.example"),
            "There is no site b.example to search in: there are a.example.",
        ),
        (SearchRequest(text="x", cluster="a/1"), "There is no cluster a/1: siteloom cluster lists them."),
        (
            SearchRequest(text="x", attribute="colour"),
            "no attribute colour to search in: there are light, name.",
        ),
        (
            SearchRequest(text="x", attribute="name", kind="page"),
            "Only records have attributes: leave out",
        ),
        (
            SearchRequest(text="-x"),
            "There is no word to look for besides what is excluded: give at least one.",
        ),
    ],
)
def test_mistakes_are_told_in_a_sentence(garden: Store, asked: SearchRequest, message: str) -> None:
    update_index(context_of(garden))
    with pytest.raises(UsageError) as told:
        search(context_of(garden), asked)
    assert message in str(told.value)


def test_hits_are_all_only_when_everything_is_indexed(garden: Store) -> None:
    before = search(context_of(garden), SearchRequest(text="oak"))
    assert (before.total, before.is_limited, before.is_index_current) == (0, False, False)
    update_index(context_of(garden))
    after = search(context_of(garden), SearchRequest(text="oak"))
    assert (after.total, after.is_limited, after.is_index_current) == (2, False, True)
