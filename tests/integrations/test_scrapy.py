"""The Scrapy add-on in real projects: what they crawl from a real server, and what becomes of it."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from itemadapter import ItemAdapter
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Request, Response
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from siteloom import Example, Page, Wrapper, learn
from siteloom.core.errors import OutputError, WrapperError
from siteloom.core.model import Provenance, Record, Skipped
from siteloom.core.settings import StoreSettings
from siteloom.extraction.extractor import Extractor
from siteloom.integrations.scrapy.addon import Siteloom
from siteloom.integrations.scrapy.archive_pages import ArchiveMiddleware, PageKeeper
from siteloom.integrations.scrapy.items import ExtractionMiddleware, ItemMaker, SiteloomItem
from siteloom.store.workspace_folder import open_store
from siteloom.wrappers.matching import NamedWrapper
from tests.apps.demo.sites import of_kind
from tests.coroutines import awaited
from tests.integrations.guide_proxy import GUIDE, MOVED, NO_PAGE, ORIGIN, START, served_guide
from tests.patience import SECONDS
from tests.sources.reading import read

RESTAURANTS = of_kind(GUIDE, "restaurant")
LISTS = of_kind(GUIDE, "list")
EVENTS = of_kind(GUIDE, "event")
NAMES = ("name", "address", "cuisine", "phone")
SERVED = [one.page.url for one in (*RESTAURANTS[:12], LISTS[0], *EVENTS[:3])]


@cache
def restaurants() -> Wrapper:
    examples = [
        Example(one.page, {name: one.truth[name] for name in NAMES}) for one in RESTAURANTS[:5] if one.truth
    ]
    return learn(examples, [one.page for one in RESTAURANTS[:40]])


@cache
def lists() -> Wrapper:
    return learn([Example(LISTS[0].page, records=LISTS[0].records[:3])], [one.page for one in LISTS])


def records(*wrappers: Wrapper) -> list[Record]:
    """What `siteloom extract` gives of the pages that are served."""
    extractor = Extractor([NamedWrapper(f"w{number}", None, one) for number, one in enumerate(wrappers)])
    served = [one.page for one in GUIDE if one.page.url in SERVED]
    return [record for page in served for record in extractor.extract(page).records]


SPIDERS = """
import scrapy
from scrapy.spiders import CrawlSpider, Rule
from scrapy.linkextractors import LinkExtractor

START = "{start}"


class Links(CrawlSpider):
    name = "links"
    start_urls = [START]
    rules = [Rule(LinkExtractor())]


class Own(scrapy.Spider):
    name = "own"
    custom_settings = {own_settings}

    async def start(self):
        yield scrapy.Request(START, self.links)
        for url in {urls}[2:4]:
            yield scrapy.Request(url)  # and there is no parse

    async def links(self, response):
        yield {{"title": response.css("title::text").get()}}
        for link in response.css("a::attr(href)").getall()[:2]:
            yield response.follow(link, self.broken)

    def broken(self, response):
        yield {{"seen": response.url}}
        raise ValueError("the user's own mistake")
"""


# Two crawlers of one process, as Scrapy's documentation has it.
SCRIPT = """
import json
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

process = CrawlerProcess(get_project_settings())
crawlers = [process.create_crawler(name) for name in ("links", "own")]
for crawler in crawlers:
    process.crawl(crawler)
process.start()
print(json.dumps([crawler.stats.get_stats() for crawler in crawlers], default=str))
"""


class Crawled(NamedTuple):
    """A project after its crawls: its folder, what they logged, and what each spider counted."""

    folder: Path
    log: str
    links: dict[str, int]
    own: dict[str, int]

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """One spider has wrappers from files and keeps pages, the other has its wrapper from a workspace."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "wrappers").mkdir()
    (folder / "wrappers/food.json").write_text(restaurants().to_json())
    (folder / "wrappers/lists.json").write_text(lists().to_json())
    with closing(open_store(StoreSettings(str(folder / "learned")), create=True)) as store:
        store.save_wrapper("food", "larkmoor-guide.example", restaurants().to_json(), "learn")
    with served_guide(*SERVED) as proxy:
        return crawl_in(folder, proxy)


def crawl_in(folder: Path, proxy: str) -> Crawled:
    records_only = {
        "format": "jsonlines",
        "item_classes": ["siteloom.integrations.scrapy.SiteloomItem"],
    }
    own_settings = {
        "SITELOOM_WRAPPERS": [],
        "SITELOOM_WORKSPACE": "learned",
        "SITELOOM_KEEP_UNMATCHED": False,
        "SITELOOM_WARC": None,
        "FEEDS": {"own.jsonl": {"format": "jsonlines"}, "records.jsonl": records_only},
    }
    settings = {
        "BOT_NAME": "shop",
        "SPIDER_MODULES": ["shop.spiders"],
        "ADDONS": {"siteloom.integrations.scrapy.Siteloom": 500},
        "SITELOOM_WRAPPERS": ["wrappers"],
        "SITELOOM_KEEP_UNMATCHED": True,
        "SITELOOM_WARC": "crawl.warc.gz",
        "FEEDS": {"items.jsonl": {"format": "jsonlines"}, "items.csv": {"format": "csv"}},
        "ROBOTSTXT_OBEY": True,
        "TELNETCONSOLE_ENABLED": False,
        "DOWNLOAD_DELAY": 0,
        "DEPTH_LIMIT": 1,
    }
    (folder / "shop").mkdir()
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (folder / "shop/__init__.py").touch()
    (folder / "shop/spiders.py").write_text(
        SPIDERS.format(start=START, urls=SERVED, own_settings=own_settings)
    )
    (folder / "shop/settings.py").write_text(
        "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        check=False,
        cwd=folder,
        env={**os.environ, "http_proxy": proxy},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    links, own = map(counted, json.loads(done.stdout.splitlines()[-1]))
    return Crawled(folder, done.stderr, links, own)


def counted(stats: dict[str, Any]) -> dict[str, int]:
    """What Siteloom has counted, among all that Scrapy has."""
    own = "siteloom/"
    return {name.removeprefix(own): count for name, count in stats.items() if name.startswith(own)}


def test_a_project_needs_one_line_to_have_records_in_its_feeds_and_pages_kept(crawled: Crawled) -> None:
    expected = records(restaurants(), lists())
    rows = crawled.rows("items.jsonl")
    assert Counter(row["url"] for row in rows) == Counter(record.url for record in expected)
    by_url = {record.url: record for record in expected if record.url in SERVED[:12]}
    for row in rows:
        if row["_wrapper"] == "food":
            assert {row[name] for name in ("name", "address")} == {
                by_url[row["url"]].values[name][0] for name in ("name", "address")
            }
            assert row["cuisine"] == list(by_url[row["url"]].values["cuisine"])
            assert 0 < row["_confidence"] <= 1
    with (crawled.folder / "items.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(rows)
    attributes = dict.fromkeys([*restaurants().attributes, *lists().attributes])
    assert list(table[0]) == ["url", *attributes, "_wrapper", "_confidence"]

    stats = crawled.links
    assert stats["records"] == len(rows)
    assert stats["wrapper/food"] == 12
    assert stats["wrapper/lists"] == len(rows) - 12
    assert stats["pages"] == len(SERVED) + 1  # with the start page
    assert stats["unmatched"] == stats["kept"] == 4
    assert f"Siteloom: pages {stats['pages']}, records {len(rows)}, unmatched 4, kept 4" in crawled.log

    with closing(open_store(StoreSettings(str(crawled.folder / ".siteloom")))) as store:
        kept = {page.url: page for page in store.pages()}
    assert kept.keys() == {START, *SERVED[-3:]}
    assert kept[EVENTS[0].page.url].html == EVENTS[0].page.html
    assert kept[EVENTS[0].page.url].charset == "utf-8"
    assert_all_archived(crawled.folder / "crawl.warc.gz", stats["archived"])


def assert_all_archived(archive: Path, count: int) -> None:
    """Every answer is there, pages are as they were served, and there is nothing that cannot be read."""
    items = read(archive)
    assert len(items) == count
    pages = [item for item in items if isinstance(item, Page)]
    assert {page.url: page.html for page in pages if page.url != START} == {
        one.page.url: one.page.html for one in GUIDE if one.page.url in SERVED
    }
    assert Counter(item for item in items if isinstance(item, Skipped)) == Counter(
        [
            Skipped(f"{ORIGIN}/robots.txt", "not HTML but text/plain"),
            Skipped(MOVED, "status 301"),
            Skipped(NO_PAGE, "not HTML but application/json"),
            Skipped(f"{ORIGIN}/nowhere", "status 404"),
        ]
    )
    assert b"Content-Encoding: gzip" in subprocess.check_output(["gzip", "-dc", archive])


def test_what_callbacks_yield_goes_through_and_no_mistake_or_lack_of_theirs_costs_a_record(
    crawled: Crawled,
) -> None:
    rows = crawled.rows("own.jsonl")
    assert crawled.rows("records.jsonl") == [row for row in rows if "_wrapper" in row]
    assert [row for row in rows if "title" in row] == [{"title": "Start"}]
    assert {row["seen"] for row in rows if "seen" in row} == set(SERVED[:2])
    assert sorted(row["url"] for row in rows if "url" in row) == sorted(SERVED[:4])
    assert crawled.log.count("ValueError: the user's own mistake") == 2
    assert "NotImplementedError" not in crawled.log
    assert crawled.own == {
        "pages": 5,
        "records": 4,
        "wrapper/food": 4,
        "unmatched": 1,
        "failed/no wrapper for the URL": 1,
    }


def middleware(**settings: object) -> ExtractionMiddleware:
    """As Scrapy makes it in the current folder."""
    return ExtractionMiddleware.from_crawler(get_crawler(NamedSpider, settings))


class NamedSpider(Spider):
    name = "named"


def response(page: Page, **more: Any) -> HtmlResponse:
    return HtmlResponse(page.url, body=page.html, request=Request(page.url), **more)


async def outputs(asked: ExtractionMiddleware, answer: Response, yielded: Sequence[object] = ()) -> list[Any]:
    async def result() -> AsyncIterator[object]:
        for one in yielded:
            yield one

    return [one async for one in asked.process_spider_output(answer, result())]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_wrapper_a_project_is_told_what_to_do(empty_folder: Path) -> None:
    with pytest.raises(NotConfigured, match="no wrapper: name files in SITELOOM_WRAPPERS, or learn one"):
        middleware()
    with pytest.raises(NotConfigured, match="SITELOOM_WARC names no archive"):
        ArchiveMiddleware.from_crawler(get_crawler(NamedSpider))


def test_what_is_named_but_cannot_be_used_stops_the_crawl_before_it_begins(empty_folder: Path) -> None:
    with pytest.raises(WrapperError, match=r"There is no wrapper .*shop\.json: check the path"):
        middleware(SITELOOM_WRAPPERS=["shop.json"])
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        ArchiveMiddleware.from_crawler(get_crawler(NamedSpider, {"SITELOOM_WARC": "nowhere/a.warc"}))


def test_a_project_may_place_the_middlewares_itself() -> None:
    own = {"siteloom.integrations.scrapy.ExtractionMiddleware": 7}
    settings = Settings({"SITELOOM_WARC": "a.warc", "SPIDER_MIDDLEWARES": own})
    Siteloom().update_settings(settings)
    assert settings.getdict("SPIDER_MIDDLEWARES") == own
    assert settings.getdict("DOWNLOADER_MIDDLEWARES") == {ArchiveMiddleware: 950}


def test_what_is_no_good_page_is_left_alone(empty_folder: Path) -> None:
    Path("food.json").write_text(restaurants().to_json())
    page = RESTAURANTS[0].page
    asked = middleware(SITELOOM_WRAPPERS="food.json")
    [item] = awaited(outputs(asked, response(page)))
    assert ItemAdapter.is_item(item)
    assert isinstance(item, SiteloomItem)
    assert item.record.values["name"] == (item["name"],)
    assert item.copy() == item
    assert item.copy().record is item.record
    for other in (
        response(page, status=404),
        Response(page.url, body=page.html),
        response(replace(page, url="http://elsewhere.example/")),
        HtmlResponse(page.url, body=page.html, request=Request(page.url, method="HEAD")),
    ):
        assert awaited(outputs(asked, other, [{"a": 1}])) == [{"a": 1}]


def test_a_page_that_breaks_the_extraction_breaks_nothing_else(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Path("food.json").write_text(restaurants().to_json())
    crawler = get_crawler(NamedSpider, {"SITELOOM_WRAPPERS": ["food.json"]})
    asked = ExtractionMiddleware.from_crawler(crawler)

    def broken(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(Extractor, "extract", broken)
    assert awaited(outputs(asked, response(RESTAURANTS[0].page), [{"a": 1}])) == [{"a": 1}]
    assert crawler.stats is not None
    assert crawler.stats.get_value("siteloom/failed/extraction failed") == 1
    assert f"Extraction failed on {RESTAURANTS[0].page.url}" in caplog.text


def test_a_body_that_was_rendered_is_read_as_whoever_rendered_it_says(empty_folder: Path) -> None:
    Path("food.json").write_text(restaurants().to_json())
    page = next(one.page for one in RESTAURANTS if one.truth and not one.truth["name"][0].isascii())
    asked = middleware(SITELOOM_WRAPPERS=["food.json"])
    said = {"Content-Type": "text/html; charset=iso-8859-5"}
    [plain] = awaited(outputs(asked, response(page)))
    [rendered] = awaited(outputs(asked, response(page, headers=said, encoding="utf-8")))
    [served] = awaited(outputs(asked, response(page, headers=said)))
    assert dict(rendered) == dict(plain)
    assert dict(served) != dict(plain)


def test_attributes_that_are_called_as_other_fields_are_have_fields_of_their_own() -> None:
    attributes = {"url": ("/a",), "_wrapper": ("x",), "keys": ("k",), "fields": ("f",)}
    rules = {name: replace(lists().attributes["name"]) for name in attributes}
    named = NamedWrapper("odd", None, replace(lists(), attributes=rules))
    origin = (Provenance("r", "x", "n", 0.5),)
    record = Record("http://a.example/", attributes, {}, dict.fromkeys(attributes, origin))
    item = ItemMaker([named]).item(record, named)
    assert ItemAdapter(item).asdict() == {
        "url": "http://a.example/",
        "values.url": "/a",
        "values._wrapper": "x",
        "keys": "k",
        "fields": "f",
        "_wrapper": "odd",
        "_confidence": 0.5,
    }


def test_pages_are_kept_some_at_a_time_and_those_that_cannot_be_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("siteloom.integrations.scrapy.archive_pages._PAGES_AT_A_TIME", 2)
    settings = StoreSettings(str(tmp_path / "workspace"))
    keeper = PageKeeper(settings, "test")
    for one in RESTAURANTS[:9]:
        keeper.add(one.page)
    assert keeper.close() == 9
    with closing(open_store(settings)) as store:
        assert {page.url for page in store.pages()} == {one.page.url for one in RESTAURANTS[:9]}

    keeper = PageKeeper(settings, "test")
    shutil.rmtree(tmp_path / "workspace")
    keeper.add(RESTAURANTS[9].page)
    assert keeper.close() == 0
    assert "1 pages are lost to the workspace" in caplog.text


def test_neither_what_the_cache_answers_nor_what_has_no_body_is_archived(
    empty_folder: Path,
) -> None:
    archive = ArchiveMiddleware.from_crawler(get_crawler(NamedSpider, {"SITELOOM_WARC": "a.warc"}))
    page = RESTAURANTS[0].page
    request = Request(page.url)
    headers = {"Content-Type": "text/html"}
    for answer in (response(page, headers=headers), response(page, headers=headers, flags=["cached"])):
        assert archive.process_response(request, answer) is answer
    archive.process_response(Request(page.url, method="HEAD"), HtmlResponse(page.url, headers=headers))
    archive.close()
    assert [item.url for item in read(empty_folder / "a.warc")] == [page.url]


def test_all_settings_and_counts_are_documented() -> None:
    folder = Path(__file__).parents[2]
    document = (folder / "docs/how-to/use-with-scrapy.md").read_text()
    for file in (folder / "src/siteloom/integrations/scrapy").glob("*.py"):
        for name in re.findall(r"SITELOOM_[A-Z_]+|siteloom/[a-z_]+", file.read_text()):
            assert name in document
