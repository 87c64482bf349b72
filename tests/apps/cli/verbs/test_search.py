"""`siteloom search` from end to end, on the built-in guide."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
from torture.warm import run_warm

from siteloom.core.file_lock import write_lock
from tests.apps.cli.changing import COUNT, SITE, copied, done, rows
from tests.apps.cli.command import one_sentence, share_for_reading, work_inside
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.apps.demo.sites import guide, of_kind

RESTAURANTS = of_kind(guide("original"), "restaurant")[:COUNT]


@pytest.fixture
def place(watched_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of restaurants with their records, and a file of their pages."""
    folder = copied(watched_place, tmp_path / "place")
    work_inside(folder, monkeypatch)
    return folder


@pytest.mark.usefixtures("place")
def test_the_workspace_is_indexed_and_searched() -> None:
    restaurant = RESTAURANTS[3]
    (name,) = restaurant.truth["name"]
    told = done("search", name)
    assert f"Indexed {COUNT} pages and {COUNT} records" in told
    assert restaurant.page.url in told
    assert "Indexed" not in done("search", name)
    found = rows("search", name)
    assert {hit["url"] for hit in found[:2]} == {restaurant.page.url}
    record = next(hit for hit in found if hit["kind"] == "record")
    assert record["values"]["name"] == [name]
    assert record["attributes"][0] == "name"
    assert [record["title"][start:end] for start, end in record["highlights"]["title"]]
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)


@pytest.mark.usefixtures("place")
def test_hits_can_be_of_a_site_a_kind_an_attribute_and_a_number() -> None:
    done("cluster")
    (cuisine, *_) = RESTAURANTS[0].truth["cuisine"]
    everything = rows("search", cuisine, "-n", "1000")
    assert {hit["kind"] for hit in everything} == {"page", "record"}
    assert {hit["site"] for hit in everything} == {SITE}
    cluster = everything[0]["cluster"]
    of_cluster = rows("search", cuisine, "--cluster", cluster, "--site", SITE, "--limit", "1000")
    assert of_cluster == [hit for hit in everything if hit["cluster"] == cluster]
    assert len(of_cluster) < len(everything)
    assert {hit["kind"] for hit in rows("search", cuisine, "--in", "pages")} == {"page"}
    expected = {page.page.url for page in RESTAURANTS if cuisine in page.truth["cuisine"]}
    assert {hit["url"] for hit in rows("search", cuisine, "--attribute", "cuisine", "-n", "1000")} == expected
    assert len(rows("search", cuisine, "-n", "2")) == 2


@pytest.mark.usefixtures("place")
def test_sources_are_searched_without_the_workspace() -> None:
    restaurant = RESTAURANTS[5]
    found = rows("search", restaurant.truth["name"][0], "original.jsonl")
    assert found[0]["url"] == restaurant.page.url
    assert {hit["kind"] for hit in found} == {"page"}
    assert "Indexed" in done("search", "anything")  # the workspace knows nothing of it
    done("search", restaurant.truth["name"][0], "-o", "hits.csv")
    with Path("hits.csv").open(encoding="utf-8", newline="") as file:
        hits = list(csv.DictReader(file))
    assert {json.loads(hit["values"]).get("name", [""])[0] for hit in hits} >= set(restaurant.truth["name"])


def test_what_is_indexed_is_searched_while_another_process_writes(place: Path) -> None:
    with write_lock(place / ".siteloom"):
        told = done("search", RESTAURANTS[0].truth["name"][0])
    assert "Another process is writing" in told
    assert "Nothing was found." in told


@pytest.mark.usefixtures("place")
def test_what_has_some_of_the_words_is_shown_as_such() -> None:
    assert "Nothing has all of these words" in done("search", f"{RESTAURANTS[0].truth['name'][0]} xyzzy")


def test_one_page_is_told_of_as_one(place: Path) -> None:
    write_lines(place / "one.jsonl", [{"url": "https://a.example/1", "html": "<p>Fern"}])
    assert "Indexed 1 page and 0 records; 0 were outdated." in done("search", "fern", "one.jsonl")


def test_pages_that_cannot_be_read_are_told_of_with_their_reason(place: Path) -> None:
    lines = [{"url": "https://a.example/1", "html": "<div>" * 3_000}]
    write_lines(place / "deep.jsonl", lines)
    told = within("search", "fern", "deep.jsonl")
    assert told.returncode == 1
    assert "1 page could not be read: " in told.stderr
    assert "Indexed" not in told.stderr
    assert one_sentence(told) == "No page could be read: all of them failed, as shown above."
    write_lines(place / "some.jsonl", [*lines, {"url": "https://a.example/2", "html": "<p>Fern"}])
    said = done("search", "fern", "some.jsonl")
    assert "1 page could not be read: " in said
    assert "Indexed 1 page and" in said


@pytest.mark.parametrize(("content", "why"), [("", "the sources are empty"), ("junk\n", "all of them")])
def test_a_source_without_pages_is_told_in_a_sentence(place: Path, content: str, why: str) -> None:
    (place / "none.jsonl").write_text(content, encoding="utf-8")
    result = within("search", "fern", "none.jsonl")
    assert result.returncode == 1
    assert one_sentence(result).startswith(f"No page could be read: {why}")


@pytest.mark.parametrize("arguments", [("...",), ("x", "--site", "b.example"), ("x", "--cluster", "a/1")])
@pytest.mark.usefixtures("place")
def test_nothing_is_indexed_for_a_search_that_is_refused(arguments: tuple[str, ...]) -> None:
    assert within("search", *arguments).returncode == 2
    assert f"Indexed {COUNT} pages" in done("search", "anything")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_workspace_that_may_only_be_read_is_searched_as_it_is(place: Path) -> None:
    name = RESTAURANTS[0].truth["name"][0]
    done("search", "anything")
    share_for_reading(place)
    script = (
        "import os, sys, siteloom.apps.cli.main, siteloom.operations.search, siteloom.store,"
        " rich.padding, rich.table;"
        "os.setuid(65534); sys.argv = ['siteloom', *sys.argv[1:]]; siteloom.apps.cli.main.main()"
    )
    searched = run_warm(["-c", script, "search", name], place, os.environ)
    assert searched.returncode == 0, searched.stderr
    assert RESTAURANTS[0].page.url in searched.stderr
    assert "may only be read" not in searched.stderr
    done("ingest", "mild.jsonl")
    share_for_reading(place)
    searched = run_warm(["-c", script, "search", name], place, os.environ)
    assert searched.returncode == 0, searched.stderr
    assert RESTAURANTS[0].page.url in searched.stderr
    assert "This workspace may only be read: what is new there is not searched yet." in searched.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--", "-x"), 2, "There is no word to look for"),
        (("x", "original.jsonl", "--cluster", "a/1"), 2, "A SOURCE has no clusters: leave out --cluster"),
        (
            ("x", "original.jsonl", "--attribute", "name"),
            2,
            "A SOURCE has pages and no records: leave out",
        ),
        (("x", "original.jsonl", "--in", "records"), 2, "A SOURCE has pages and no records: leave out --in"),
        (("x", "--in", "cellars"), 2, "--in takes pages or records, not cellars."),
        (("x", "--limit", "0"), 2, "--limit must be from 1 to 10,000."),
        (("x", "--site", "b.example"), 2, "There is no site b.example"),
        (("x", "--attribute", "colour"), 2, "There is no attribute colour to search in: there are address,"),
        (("x", "none.jsonl"), 1, "no file or folder none.jsonl"),
        (("x", "-o", "hits.txt"), 2, "Cannot tell the format of hits.txt"),
    ],
)
@pytest.mark.usefixtures("place")
def test_mistakes_are_told_in_a_sentence(arguments: tuple[str, ...], status: int, message: str) -> None:
    result = within("search", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status
