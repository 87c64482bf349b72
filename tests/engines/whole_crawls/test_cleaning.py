"""Crawls cleaned shard by shard and site by site: what a store of the same pages would give."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from siteloom.core.errors import MissingExtra, SourceError
from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.settings import ParseSettings, StoreSettings
from siteloom.engines.engine import Engine, Result, RowFiles, Shard, Work
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.whole_crawls import clean_crawl as bulk_cleaning
from siteloom.engines.whole_crawls import page_batches
from siteloom.engines.whole_crawls.clean_crawl import _SitePages, clean_in_bulk
from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, row_schema
from siteloom.engines.whole_crawls.output_folder import OutputFolder
from siteloom.engines.whole_crawls.page_batches import version_columns
from siteloom.extraction import clean_pages
from siteloom.extraction.clean_pages import (
    CLEANED_COLUMNS,
    CleanedForm,
    CleanedPage,
    Waiting,
    count_site,
    page_segments,
)
from siteloom.html.time_limit import LOST, Lost
from siteloom.operations.clean import clean_store, count_versions
from siteloom.operations.page_import import import_pages
from siteloom.sources.page_source import Items, SourceItem
from siteloom.store.queries import segments
from siteloom.store.workspace_folder import open_store
from siteloom.templates.template_text import LivingTime, SegmentRule
from siteloom.templates.text_blocks import Segmenter
from tests.apps.cli.command import Command, one_sentence
from tests.engines.whole_crawls.results import results
from tests.store.helpers import day, put

PARTS = 2
WITH_MAIN = pytest.mark.skipif(find_spec("trafilatura") is None, reason="needs the extra text")
FORMS = ["blocks", "text", "html", pytest.param("main", marks=WITH_MAIN)]


def page(site: str, number: int, *lines: str, on_day: int = 0) -> Page:
    """A page of a site with a menu, a text of its own, and further lines."""
    paragraphs = "".join(f"<p>{line}</p>" for line in (f"Own words of page {number} on {site}", *lines))
    html = f"<title>{number}</title><ul><li>Home<li>About {site}</ul><h1>Item {number}</h1>{paragraphs}"
    return Page(f"https://www.{site}/{number}", html.encode(), day(on_day))


SHOP, NEWS, TINY = "shop.example", "news.example", "tiny.example"
DEEP = Page(f"https://www.{SHOP}/deep", b"<div>" * 3_000, day(0))
EMPTY = Page(f"https://www.{NEWS}/no", b"")


def crawl() -> list[list[SourceItem]]:
    """Shards in which sites are mixed; pages come again, as they were or not, and some cannot be read.

    "Four" stands on four pages, one of which comes twice; "Five" on four, and on a version that is outdated.
    """
    shop = [page(SHOP, number, *(["Four", "Five"] if number < 4 else [])) for number in range(9)]
    news = [page(NEWS, number, "Read on") for number in range(6)]
    return [
        [shop[5], news[0], shop[0], Skipped("https://www.shop.example/a.pdf", "no HTML"), DEEP, news[1]],
        [shop[1], shop[2], page(SHOP, 6, "Five", on_day=-1), page(TINY, 1), news[2]],
        [],
        [
            news[3],
            shop[0],
            shop[6],
            page(NEWS, 4, "Of yesterday", on_day=-1),
            EMPTY,
        ],
        [Failure("crawl.warc:17", "cut off"), shop[3], shop[4], news[5], news[4], shop[7], shop[8]],
        [page(SHOP, 7, "Newer", on_day=1), Page("https://www.shop.example/\ud800", b"<p>no URL"), DEEP],
    ]


def in_bulk(
    folder: Path,
    shards: Sequence[Any],
    form: CleanedForm,
    rule: SegmentRule = "share",
    engine: Engine = LocalEngine(),
) -> Counts:
    run = BulkRun(engine, OutputFolder(str(folder)), "the same", PARTS, lambda *_: lambda _: None)
    return clean_in_bulk(run, shards, rule, form, ParseSettings())


def sources(shards: Sequence[Sequence[SourceItem]]) -> list[Items]:
    return [Items(items) for items in shards]


def rows_by_site(folder: Path) -> dict[str, list[dict[str, object]]]:
    """The rows of each site, file after file."""
    found: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
    for file in sorted(folder.glob("site=*/*.parquet")):
        found[file.parent.name.removeprefix("site=")] += pq.ParquetFile(file).read().to_pylist()
    return dict(found)


def told(folder: Path) -> list[tuple[str, str]]:
    files = sorted(folder.glob("_failures/*.parquet"))
    return sorted((row["url"], row["reason"]) for file in files for row in pq.read_table(file).to_pylist())


def of_store(
    folder: Path, shards: Sequence[Sequence[SourceItem]], form: CleanedForm, rule: SegmentRule = "share"
) -> tuple[dict[str, list[dict[str, object]]], list[str]]:
    """What a store of the same items gives by site, and the URLs of failures."""
    store = open_store(StoreSettings(workspace=str(folder)), create=True)
    try:
        import_pages(store, sources(shards))
        rows: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
        failed = []
        for found in clean_store(store, form=form, rule=rule):
            if isinstance(found, CleanedPage):
                row = found.row(form)
                rows[found.site].append({one.name: row[one.name] for one in CLEANED_COLUMNS[form]})
            else:
                failed.append(found.url)
        return dict(rows), failed
    finally:
        store.close()


@pytest.mark.parametrize("rule", get_args(SegmentRule))
@pytest.mark.parametrize("form", FORMS)
def test_pages_are_cleaned_as_those_of_a_store(form: CleanedForm, rule: SegmentRule, tmp_path: Path) -> None:
    counts = in_bulk(tmp_path / "out", sources(crawl()), form, rule)
    rows, failed = of_store(tmp_path / "store", crawl(), form, rule)
    assert rows_by_site(tmp_path / "out") == rows
    assert [len(rows[site]) for site in (SHOP, NEWS, TINY)] == [9, 6, 1]
    assert counts["cleaned"] == 16
    assert counts["skipped"] == 1
    assert sorted(failed) == [f"https://www.{NEWS}/no", f"https://www.{SHOP}/deep"]
    assert [url for url, _ in told(tmp_path / "out")] == [
        "crawl.warc:17",
        f"https://www.{NEWS}/no",
        f"https://www.{SHOP}/?",  # as it can be written
        f"https://www.{SHOP}/deep",
    ]
    assert sum(counts["failed"].values()) == 4


def test_each_version_is_counted_once_and_the_newest_is_cleaned(tmp_path: Path) -> None:
    in_bulk(tmp_path, sources(crawl()), "text", "paper")
    texts = {row["url"]: row["text"] for row in rows_by_site(tmp_path)[SHOP]}
    assert texts[f"https://www.{SHOP}/1"] == f"Item 1\nOwn words of page 1 on {SHOP}\nFour"
    assert texts[f"https://www.{SHOP}/7"] == f"Item 7\nOwn words of page 7 on {SHOP}\nNewer"


@pytest.mark.parametrize("form", FORMS)
def test_pages_without_text_are_cleaned_as_those_of_a_store(form: CleanedForm, tmp_path: Path) -> None:
    shards: list[list[SourceItem]] = [[Page(f"https://www.{TINY}/2", b"<div></div>", day(0)), page(TINY, 1)]]
    assert in_bulk(tmp_path / "out", sources(shards), form)["cleaned"] == 2
    assert rows_by_site(tmp_path / "out") == of_store(tmp_path / "store", shards, form)[0]


@pytest.mark.parametrize("form", ["blocks", "html"])
def test_packs_and_files_are_small_and_nothing_else_changes(
    form: CleanedForm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_bulk(tmp_path / "large", sources(crawl()), form)
    monkeypatch.setattr(page_batches, "_PAGES_OF_A_PACK", 2)
    monkeypatch.setattr(bulk_cleaning, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(bulk_cleaning, "_BYTES_OF_A_FILE", 1)
    monkeypatch.setattr(bulk_cleaning, "_WAITING_IN_MEMORY", 1)
    in_bulk(tmp_path / "small", sources(crawl()), form)
    assert rows_by_site(tmp_path / "small") == rows_by_site(tmp_path / "large")
    assert len(list((tmp_path / "small").glob(f"site={SHOP}/*.parquet"))) == 3


def test_a_site_is_counted_as_in_a_store_also_where_segments_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes back late is forgotten or not, by how many versions came; also those that are unreadable."""
    for module in (clean_pages, segments):
        monkeypatch.setattr(module, "LivingTime", partial(LivingTime, once=2, longest=5))
    pages = [
        page(SHOP, number, *(f"Each {turn}" for turn in range(2, 9) if number % turn == 0))
        for number in range(20)
    ]
    pages[4:4] = [DEEP]

    def counted(at_a_time: int) -> list[list[int]]:
        monkeypatch.setattr(clean_pages, "COUNTED_AT_A_TIME", at_a_time)
        monkeypatch.setattr("siteloom.operations.clean.COUNTED_AT_A_TIME", at_a_time)
        found = count_site(page_segments(one, ParseSettings(), Segmenter()) for one in pages)
        return [column.tolist() for column in found[1:]]

    assert counted(4) != counted(3)
    store = open_store(StoreSettings(workspace=str(tmp_path)), create=True)
    try:
        put(store, *pages)
        count_versions(store, SHOP)
        expected = store.counted_segments(SHOP).counts
    finally:
        store.close()
    assert counted(3) == [column.tolist() for column in expected[1:]]


@dataclass
class Breaking:
    """A shard that cannot be read the first time that it is read after so many times."""

    items: Sequence[SourceItem]
    good_reads: int
    reads: list[int] = field(default_factory=list)

    def read(self) -> Iterator[SourceItem]:
        self.reads.append(len(self.reads))
        if len(self.reads) == self.good_reads + 1:
            raise RuntimeError("the machine is gone")
        return iter(self.items)


@pytest.mark.parametrize("good_reads", [0, 1])
def test_a_run_that_was_stopped_goes_on(good_reads: int, tmp_path: Path) -> None:
    shards = [Breaking(items, good_reads if number == 3 else 9) for number, items in enumerate(crawl())]
    with pytest.raises(RuntimeError, match="the machine is gone"):
        in_bulk(tmp_path / "stopped", shards, "html")
    in_bulk(tmp_path / "stopped", shards, "html")
    in_bulk(tmp_path / "whole", sources(crawl()), "html")
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")
    assert [len(shard.reads) for shard in shards] == [2, 2, 1, 3, 2, 2]


class LosingEngine:
    """Runs shards as if the process had died at the third item of the first one."""

    def run(
        self,
        start: Callable[[], Work[Shard, Result]],
        shards: Sequence[tuple[int, Shard]],
        on_done: Callable[[int], object],  # noqa: ARG002 - of an engine
    ) -> list[tuple[int, Result]]:
        work = start()
        lost = {0: Lost({2: "was killed"})}
        return [(number, work(shard, lost.get(number, Lost({})), lambda _: None)) for number, shard in shards]

    def regroup(
        self,
        start: Callable[[], Any],
        rows: RowFiles,
        parts: Sequence[int],
        on_done: Callable[[int], object],
    ) -> list[tuple[int, Any]]:
        return LocalEngine().regroup(start, rows, parts, on_done)


@pytest.mark.parametrize("seen_again", [[Failure("c.warc", "connection failed")], crawl()[3][:1], []])
def test_pages_that_cannot_be_read_again_are_an_error_and_not_left_out(
    seen_again: list[SourceItem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []

    def read(shard: Items) -> Iterator[SourceItem]:
        reads.append(1)
        return iter(seen_again if len(reads) > len(crawl()) else shard.items)

    monkeypatch.setattr(Items, "read", read)
    with pytest.raises(SourceError, match="pages that were read before cannot be read again"):
        in_bulk(tmp_path, sources(crawl()), "html")
    monkeypatch.undo()
    in_bulk(tmp_path, sources(crawl()), "html")
    assert rows_by_site(tmp_path) == of_store(tmp_path / "store", crawl(), "html")[0]


@pytest.mark.parametrize("form", ["text", "html"])
def test_a_page_at_which_processes_die_is_a_failure(form: CleanedForm, tmp_path: Path) -> None:
    shards = crawl()
    in_bulk(tmp_path / "out", sources(shards), form, engine=LosingEngine())
    assert (f"https://www.{SHOP}/0", LOST) in told(tmp_path / "out")
    del shards[0][2]
    assert rows_by_site(tmp_path / "out") == of_store(tmp_path / "store", shards, form)[0]


@pytest.mark.parametrize(
    ("work", "form"), [("clean_tree", "html"), ("judge", "html"), ("clean_segments", "text")]
)
def test_a_page_that_breaks_the_work_on_it_is_a_failure(
    work: str, form: CleanedForm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(bulk_cleaning, work)
    calls: list[int] = []

    def fails(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) in (3, 7):
            raise RuntimeError("odd page")
        return real(*arguments)

    monkeypatch.setattr(bulk_cleaning, work, fails)
    counts = in_bulk(tmp_path, sources(crawl()), form)
    assert counts["failed"]["processing failed"] == 2
    assert [reason for _, reason in told(tmp_path)].count("processing failed") == 2
    assert counts["cleaned"] == 14


def test_a_machine_without_the_extractor_is_an_error_and_not_that_of_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(MissingExtra):
        in_bulk(tmp_path, sources(crawl()), "main")


def test_packs_are_sent_when_all_that_wait_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_batches, "_MOST_WAITING", 100)
    sent: list[tuple[str, list[int]]] = []
    gathered: page_batches.Packs[str, int] = page_batches.Packs(
        lambda kind, content: sent.append((kind, content))
    )
    for number, kind in enumerate("abcabc"):
        gathered.add(kind, number, 25)
    assert sent == [("a", [0, 3]), ("b", [1]), ("c", [2])]
    gathered.send_remaining()
    assert sent[3:] == [("b", [4]), ("c", [5])]


def test_of_batches_no_more_is_held_than_is_needed(tmp_path: Path) -> None:
    """As Spark sends them, all columns of a batch are in one piece of memory."""
    names = row_schema(*version_columns(), ("pack", pa.binary()))
    rows = [{"place": 1, "url": "u", "content": b"c", "pack": bytes(1_000_000)}]
    with pa.OSFile(str(tmp_path / "rows"), "wb") as file, pa.ipc.new_stream(file, names) as stream:
        for _ in range(9):
            stream.write_table(pa.Table.from_pylist(rows, names))
    with pa.OSFile(str(tmp_path / "rows")) as file, (tmp_path / "packs").open("w+b") as waiting:
        before = pa.total_allocated_bytes()
        pages = _SitePages(Waiting(waiting), pa.ipc.open_stream(file))
        assert pa.total_allocated_bytes() - before < 1_000_000
        assert len(pages._packs) == 9


def test_the_verb_gives_what_it_gives_without_an_engine(tmp_path: Path) -> None:
    siteloom = Command(tmp_path)
    for number, items in enumerate(crawl()):
        pages = [one for one in items if isinstance(one, Page) and one.url.isascii()]
        rows = [{"url": one.url, "html": one.html, "fetched_at": one.fetched_at} for one in pages]
        pq.write_table(
            pa.Table.from_pylist(rows or [{"url": "", "html": b""}]), tmp_path / f"{number}.parquet"
        )
    files = [f"{number}.parquet" for number in range(len(crawl()))]
    in_one = siteloom("clean", *files, "-o", "all.parquet")
    by_site = siteloom("clean", *files, "--engine", "local", "-o", "out")
    assert in_one.stderr.splitlines()[-1] == by_site.stderr.splitlines()[-2] == "16 pages cleaned."
    found = [row for rows in rows_by_site(tmp_path / "out").values() for row in rows]
    expected = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert sorted(found, key=lambda row: str(row["url"])) == sorted(expected, key=lambda row: row["url"])
    assert SHOP in by_site.stdout + by_site.stderr
    again = siteloom("clean", *files, "--engine", "local", "-o", "out")
    results = re.sub(r"^Stage .*\n", "", by_site.stderr, flags=re.MULTILINE)
    assert again.stderr == f"out is done already: this is what came of it.\n{results}"
    refused = siteloom("clean", *files, "--engine", "local", "-o", "out", "--rule", "paper")
    assert "holds the results of another run" in one_sentence(refused)


def test_mistakes_are_told_as_without_an_engine(tmp_path: Path) -> None:
    siteloom = Command(tmp_path)
    (tmp_path / "crawl.jsonl").write_text('{"url": "https://a.example/", "html": ""}\n')
    engine = ("--engine", "local", "-o", "out")
    in_bulk = siteloom("clean", "crawl.jsonl", *engine)
    assert one_sentence(in_bulk) == one_sentence(siteloom("clean", "crawl.jsonl", "-o", "x.parquet"))
    of_site = siteloom("clean", "crawl.jsonl", *engine, "--site", "a.example")
    assert one_sentence(of_site) == "--site does not go with --engine: leave it out."
