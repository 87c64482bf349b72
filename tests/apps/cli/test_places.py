"""Sources and outputs of the command line that are archives, elsewhere, or a table of the user's own."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from siteloom.core.model import Page
from tests.apps.cli.command import Command, one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within
from tests.apps.demo.sites import guide, of_kind
from tests.extraction.test_extraction import lists, restaurants
from tests.sources.warc_records import gzip_members, page_record

PAGES: list[Page] = [one.page for one in of_kind(guide(), "restaurant")[:6]]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a WARC file, an index of three of its pages, and the same as WACZ."""
    records = [page_record(page.url, page.html) for page in PAGES]
    archive = gzip_members(records).content
    (tmp_path / "a.warc.gz").write_bytes(archive)
    index, offset = [], 0
    for page, one in zip(PAGES, records, strict=True):
        length = len(gzip_members([one]).content)
        known = {"url": page.url, "mime": "text/html", "status": "200", "filename": "a.warc.gz"}
        index.append(f"x 2024 {json.dumps({**known, 'offset': offset, 'length': length})}\n")
        offset += length
    (tmp_path / "some.cdxj").write_text("".join(index[1:4]), encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "a.wacz", "w") as zipped:
        zipped.writestr("archive/a.warc.gz", archive)
    (tmp_path / "food.json").write_text(restaurants().to_json(), encoding="utf-8")
    work_inside(tmp_path, monkeypatch)
    return tmp_path


def urls(content: bytes) -> list[str]:
    return [json.loads(line)["url"] for line in content.splitlines()]


def test_archives_and_indexes_are_sources(place: Path) -> None:
    for source, expected in (("a.wacz", PAGES), ("some.cdxj", PAGES[1:4])):
        done = within("extract", source, "--wrapper", "food.json", "-o", "out.jsonl")
        assert done.returncode == 0, done.stderr
        assert urls((place / "out.jsonl").read_bytes()) == [page.url for page in expected]
        assert not (place / "out.jsonl.parts").exists()


def test_files_that_an_index_names_and_that_are_missing_are_told(place: Path) -> None:
    (place / "a.warc.gz").rename(place / "elsewhere.warc.gz")
    for output in ("out.jsonl", "-"):
        done = within("extract", "some.cdxj", "--wrapper", "food.json", "-o", output)
        assert one_sentence(done) == "No page could be read: all of them failed, as shown above."
        assert "What failed first" in done.stderr
        assert "pages.warcs" in done.stderr
        assert "siteloom explain" not in done.stderr


def test_what_failed_first_is_not_said_of_pages_that_could_be_read(place: Path) -> None:
    page = {"url": "http://other.example/", "html": "<p>a"}
    (place / "other.jsonl").write_text(json.dumps(page), encoding="utf-8")
    done = within("extract", "other.jsonl", "--wrapper", "food.json")
    assert "no wrapper for the site" in done.stderr
    assert "siteloom explain" in done.stderr
    assert "What failed first" not in done.stderr


def test_all_may_be_elsewhere(place: Path, memory: Any) -> None:
    for name in ("a.wacz", "food.json"):
        memory.pipe_file(f"/in/{name}", (place / name).read_bytes())
    source, wrapper = "memory://in/a.wacz", "memory://in/food.json"
    done = within(
        "extract",
        source,
        "--wrapper",
        wrapper,
        "-o",
        "memory://out/r.parquet",
        "--failures",
        "memory://out/f.csv",
    )
    assert done.returncode == 0, done.stderr
    assert "The records are in memory://out/r.parquet." in done.stderr
    table = pq.read_table(io.BytesIO(memory.cat_file("/out/r.parquet")))
    assert table["url"].to_pylist() == [page.url for page in PAGES]
    assert memory.cat_file("/out/f.csv") == b"url,reason,detail\r\n"
    assert sorted(one.name for one in place.iterdir()) == ["a.wacz", "a.warc.gz", "food.json", "some.cdxj"]


def test_wrappers_and_examples_may_be_elsewhere(memory: Any) -> None:
    values = {"name": [restaurants().extract(PAGES[0]).values["name"][0]]}
    memory.pipe_file("/in/e.jsonl", json.dumps({"url": PAGES[0].url, "values": values}).encode())
    place = "memory://me:s3cret@out/w.json"
    learned = within("learn", "a.wacz", "--examples", "memory://in/e.jsonl", "-o", place)
    assert learned.returncode == 0, learned.stderr
    assert "The wrapper is in memory://me:***@out/w.json." in learned.stderr
    done = within("extract", "a.wacz", "--wrapper", place, "-o", "-")
    assert len(done.stdout.splitlines()) == len(PAGES)


def test_wrappers_go_elsewhere_as_what_other_programs_run(place: Path, memory: Any) -> None:
    memory.pipe_file("/in/food.json", (place / "food.json").read_bytes())
    options = ("--format", "xslt", "-o", "memory://out/food.xslt")
    done = within("export", "--wrapper", "memory://in/food.json", *options)
    assert done.returncode == 0, done.stderr
    assert b"<xsl:stylesheet" in memory.cat_file("/out/food.xslt")


def test_what_other_tools_were_taught_may_be_elsewhere(memory: Any) -> None:
    name = {"id": "name", "type": "SelectorText", "parentSelectors": ["_root"], "selector": "h1"}
    taught = {"_id": "food", "startUrl": [PAGES[0].url], "selectors": [{**name, "multiple": False}]}
    memory.pipe_file("/in/sitemap.json", json.dumps(taught).encode())
    done = within("examples", "memory://in/sitemap.json", "a.wacz", "-o", "memory://out/e.jsonl")
    assert done.returncode == 0, done.stderr
    assert set(urls(memory.cat_file("/out/e.jsonl"))) <= {page.url for page in PAGES}


def test_another_process_sees_what_was_written(siteloom: Command) -> None:
    output = f"local://{siteloom.folder}/out.jsonl"
    done = siteloom("extract", "some.cdxj", "--wrapper", "food.json", "-o", output)
    assert done.returncode == 0, done.stderr
    assert urls((siteloom.folder / "out.jsonl").read_bytes()) == [page.url for page in PAGES[1:4]]


def test_a_source_is_not_overwritten_under_its_other_name(place: Path) -> None:
    (place / "pages.jsonl").write_text("", encoding="utf-8")
    done = within("extract", "pages.jsonl", "--wrapper", "food.json", "-o", f"file://{place}/pages.jsonl")
    assert one_sentence(done) == "pages.jsonl would be overwritten, but the pages are read from it."


def test_the_web_and_databases_for_engines_are_refused() -> None:
    start = ("extract", "a.wacz", "--wrapper", "food.json", "-o")
    place = "memory://me:s3cret@bucket/r.jsonl"
    assert one_sentence(within(*start, place, "--failures", place)).startswith(
        "Records and failures cannot both go to memory://me:***@bucket/r.jsonl: "
    )
    assert one_sentence(within("extract", place, *start[2:], place)) == (
        "memory://me:***@bucket/r.jsonl would be overwritten, but the pages are read from it."
    )
    done = within(*start, "https://a.example/r.csv")
    assert done.returncode == 2
    assert one_sentence(done) == (
        "https://a.example/r.csv is on the web, where nothing can be written: give -o another place."
    )
    done = within(*start, "postgresql://me:s3cret@host/name/table", "--engine", "local")
    assert done.returncode == 2
    assert one_sentence(done) == (
        "--engine local writes a folder of Parquet files, which postgresql://me:***@host/name/table "
        "cannot be: give -o FOLDER."
    )


def test_records_go_to_a_table_of_ones_own(place: Path, postgres_url: str) -> None:
    for _ in range(2):
        for source in ("some.cdxj", "a.wacz"):
            done = within("extract", source, "--wrapper", "food.json", "-o", f"{postgres_url}/food")
            assert done.returncode == 0, done.stderr
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT url, position, name FROM food ORDER BY url").fetchall()
    names = {page.url: restaurants().extract(page).values["name"][0] for page in PAGES}
    assert found == [(url, 1, name) for url, name in sorted(names.items())]


def test_records_of_lists_have_their_positions(place: Path, postgres_url: str) -> None:
    page = of_kind(guide(), "list")[0].page
    (place / "lists.json").write_text(lists().to_json(), encoding="utf-8")
    (place / "lists.jsonl").write_text(
        json.dumps({"url": page.url, "html": page.html.decode()}), encoding="utf-8"
    )
    done = within("extract", "lists.jsonl", "--wrapper", "lists.json", "-o", f"{postgres_url}/food")
    assert done.returncode == 0, done.stderr
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT url, position FROM food ORDER BY position").fetchall()
    assert found == [(page.url, number) for number in range(1, len(lists().extract_all(page)) + 1)]
    assert len(found) > 1
