"""`siteloom sample` from end to end, on the built-in directory."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from siteloom.apps.demo.sites import directory_site
from siteloom.core.model import Example
from siteloom.core.settings import StoreSettings
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command, one_sentence

Row = dict[str, object]


@pytest.fixture
def crawl(siteloom: Command) -> Path:
    pages = [{"url": p.page.url, "html": p.page.html.decode()} for p in directory_site()]
    return write_lines(siteloom.folder / "crawl.jsonl", pages)


def write_lines(file: Path, rows: list[dict[str, str]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def rows_of(siteloom: Command, *arguments: str) -> list[Row]:
    result = siteloom("sample", "-o", "-", *arguments)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_source_is_one_cluster_and_leaves_nothing_behind(siteloom: Command, crawl: Path) -> None:
    rows = rows_of(siteloom, str(crawl), "-k", "2")
    assert [list(row) for row in rows] == [["url", "gain", "covered"]] * 2
    kinds = {page.page.url: page.kind for page in directory_site()}
    assert {kinds[str(row["url"])] for row in rows} == {"restaurant", "list"}
    assert [file.name for file in siteloom.folder.iterdir()] == ["crawl.jsonl"]


def test_the_workspace_gives_pages_of_each_cluster(siteloom: Command, crawl: Path) -> None:
    siteloom("ingest", str(crawl))
    clusters = [json.loads(line) for line in siteloom("cluster", "-o", "-").stdout.splitlines()]
    rows = rows_of(siteloom, "-k", "1")
    assert list(rows[0]) == ["cluster", "url", "gain", "covered"]
    chosen = defaultdict(list)
    for row in rows:
        chosen[row["cluster"]].append(row["url"])
    assert len(clusters) > 1
    assert list(chosen) == [cluster["id"] for cluster in clusters]
    for cluster in clusters:
        (url,) = chosen[cluster["id"]]
        assert url in cluster["pages"]
    last = clusters[-1]["id"]
    assert rows_of(siteloom, "-k", "1", "--cluster", last) == [row for row in rows if row["cluster"] == last]


def test_examples_count_as_seen(siteloom: Command, crawl: Path) -> None:
    rows = rows_of(siteloom, str(crawl))
    assert [row["gain"] != 0 for row in rows] == [True, True] + [False] * 8
    examples = [{"url": str(rows[0]["url"])}, {"url": "https://elsewhere.example/"}]
    file = write_lines(siteloom.folder / "examples.jsonl", examples)
    others = rows_of(siteloom, str(crawl), "--examples", str(file))
    assert others[:9] == rows[1:]
    assert len(others) == 10
    assert rows[0]["url"] not in {row["url"] for row in others}
    told = siteloom("sample", str(crawl), "--examples", str(file)).stderr
    assert "1 annotated pages are not among those to choose from." in told


def test_pages_that_were_annotated_in_the_workspace_count_as_seen(siteloom: Command, crawl: Path) -> None:
    siteloom("ingest", str(crawl))
    siteloom("ingest", str(crawl), "--site", "mine")
    siteloom("cluster")
    rows = rows_of(siteloom, "-k", "2")
    first, second = rows[:2]
    url, site = str(first["url"]), str(first["cluster"]).split("/")[0]
    store = open_store(StoreSettings(str(siteloom.folder / ".siteloom")))
    address = PageAddress(site, url)
    store.save_example(address, Example(store.page(address), {"name": []}))
    store.close()
    after = rows_of(siteloom, "-k", "2")
    assert url not in {row["url"] for row in after if row["cluster"] == first["cluster"]}
    assert after[0] == second
    # The same pages in another site were not looked at.
    assert after[2:] == rows[2:]
    assert url in {row["url"] for row in after[2:]}

    # What a file names is seen besides.
    file = write_lines(siteloom.folder / "examples.jsonl", [{"url": str(second["url"])}])
    both = rows_of(siteloom, "-k", "2", "--examples", str(file), "--cluster", str(first["cluster"]))
    assert {url, second["url"]}.isdisjoint(row["url"] for row in both)
    # No word of annotated pages that are in other clusters.
    result = siteloom("sample", "--cluster", str(rows[-1]["cluster"]))
    assert result.returncode == 0
    assert "not among those" not in result.stderr


def test_a_table_is_shown_and_says_when_all_is_covered(siteloom: Command) -> None:
    pages = [{"url": f"https://shop.example/{n}", "html": f"<h1>{n}</h1>"} for n in range(3)]
    pages.append({"url": "https://shop.example/nothing", "html": ""})
    crawl = write_lines(siteloom.folder / "crawl.jsonl", pages)
    result = siteloom("sample", str(crawl))
    assert result.returncode == 0
    assert result.stdout == ""
    assert "100.0%" in result.stderr
    assert "1 pages could not be parsed: empty page." in result.stderr
    assert all(f"https://shop.example/{n}" in result.stderr for n in range(3))
    lines = result.stderr.splitlines()
    assert lines[-1] == "1 page covers all there is to see; any others show more of the same."
    siteloom("ingest", str(crawl))
    siteloom("cluster")
    assert "shop.example/1: 1 page covers all there is to see; any others" in siteloom("sample").stderr


def test_several_pages_cover_all(siteloom: Command, crawl: Path) -> None:
    covers_all = "2 pages cover all there is to see; any others show more of the same."
    assert covers_all in siteloom("sample", str(crawl)).stderr
    assert covers_all in siteloom("sample", str(crawl), "-k", "2").stderr
    assert "all there is to see" not in siteloom("sample", str(crawl), "-k", "1").stderr


def test_pages_that_are_all_alike_have_nothing_to_show(siteloom: Command) -> None:
    pages = [{"url": f"https://shop.example/{n}", "html": "<h1>x</h1>"} for n in range(3)]
    result = siteloom("sample", str(write_lines(siteloom.folder / "crawl.jsonl", pages)))
    assert result.returncode == 0
    *table, last = result.stderr.splitlines()
    assert last == "No page shows anything that would be new."
    assert [n for n in range(3) if any(f"https://shop.example/{n}" in line for line in table)] == [0, 1, 2]
    empty = write_lines(siteloom.folder / "empty.jsonl", [{"url": "https://shop.example/", "html": ""}])
    assert siteloom("sample", str(empty)).stderr.splitlines() == [
        "1 pages could not be parsed: empty page.",
        "No page shows anything that would be new.",
    ]


def test_mistakes_are_told_in_a_sentence(siteloom: Command, crawl: Path) -> None:
    assert "siteloom init" in one_sentence(siteloom("sample"))
    assert "at least 1, not 0" in one_sentence(siteloom("sample", str(crawl), "-k", "0"))
    assert "not both" in one_sentence(siteloom("sample", str(crawl), "--cluster", "x"))
    assert ".jsonl" in one_sentence(siteloom("sample", str(crawl), "-o", "pages.doc"))
    empty = write_lines(siteloom.folder / "empty.jsonl", [])
    assert "There are no pages to choose from" in one_sentence(siteloom("sample", str(empty)))
    siteloom("ingest", str(crawl))
    assert "There are no clusters yet: find them with siteloom cluster" in one_sentence(siteloom("sample"))
    siteloom("cluster", "-q")
    assert "There is no cluster x" in one_sentence(siteloom("sample", "--cluster", "x"))


@pytest.mark.parametrize("line", ["{", "[]", '{"values": {}}', '{"url": 1}'])
def test_a_line_that_is_no_example(siteloom: Command, crawl: Path, line: str) -> None:
    file = siteloom.folder / "examples.jsonl"
    file.write_text(f'{{"url": "https://a.example/"}}\n\n{line}\n', encoding="utf-8")
    sentence = one_sentence(siteloom("sample", str(crawl), "--examples", str(file)))
    assert sentence.startswith((f"Line 3 of {file} is no example: ", f"Line 3 of {file} is no JSON: "))


def test_examples_that_are_not_there(siteloom: Command, crawl: Path) -> None:
    sentence = one_sentence(siteloom("sample", str(crawl), "--examples", "nowhere.jsonl"))
    assert sentence == "The examples nowhere.jsonl cannot be read: No such file or directory."
