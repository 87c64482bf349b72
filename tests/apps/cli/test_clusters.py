"""`siteloom cluster` and `siteloom template` from end to end, on the built-in directory."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from siteloom.apps.demo.sites import directory_site
from siteloom.templates.clustering.methods import METHODS
from tests.apps.cli.command import Command, one_sentence


@pytest.fixture
def crawl(siteloom: Command) -> Path:
    file = siteloom.folder / "crawl.jsonl"
    lines = [json.dumps({"url": p.page.url, "html": p.page.html.decode()}) for p in directory_site()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def clusters(siteloom: Command, *arguments: str) -> list[dict[str, object]]:
    result = siteloom("cluster", "-o", "-", *arguments)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_clusters_of_files_come_out_as_data_and_leave_nothing_behind(siteloom: Command, crawl: Path) -> None:
    found = clusters(siteloom, str(crawl))
    kind_of = {page.page.url: page.kind for page in directory_site()}
    assert list(found[0]) == ["id", "signature", "size", "importance", "url_patterns", "pages"]
    for cluster in found:
        pages = cluster["pages"]
        assert isinstance(pages, list)
        assert cluster["size"] == len(pages)
        assert len({kind_of[url] for url in pages}) == 1
    assert sum(len(cluster["pages"]) for cluster in found if isinstance(cluster["pages"], list)) == len(
        kind_of
    )
    assert [file.name for file in siteloom.folder.iterdir()] == ["crawl.jsonl"]


def test_the_workspace_gives_the_same_clusters_and_keeps_them(siteloom: Command, crawl: Path) -> None:
    siteloom("ingest", str(crawl))
    assert clusters(siteloom) == clusters(siteloom, str(crawl))
    shown = siteloom("template", "--cluster", "tableatlas.example/1")
    assert shown.returncode == 0
    assert "essential paths" in shown.stderr
    assert "'TableAtlas'" in shown.stderr
    assert "cluster" in siteloom("status").stderr


def test_paths_and_tags_are_tables(siteloom: Command, crawl: Path) -> None:
    siteloom("template", str(crawl), "--paths", "-o", "paths.csv")
    siteloom("template", str(crawl), "--tags", "-o", "tags.csv")
    with (siteloom.folder / "paths.csv").open(encoding="utf-8") as file:
        paths = list(csv.DictReader(file))
    title = next(row for row in paths if row["path"] == "html/head/title" and not row["text"])
    assert (title["essential"], float(title["informativeness"]) > 0.9) == ("true", True)
    with (siteloom.folder / "tags.csv").open(encoding="utf-8") as file:
        tags = list(csv.DictReader(file))
    whole = next(row for row in tags if row["tag"] == "body" and not row["url"])
    assert whole["occurrences"] == whole["pages"] == whole["support"]
    assert any(row["url"] == directory_site()[0].page.url for row in tags)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_asked_for(siteloom: Command, crawl: Path, method: str) -> None:
    assert len(clusters(siteloom, str(crawl), "--method", method)) >= 1


def test_pages_that_do_not_parse_are_counted(siteloom: Command, crawl: Path) -> None:
    siteloom("ingest", str(crawl))
    siteloom("cluster", "--method", "paths", environment={"SITELOOM_PARSE_MAX_TAGS": "3"})
    assert "217 failed" in siteloom("status").stderr.replace("\n", " ")


def test_a_single_page_is_told_as_one(siteloom: Command) -> None:
    page = {"url": "http://a.example/", "html": "<p>a"}
    (siteloom.folder / "one.jsonl").write_text(json.dumps(page), encoding="utf-8")
    assert "1 page is in no cluster;" in siteloom("cluster", "one.jsonl").stderr


def test_mistakes_are_told_in_a_sentence(siteloom: Command, crawl: Path) -> None:
    assert "There is no method 'best'" in one_sentence(siteloom("cluster", str(crawl), "--method", "best"))
    assert "siteloom init" in one_sentence(siteloom("cluster"))
    siteloom("ingest", str(crawl))
    assert "There are no clusters yet" in one_sentence(siteloom("template"))
    siteloom("cluster", "-q")
    assert "There is no cluster x" in one_sentence(siteloom("template", "--cluster", "x"))
    assert "There is no site nowhere among the pages: there are tableatlas.example" in one_sentence(
        siteloom("cluster", "--site", "nowhere")
    )
