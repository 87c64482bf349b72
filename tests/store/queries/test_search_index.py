"""The search index in both databases: what is in it, what is found, and in which order."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import unidata_version

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, select, text

from siteloom.core.errors import StoreError, UsageError
from siteloom.core.model import Cluster, IndexDocument, Page, Passage, Template
from siteloom.core.word_tokenizer import terms
from siteloom.extraction.search_query import parse_query
from siteloom.store import schema
from siteloom.store.queries import search_index, search_terms
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import day, put

SITE = 'it\'s; \\ my % "site" \N{SNAKE}'
ANY_TEXT = "a\0b \ud800 c\udfff \N{SNAKE} \x1b \u2028 'quoted' \\u0041 \\ \" {title} : * "


def add_pages(store: Store, pages: Mapping[str, Sequence[Passage]], site: str | None = None) -> None:
    """Put pages into the store and index them by the texts that are given."""
    put(store, *(Page(url, url.encode(), day(0)) for url in pages), site=site)
    index = store.search_index
    index.make_ready()
    index.add_pages(
        (place, IndexDocument("page", place.site, place.url, tuple(pages[place.url])))
        for place in index.unindexed_pages()
    )


def record(url: str, **values: str) -> IndexDocument:
    passages = tuple(Passage(text, "heading", attribute) for attribute, text in values.items())
    return IndexDocument("record", "a.example", url, passages)


def found(store: Store, query: str, **options: Any) -> list[str]:
    wanted, unwanted = parse_query(query)
    return [one.document.url for one in store.search_index.search(wanted, unwanted, **options)]


def texts(**by_url: str) -> dict[str, list[Passage]]:
    return {f"http://a.example/{name}": [Passage(text, "text")] for name, text in by_url.items()}


def urls(*names: str) -> list[str]:
    return [f"http://a.example/{name}" for name in names]


def test_all_words_must_be_there_phrases_as_such_and_no_unwanted_one(store: Store) -> None:
    add_pages(store, texts(a="blue fern garden", b="fern of the blue sky", c="Crème brûlée", d="東京タワー"))
    assert set(found(store, "FERN blue")) == set(urls("a", "b"))
    assert found(store, '"blue fern"') == urls("a")
    assert found(store, "fern -garden") == urls("b")
    assert found(store, 'fern -"blue fern"') == urls("b")
    assert found(store, "creme") == found(store, "BRÛLÉE") == urls("c")
    assert found(store, "京タ") == urls("d")
    assert found(store, "タ京") == []
    assert found(store, "fern creme") == []
    assert set(found(store, "fern creme", takes_any=True)) == set(urls("a", "b", "c"))
    assert set(found(store, "fern creme -sky", takes_any=True)) == set(urls("a", "c"))


def test_documents_come_back_as_they_were(store: Store) -> None:
    given = [Passage("Crème Brûlée", "title"), Passage(ANY_TEXT, "text"), Passage("x\ny", "common")]
    add_pages(store, {"http://a.example/a": given})
    (one,) = store.search_index.search((("creme",),))
    assert one.document == IndexDocument("page", "a.example", "http://a.example/a", tuple(given))
    assert one.cluster is None
    assert one.score > 0


def test_fields_and_rare_words_decide_the_order(store: Store) -> None:
    filler = "some words that tell nothing of it at all"
    pages = {
        f"http://a.example/{field}": [
            Passage(f"fern {filler}" if field == other else filler, other)
            for other in ("title", "heading", "text", "common")
        ]
        for field in ("common", "text", "heading", "title")
    }
    add_pages(store, pages | texts(x=filler, y=filler, z=f"{filler} blue", w=f"{filler} {filler}"))
    assert found(store, "fern") == urls("title", "heading", "text", "common")
    assert found(store, "words blue", takes_any=True)[0] == urls("z")[0]


def test_phrases_do_not_go_from_one_field_to_the_next(store: Store) -> None:
    add_pages(store, {"http://a.example/a": [Passage("blue", "title"), Passage("fern", "text")]})
    assert found(store, '"blue fern"') == []
    assert found(store, "blue fern") == urls("a")


def test_finds_can_be_of_a_site_a_kind_and_a_number(store: Store) -> None:
    add_pages(store, texts(a="fern", b="fern fern"))
    add_pages(store, {"http://b.example/c": [Passage("fern", "text")]}, site=SITE)
    store.search_index.replace_records([record("http://a.example/a", name="fern")])
    assert len(found(store, "fern")) == 4
    assert len(found(store, "fern", limit=2)) == 2
    assert sorted(found(store, "fern", site="a.example", kind="page")) == urls("a", "b")
    assert found(store, "fern", kind="record") == urls("a")
    assert found(store, "fern", site=SITE) == ["http://b.example/c"]
    assert found(store, "fern", site="c.example") == []


def save_clusters(store: Store, site: str | None, **clusters: Sequence[str]) -> None:
    addresses = [PageAddress("a.example", url) for members in clusters.values() for url in members]
    found, first = [], 0
    for name, members in clusters.items():
        numbers = tuple(range(first, first + len(members)))
        found.append(Cluster(name, "a.example", numbers, "00", 1, ("00",), 0.5, (), Template((), 1)))
        first += len(members)
    with store.recording("cluster", {"site": site}) as run:
        store.save_clusters(run.id, found, addresses)


def test_finds_can_be_of_a_cluster_as_it_is_now(store: Store) -> None:
    add_pages(store, texts(a="fern", b="fern", c="fern"))
    store.search_index.replace_records([record("http://a.example/b", name="fern")])
    save_clusters(store, None, one=urls("a", "b"), two=urls("c"))
    assert sorted(found(store, "fern", cluster="one")) == urls("a", "b", "b")
    save_clusters(store, "a.example", one=urls("b"))
    assert found(store, "fern", cluster="one") == urls("b", "b")
    assert found(store, "fern", cluster="two") == []
    assert not store.has_cluster("two")
    assert store.has_cluster("one")
    clusters = {one.document.url: one.cluster for one in store.search_index.search((("fern",),))}
    assert clusters == dict(zip(urls("a", "b", "c"), [None, "one", None], strict=True))


def test_records_are_found_by_what_stands_in_an_attribute(store: Store) -> None:
    index = store.search_index
    index.make_ready()
    index.replace_records(
        [
            record("http://a.example/a", name="Blue Fern", street="Oak lane"),
            record("http://a.example/b", name="Oak", street="Blue Fern lane", **{ANY_TEXT: "lane"}),
        ]
    )
    assert sorted(found(store, "blue fern")) == urls("a", "b")
    assert found(store, '"blue fern"', attribute="name") == urls("a")
    assert found(store, "blue -lane", attribute="street") == []
    assert found(store, "blue -lane", attribute="name") == urls("a")
    assert found(store, "oak blue", attribute="name") == []
    assert found(store, "oak fern", attribute="name", takes_any=True) != []
    assert found(store, "lane", attribute=ANY_TEXT) == urls("b")
    assert found(store, "lane", attribute="colour") == []
    assert set(index.attributes()) == {"name", "street", ANY_TEXT}


def test_only_the_newest_version_of_a_page_is_found(store: Store) -> None:
    add_pages(store, texts(a="old fern", b="fern"))
    index = store.search_index
    put(store, Page("http://a.example/a", b"other", day(1)))
    assert not index.is_current()
    assert index.remove_outdated_pages() == 1
    (missing,) = index.unindexed_pages()
    assert index.unindexed_count() == 1
    assert (missing.site, missing.url) == ("a.example", "http://a.example/a")
    assert found(store, "fern") == urls("b")
    index.add_pages([(missing, IndexDocument("page", *missing[:2], (Passage("new fern", "text"),)))])
    assert sorted(found(store, "fern")) == urls("a", "b")
    assert found(store, "old") == []
    assert index.remove_outdated_pages() == 0


def test_records_are_replaced_and_those_that_stay_are_not_written_again(store: Store) -> None:
    index = store.search_index
    index.make_ready()
    oak, elm, fir = (record("http://a.example/a", name=name) for name in ("Oak", "Elm", "Fir"))
    assert index.replace_records([oak, elm, oak]) == (2, 0)
    columns = schema.search_documents.c
    with store.engine.connect() as connection:
        before = set(connection.execute(select(columns.id)).scalars())
    assert index.replace_records([fir, oak]) == (1, 1)
    with store.engine.connect() as connection:
        after = set(connection.execute(select(columns.id)).scalars())
    assert len(before & after) == 1
    assert [bool(found(store, name)) for name in ("Oak", "Elm", "Fir")] == [True, False, True]
    assert index.replace_records([]) == (0, 2)
    assert found(store, "Oak") == []


def test_an_index_with_other_words_is_made_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_pages(store, texts(a="fern", b="blue"))
    store.search_index.replace_records([])
    assert store.search_index.is_current()
    monkeypatch.setattr(type(store.search_index._terms), "version", "another")
    monkeypatch.setattr(search_index, "_READ_AT_A_TIME", 1)
    monkeypatch.setattr(search_terms, "terms", lambda text: [f"{text}x"])
    assert not store.search_index.is_current()
    store.search_index.make_ready()
    assert store.search_index.is_current()
    assert found(store, "fern") == []
    assert found(store, "fernx") == urls("a")
    put(store, Page("http://a.example/a", b"other", day(1)))
    assert store.search_index.remove_outdated_pages() == 1
    assert found(store, "fernx") == []


def test_only_sqlite_needs_a_new_index_for_another_unicode(store: Store) -> None:
    """Python of two ages may share a PostgreSQL database, and must not make the index anew in turn."""
    depends = unidata_version in store.search_index._terms.version
    assert depends == (store.engine.dialect.name == "sqlite")


def test_postgres_does_not_go_through_all_pages_for_each_document(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite looks up ids in a list")
    add_pages(store, texts(a="fern", b="blue"))
    asked: list[str] = []

    def note(_connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT search_documents.id") and not asked:
            asked.append(statement)
            cursor.execute(f"EXPLAIN {statement}", parameters)
            asked.extend(row[0] for row in cursor.fetchall())

    event.listen(store.engine, "before_cursor_execute", note)
    assert store.search_index.remove_outdated_pages() == 0
    assert len(asked) > 1
    assert not any("SubPlan" in line for line in asked)


def test_pages_are_indexed_in_the_place_of_what_there_was(store: Store) -> None:
    add_pages(store, texts(a="fern", b="fern"))
    index = store.search_index
    one, _ = versions = index.indexed_pages("a.example")
    assert [version.url for version in versions] == urls("a", "b")
    assert index.indexed_pages("b.example") == []
    index.add_pages([(one, IndexDocument("page", *one[:2], (Passage("blue", "text"),)))])
    assert found(store, "fern") == urls("b")
    assert found(store, "blue") == urls("a")
    assert index.indexed_pages("a.example") == versions


def test_an_index_that_a_backup_lacks_is_made_anew(store: Store) -> None:
    add_pages(store, texts(a="fern"))
    with store.engine.begin() as connection:
        connection.execute(text("DROP TABLE search_terms"))
    assert found(store, "fern") == []
    store.search_index.make_ready()
    assert found(store, "fern") == urls("a")


def test_nothing_is_found_where_nothing_is_indexed(store: Store) -> None:
    assert not store.search_index.is_current()
    assert found(store, "fern") == []
    assert store.search_index.attributes() == []


def test_documents_of_any_length_are_indexed(store: Store) -> None:
    # Words of all lengths, in letters of up to four bytes
    gothic = [chr(0x10330 + number) for number in range(26)]
    long = " ".join(
        [
            *(f"{a}{b}{c}" for a in gothic for b in gothic for c in gothic),
            *(chr(0x10330 + number % 26) * 30 + f"{number:x}" for number in range(10_000)),
            *(chr(0x4E00 + number) for number in range(20_000)),
            *(f"{number:x}" for number in range(100_000)),
        ]
    )
    add_pages(
        store,
        {"http://a.example/a": [Passage("fern", "title"), Passage(long, "text"), Passage("fern", "text")]},
    )
    store.search_index.replace_records([record("http://a.example/a", name="fern", text=long)])
    assert found(store, "fern", kind="page") == found(store, "fern", kind="record") == urls("a")
    assert found(store, "fern", attribute="name") == urls("a")
    put(store, Page("http://a.example/a", b"other", day(1)))
    store.search_index.remove_outdated_pages()
    assert found(store, "fern", kind="page") == []


TYPED = st.text(st.sampled_from("ab \"'()*:-^+{}&|!<>\\%_;\0\ud800é東") | st.characters(), max_size=20)


@given(st.lists(TYPED, min_size=1, max_size=4), TYPED)
def test_no_query_is_an_error_and_each_finds_what_it_says(store: Store, pages: list[str], query: str) -> None:
    index = store.search_index
    index.make_ready()
    index.replace_records(
        record(f"http://a.example/{number}", text=text) for number, text in enumerate(pages)
    )
    try:
        wanted, unwanted = parse_query(query)
    except UsageError:
        return
    found = {
        (attribute, takes_any): {
            one.document.url
            for one in index.search(wanted, unwanted, attribute=attribute, takes_any=takes_any)
        }
        for attribute in (None, "text")
        for takes_any in (False, True)
    }
    for takes_any, needed in ((False, all), (True, any)):
        expected = {
            f"http://a.example/{number}"
            for number, text in enumerate(pages)
            if needed(_has(text, phrase) for phrase in wanted)
            and not any(_has(text, phrase) for phrase in unwanted)
        }
        assert found[None, takes_any] == found["text", takes_any] == expected


def _has(text: str, phrase: tuple[str, ...]) -> bool:
    known = terms(text)
    return any(tuple(known[place : place + len(phrase)]) == phrase for place in range(len(known)))


def test_an_sqlite_without_full_text_is_told_in_a_sentence(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL always has it")
    monkeypatch.setattr(search_terms, "_MODULE", "fts99")
    with pytest.raises(StoreError, match="Searching needs SQLite with its module FTS5"):
        store.search_index.make_ready()


def test_the_files_of_a_workspace_stay_sound(store: Store) -> None:
    """FTS5 finds out by itself whether all that was taken out had been put in."""
    if store.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL keeps no index of its own")
    add_pages(store, texts(a="fern blue", b="Crème fern"))
    put(store, Page("http://a.example/a", b"other", day(1)))
    store.search_index.remove_outdated_pages()
    file = store.engine.url.database
    assert file is not None
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT INTO search_terms (search_terms) VALUES ('integrity-check')")
        vocabulary = "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'search_terms', 'row')"
        connection.execute(vocabulary)
        rows = connection.execute("SELECT term, doc FROM temp.vocabulary ORDER BY term").fetchall()
    connection.close()
    assert rows == [("creme", 1), ("fern", 1)]
