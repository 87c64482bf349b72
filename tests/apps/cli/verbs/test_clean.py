"""`siteloom clean` from end to end, on the built-in guide."""

from __future__ import annotations

import csv
import json
from html import escape
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from siteloom.apps.demo.sites import guide_site
from tests.apps.cli.command import Command, one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within

PAGES = [page for page in guide_site() if page.kind == "restaurant"][:12]
SITE = "larkmoor-guide.example"


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of pages, in the folder that this process works in."""
    work_inside(tmp_path, monkeypatch)
    file = tmp_path / "crawl.jsonl"
    lines = [json.dumps({"url": p.page.url, "html": p.page.html.decode()}) for p in PAGES]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def cleaned(*arguments: str) -> list[dict[str, object]]:
    result = within("clean", *arguments, "-o", "out.jsonl")
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]


def test_pages_of_files_are_cleaned_and_nothing_is_left_behind(siteloom: Command, crawl: Path) -> None:
    result = siteloom("clean", str(crawl), "-o", "-")
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["url"] for row in rows] == [page.page.url for page in PAGES]
    assert list(rows[0]) == ["url", "text", "blocks"]
    for row, page in zip(rows, PAGES, strict=True):
        assert page.truth["name"][0] in str(row["text"])
        contents = [block["text"] for block in row["blocks"] if not block["is_template"]]
        assert set(contents) <= set(row["text"].splitlines())
        assert 0 < len(contents) < len(row["blocks"])
    assert [file.name for file in siteloom.folder.iterdir()] == ["crawl.jsonl"]


def test_the_workspace_gives_the_same_and_keeps_its_table(crawl: Path) -> None:
    within("ingest", str(crawl))
    rows = cleaned()
    assert rows == cleaned(str(crawl))
    shown = within("clean", "--site", SITE)
    assert shown.returncode == 0
    assert "12 pages cleaned" in shown.stderr
    assert "Template text" in shown.stderr


def test_blocks_are_marked_in_every_format_and_html_has_no_template(crawl: Path) -> None:
    rows = cleaned(str(crawl))
    blocks = rows[0]["blocks"]
    assert isinstance(blocks, list)
    assert {block["is_template"] for block in blocks} == {True, False}
    assert {*blocks[0]} == {"path", "text", "is_template"}
    for name in ("blocks.csv", "blocks.parquet"):
        result = within("clean", str(crawl), "-o", name)
        assert result.returncode == 0, result.stderr
    with (crawl.parent / "blocks.csv").open(encoding="utf-8", newline="") as file:
        in_cells = list(csv.DictReader(file))
    assert [{**row, "blocks": json.loads(row["blocks"])} for row in in_cells] == rows
    assert read_table(crawl.parent / "blocks.parquet").to_pylist() == rows
    template = max((block["text"] for block in blocks if block["is_template"]), key=len)
    texts = [{"url": row["url"], "text": row["text"]} for row in rows]
    assert cleaned(str(crawl), "--format", "text") == texts
    (first, *_) = cleaned(str(crawl), "--format", "html")
    assert str(first["html"]).startswith("<!DOCTYPE html>\n<html")
    assert escape(PAGES[0].truth["name"][0]) in str(first["html"])
    assert template not in str(first["html"])


def test_bad_pages_are_told_with_their_reasons_and_the_paper_takes_more_away(
    crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with crawl.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"url": f"http://{SITE}/large", "html": "x" * 200_000}) + "\n")
    monkeypatch.setenv("SITELOOM_PARSE_MAX_BYTES", "100000")
    lengths = []
    for rule in ("share", "paper"):
        result = within("clean", str(crawl), "--rule", rule, "-o", "out.jsonl")
        assert "1 page could not be read: page too large." in result.stderr
        assert "12 pages cleaned" in result.stderr
        lengths.append(Path("out.jsonl").stat().st_size)
    assert lengths[1] < lengths[0]


@pytest.mark.usefixtures("crawl")
def test_mistakes_are_told_in_a_sentence() -> None:
    within("init")
    for arguments, sentence in (
        ((), "There are no pages to clean: read some with siteloom ingest."),
        (("--format", "pdf"), "--format pdf is not known: it is one of blocks, text, html, main."),
        (("--rule", "all"), "--rule all is not known: it is one of share, paper."),
        (("--site", "b.example"), "There is no site b.example among the pages: there are none at all."),
        (("-o", "pages.txt"), "Cannot tell the format of pages.txt"),
    ):
        assert one_sentence(within("clean", *arguments)).startswith(sentence)


def test_the_main_text_is_found_by_trafilatura_or_its_extra_is_named(crawl: Path) -> None:
    if find_spec("trafilatura") is None:
        assert "siteloom[text]" in one_sentence(within("clean", str(crawl), "--format", "main"))
        return
    (first, *_) = cleaned(str(crawl), "--format", "main")
    assert list(first) == ["url", "text"]
    assert PAGES[0].truth["name"][0] in str(first["text"])


def test_a_broken_extra_is_told_with_its_reason_before_pages_are_read(
    siteloom: Command, tmp_path: Path
) -> None:
    package = tmp_path / "packages" / "trafilatura"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('A part is missing.\\nInstall it.')")
    broken = {"PYTHONPATH": str(package.parent)}
    sentence = one_sentence(siteloom("clean", "none.jsonl", "--format", "main", environment=broken))
    assert sentence == (
        "The main text of a page needs trafilatura, which cannot be imported: A part is missing. Install it."
    )
    findings = siteloom("doctor", "-o", "-", environment=broken).stdout.splitlines()
    (text,) = (one["finding"] for one in map(json.loads, findings) if one["check"] == "extra text")
    assert text == "installed, but it cannot be used: A part is missing. Install it."


def test_where_nothing_can_be_read_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_inside(tmp_path, monkeypatch)
    empty, bad, one = (Path(name) for name in ("empty.jsonl", "bad.jsonl", "one.jsonl"))
    empty.write_text("")
    bad.write_text(json.dumps({"url": f"http://{SITE}/1", "html": " "}) + "\n")
    one.write_text(json.dumps({"url": f"http://{SITE}/1", "html": "<p>A"}) + "\n")
    refused = within("clean", str(empty))
    assert refused.returncode == 1
    assert one_sentence(refused) == "No page could be read: the sources are empty."
    refused = within("clean", str(bad))
    assert "1 page could not be read: " in refused.stderr
    assert one_sentence(refused) == "No page could be read: all of them failed, as shown above."
    within("ingest", str(bad))
    assert one_sentence(within("clean")).startswith("No page could be read: all of them failed")
    assert "\n1 page cleaned." in within("clean", str(one)).stderr
