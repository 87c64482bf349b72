"""A page that takes too long, or of which too much comes, is told of, and the rest is done all the same."""

from __future__ import annotations

import json

import pytest

from siteloom.core.settings import StoreSettings
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command
from tests.extraction.test_extraction import LISTS, endless_list, lists

OTHERS = [page.page for page in LISTS[1:4]]
# Others take hundredths of a second, and the first one what a process does once.
LITTLE = {"SITELOOM_PARSE_MAX_SECONDS": "0.2"}


def put(siteloom: Command, hostile: str) -> None:
    """A file of pages, the first of which is hostile."""
    pages = [(endless_list().url, hostile), *((page.url, page.html.decode()) for page in OTHERS)]
    lines = [json.dumps({"url": url, "html": html}) for url, html in pages]
    (siteloom.folder / "pages.jsonl").write_text("\n".join(lines), encoding="utf-8")


def rows_of(siteloom: Command, name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (siteloom.folder / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("setting", "value", "reason", "jobs"),
    [
        ("MAX_SECONDS", "0.3", "took too long", "1"),
        ("MAX_SECONDS", "0.3", "took too long", "2"),
        ("MAX_RECORDS", "300", "too many records", "1"),
    ],
)
def test_extract(siteloom: Command, setting: str, value: str, reason: str, jobs: str) -> None:
    put(siteloom, endless_list().html.decode())
    (siteloom.folder / "lists.json").write_text(lists().to_json(), encoding="utf-8")
    asked = ("--wrapper", "lists.json", "-o", "out.jsonl", "--failures", "failures.jsonl", "-j", jobs)
    result = siteloom("extract", "pages.jsonl", *asked, environment={f"SITELOOM_PARSE_{setting}": value})
    assert result.returncode == 0, result.stderr
    failures = rows_of(siteloom, "failures.jsonl")
    assert [(row["url"], row["reason"]) for row in failures] == [(endless_list().url, reason)]
    assert reason in result.stderr
    assert {row["url"] for row in rows_of(siteloom, "out.jsonl")} == {page.url for page in OTHERS}


ITEMS = "<ul><li>Some words of a text<p>and</ul>"
SLOW = "<body>" + ITEMS * 120_000
SLOW_ARTICLE = "<body>" + ITEMS * 30_000
DEEP = "<body>" + "<div>" * 1_000 + "<p>x" * 1_000


@pytest.mark.parametrize(
    ("form", "hostile", "limits", "reason"),
    [
        ("main", SLOW_ARTICLE, LITTLE, "took too long"),
        ("blocks", DEEP, {"SITELOOM_PARSE_MAX_CHARACTERS": "1000000"}, "too much text"),
    ],
)
def test_clean(siteloom: Command, form: str, hostile: str, limits: dict[str, str], reason: str) -> None:
    put(siteloom, hostile)
    result = siteloom("clean", "pages.jsonl", "--format", form, "-o", "out.jsonl", environment=limits)
    assert result.returncode == 0, result.stderr
    assert reason in result.stderr
    assert [row["url"] for row in rows_of(siteloom, "out.jsonl")] == [page.url for page in OTHERS]


def test_cluster_and_search(siteloom: Command) -> None:
    put(siteloom, SLOW)
    assert siteloom("ingest", "pages.jsonl").returncode == 0
    clustered = siteloom("cluster", "--method", "text-mdl", environment=LITTLE)
    assert clustered.returncode == 0, clustered.stderr
    assert "1 page could not be read: took too long.\n1 page is in no cluster" in clustered.stderr
    searched = siteloom("search", "words", environment=LITTLE)
    assert searched.returncode == 0, searched.stderr
    assert "took too long" in searched.stderr
    store = open_store(StoreSettings(workspace=str(siteloom.folder / ".siteloom")))
    try:
        failures = [list(store.failures(run)) for run in (2, 3)]
    finally:
        store.close()
    for of_run in failures:
        assert [(one.url, one.reason) for one in of_run] == [(endless_list().url, "took too long")]


def product(number: int, more: str = "") -> tuple[str, str]:
    url = f"https://b.example/{number}"
    body = f"<h1>Thing {number}</h1><p>Price: <b>{number * 13}.50</b></p><p>Made by <i>Maker {number}</i>"
    return url, f"<html><body>{body}</p>{more}</body></html>"


FEW_TAGS = {"SITELOOM_PARSE_MAX_TAGS_LEARNED": "100"}
UNREAD = "1 page could not be read: too many tags."


def put_products(siteloom: Command) -> None:
    """Ten alike, the last of them with a thousand tags more; and what is known of them."""
    pages = [*map(product, range(1, 10)), product(10, "<br>" * 1_000)]
    known = [{"name": f"Thing {n}", "price": f"{n * 13}.50", "maker": f"Maker {n}"} for n in range(1, 11)]
    examples = [
        {"url": url, "values": {key: [text] for key, text in row.items()}}
        for (url, _), row in zip(pages, known, strict=True)
    ]
    for name, rows in (
        ("pages.jsonl", [{"url": url, "html": html} for url, html in pages]),
        ("known.jsonl", known),
        ("few.jsonl", examples[:3]),
        ("hostile.jsonl", examples[-1:]),
    ):
        (siteloom.folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_what_compares_all_nodes_takes_fewer_tags(siteloom: Command) -> None:
    put_products(siteloom)
    learn = ("learn", "pages.jsonl", "-o", "w.json", "--examples")
    assert siteloom(*learn, "few.jsonl", environment=FEW_TAGS).returncode == 0
    assert siteloom(*learn, "hostile.jsonl").returncode == 0
    refused = siteloom(*learn, "hostile.jsonl", environment=FEW_TAGS)
    assert refused.returncode != 0
    assert (
        "The example https://b.example/10 cannot be read: too many tags (at most 100 are read)."
        in " ".join(refused.stderr.split())
    )
    bootstrap = ("bootstrap", "pages.jsonl", "--seeds", "known.jsonl", "--core", "name,price")
    assert UNREAD in siteloom(*bootstrap, environment=FEW_TAGS).stderr
    assert UNREAD not in siteloom(*bootstrap).stderr
    discovered = siteloom("discover", "pages.jsonl", "-o", "t.jsonl", environment=FEW_TAGS)
    assert discovered.returncode == 0, discovered.stderr
    assert len(rows_of(siteloom, "t.jsonl")) == 9
