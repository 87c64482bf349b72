"""A page whose URL is too large is a failure wherever it comes from, and costs no other page."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.settings import CrawlSettings, StoreSettings
from siteloom.core.urls import MOST_CHARACTERS, MOST_PARTS
from siteloom.operations.page_import import import_pages
from siteloom.sources.crawling.crawl_journal import DiscoveredUrl
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.sources.crawling.frontier import Frontier
from siteloom.sources.crawling.url_filters import checked_url
from siteloom.sources.open_sources import open_source
from siteloom.sources.page_source import refusal
from siteloom.sources.rows_to_seeds import read_seeds
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command, one_sentence
from tests.patience import SECONDS
from tests.sources.crawling.web_site import served_site
from tests.sources.warc_records import page_record

START = "http://a.example/"
LONGEST = START + "x" * (MOST_CHARACTERS - len(START))
MOST = START + "x/" * (MOST_PARTS - 4) + "y"
TOO_LONG = LONGEST + "x"
TOO_MANY = START + "/".join("x" * 400_000)
OVERSIZED = (TOO_LONG, MOST + "/z", TOO_MANY, f"{START}?{'&'.join('x' * MOST_PARTS)}")
GOOD = (LONGEST, MOST, f"{START}good")


def write_jsonl(folder: Path, urls: tuple[str, ...]) -> Path:
    file = folder / "pages.jsonl"
    file.write_text("".join(json.dumps({"url": url, "html": "<p>x"}) + "\n" for url in urls))
    return file


def write_warc(folder: Path, urls: tuple[str, ...]) -> Path:
    file = folder / "pages.warc"
    file.write_bytes(b"".join(page_record(url, b"<p>x") for url in urls))
    return file


def write_parquet(folder: Path, urls: tuple[str, ...]) -> Path:
    file = folder / "pages.parquet"
    pq.write_table(pa.table({"url": list(urls), "html": ["<p>x"] * len(urls)}), file)
    return file


def write_indexed_folder(folder: Path, urls: tuple[str, ...]) -> Path:
    (folder / "page.html").write_text("<p>x")
    # A field of CSV has at most 131,072 characters, in Python.
    rows = "".join(f"page.html,{url[:100_000]}\n" for url in urls)
    (folder / "index.csv").write_text(f"file,url\n{rows}")
    return folder


def write_folder(folder: Path, urls: tuple[str, ...]) -> Path:
    for number, url in enumerate(urls):
        (folder / f"{number}.html").write_text(f'<head><link rel="canonical" href="{url}"></head><p>x')
    return folder


Write = Callable[[Path, tuple[str, ...]], Path]
WRITERS: tuple[Write, ...] = (write_jsonl, write_warc, write_parquet, write_indexed_folder, write_folder)


@pytest.mark.parametrize("write", WRITERS)
def test_such_a_page_is_a_failure_and_the_others_are_kept(tmp_path: Path, write: Write) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    source = open_source(write(pages, (*OVERSIZED, *GOOD)))
    with closing(open_store(StoreSettings(str(tmp_path / "workspace")), create=True)) as store:
        report = import_pages(store, [source])
        # What reads WARC takes no header as long as the longest of these for one.
        damaged = {"damaged record": 1} if write is write_warc else {}
        assert report.failures == {"URL too large": len(OVERSIZED) - len(damaged), **damaged}
        assert {page.url for page in store.pages()} == set(GOOD)
        failures = list(store.failures(report.run_id))
    assert all(len(failure.url) < 300 for failure in failures)
    assert {failure.detail for failure in failures} >= {"it has 16,001 characters; at most 16,000 are taken"}


def test_what_comes_from_a_program_is_no_exception(sqlite_store: Store) -> None:
    with sqlite_store.ingesting({}, jobs=1) as (_, writer):
        for url in OVERSIZED:
            for item in (Page(url, b"<p>x"), Resource(url, b"x", "image/png")):
                failure = writer.add(item, "a.example")
                assert isinstance(failure, Failure)
                assert failure.reason == "URL too large"
    assert list(sqlite_store.pages()) == []
    assert all(refusal(Page(url, b""), "a.example") is None for url in GOOD)


def test_a_crawl_follows_no_such_link_and_does_not_end_at_such_a_redirection() -> None:
    frontier = Frontier(9)
    short_enough = f"{START}?{'&'.join('x' * (MOST_PARTS + 1))}"
    assert len(short_enough) < 2_083
    assert not frontier.add(DiscoveredUrl(short_enough, 1))
    long_path = "/" + "x" * MOST_CHARACTERS
    with served_site(also={long_path: b"<h1>long", "/here": b"<h1>here"}) as site:
        asked = f"{site.address}/to{long_path}", f"{site.address}/here"
        crawl = Crawl(asked, len(asked), settings=CrawlSettings(delay=0, timeout=SECONDS, private=True))
        items = [item for item in crawl.read() if not isinstance(item, Resource)]
    assert [(item.url, item.reason) for item in items if isinstance(item, Failure)] == [
        (f"{site.address}{long_path}"[:200] + "...", "URL too large")
    ]
    assert [item.url for item in items if isinstance(item, Page)] == [asked[1]]


def test_an_address_that_is_asked_for_may_be_longer_than_a_link() -> None:
    path = "/" + "x" * 3_000
    with served_site(also={path: b"<h1>here"}) as site:
        url = site.address + path
        (item,) = Crawl((url,), 1, settings=CrawlSettings(delay=0, timeout=SECONDS, private=True)).read()
    assert isinstance(item, Page)
    assert item.url == url


@pytest.mark.parametrize("url", OVERSIZED)
def test_a_person_is_told_in_a_sentence(url: str) -> None:
    with pytest.raises(
        UsageError, match=r"^The address .* is too large: it has .* at most .* are taken\.$"
    ) as caught:
        checked_url(url)
    assert len(str(caught.value)) < 400


def test_whoever_types_a_command_is_told_so_too(tmp_path: Path) -> None:
    assert "is too large: it has 16,001 characters" in one_sentence(Command(tmp_path)("crawl", TOO_LONG))


@pytest.mark.parametrize("key", ["_url", "url"])
def test_a_known_record_with_such_a_url_is_left_out(tmp_path: Path, key: str) -> None:
    """Also one that was extracted elsewhere."""
    urls = (*OVERSIZED, *GOOD)
    record = {"wrapper": "w", "values": {"name": ["Oak"]}} if key == "url" else {"name": "Oak"}
    file = tmp_path / "known.jsonl"
    file.write_text("".join(json.dumps({key: url, **record}) + "\n" for url in urls))
    problems: list[Failure | Skipped] = []
    assert {seed.url for seed in read_seeds(str(file), on_problem=problems.append)} == set(GOOD)
    assert [problem.reason for problem in problems] == ["URL too large"] * len(OVERSIZED)
    assert all(len(repr(problem)) < 400 for problem in problems)
