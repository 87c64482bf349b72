"""A crawl shares its workspace with others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from siteloom.core.errors import NoPageImported, StoreBusy, UsageError
from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.settings import CrawlSettings, Settings, StoreSettings
from siteloom.operations.context import Context
from siteloom.operations.crawl import CrawlRequest, crawl, planned_crawl
from siteloom.operations.page_import import import_pages
from siteloom.sources.crawling import crawl_source
from siteloom.sources.crawling.crawl_journal import CrawlJournal, DiscoveredLinks, DiscoveredUrl, FetchedUrl
from siteloom.sources.page_source import Items, SourceItem
from siteloom.store.packs import page_writer as store_writer
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.store.helpers import newest, page, put


@dataclass(frozen=True)
class Interleaved(Items):
    """A source between whose pages another writer puts the same and others into the store."""

    other: Store

    def read(self) -> Iterator[SourceItem]:
        for item in self.items:
            yield item
            if isinstance(item, Page):
                put(self.other, item, page(item.url + "/other"))


def test_others_can_write_while_pages_are_waited_for(
    store: Store, store_settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "_PAGES_OF_A_BLOCK", 3)
    failure = Failure("http://a.example/gone", "status 404")
    items: list[SourceItem] = [*(page(f"http://a.example/{number}") for number in range(7)), failure]
    committed: list[int] = []
    with closing(open_store(store_settings)) as other:

        def count() -> None:
            kept = sum(url.count("/") == 3 for url in newest(other))
            committed.append(kept)

        report = import_pages(store, [Interleaved(items, other)], verb="crawl", on_commit=count)
    assert report.kept == 7
    assert len(newest(store)) == 14
    assert committed == [3, 6, 7]
    (run,) = [run for run in store.runs(20) if run.verb == "crawl"]
    assert run.status == "done"
    assert list(store.failures(run.id)) == [failure]


@dataclass(frozen=True)
class Meanwhile(Items):
    """A source that another process writes during, but for its end."""

    other: Store

    def read(self) -> Iterator[SourceItem]:
        with self.other.recording("cluster", {}):
            yield from self.items


def test_while_another_writes_pages_go_on_coming(
    store: Store, store_settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "_PAGES_OF_A_BLOCK", 3)
    items = [page(f"http://a.example/{number}") for number in range(5)]
    commits = []
    with closing(open_store(store_settings)) as other:
        crawl_source = Meanwhile(items, other)
        report = import_pages(
            store, [crawl_source], verb="crawl", on_commit=lambda: commits.append(len(newest(other)))
        )
    assert commits == [5]
    assert report.new == 5


def test_what_is_no_page_is_noted_in_time_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "_SECONDS_WAITING", 0)
    gone = Failure("http://a.example/gone", "status 404")
    noted: list[list[Failure]] = []

    def note() -> None:
        noted.append(list(store.failures(store.runs(1)[0].id)))

    import_pages(
        store, [Items([Skipped("http://a.example/list", "walked"), gone])], verb="crawl", on_commit=note
    )
    assert noted == [[], [gone], [gone]]


class Messages:
    """Keeps what an operation reports."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.messages: list[str] = []

    def start(self, message: str, total: int | None = None, unit: str = "page", done: int = 0) -> None:
        self.stages.append(f"{message}: {done} of {total} {unit}s")

    def advance(self, count: int = 1) -> None:
        pass

    def message(self, text: str) -> None:
        self.messages.append(text)


START = CrawlRequest(start="http://a.example/", most_pages=5)


def test_a_crawl_that_ends_early_is_not_finished(
    store: Store, store_settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_source, "_PROGRAM", "no.such.program")
    plan = planned_crawl(Settings(), START)
    journal = CrawlJournal.of(store.folder, plan, None)
    known = DiscoveredLinks((DiscoveredUrl("http://a.example/", 0), DiscoveredUrl("http://a.example/1", 1)))
    journal.append([known])
    before = journal.read()
    context = Context(store=store, settings=Settings())
    with pytest.raises(NoPageImported, match="No page could be read: process lost") as caught:
        crawl(context, START)
    assert not caught.value.result.is_finished
    assert caught.value.result.failures == {"process lost": 1}
    assert journal.read() == before

    journal.append([FetchedUrl("http://a.example/", "http://a.example/", is_collected=True)])
    told = Messages()
    result = crawl(replace(context, progress=told), START)  # a page was fetched by the earlier part
    assert (result.is_finished, result.pages_before, result.pages) == (False, 1, 0)
    assert told.stages == ["Fetching: 1 of 5 pages"]
    assert "stopped after 1 page: going on from there, with 1 known URLs left" in told.messages[0]


def test_one_crawl_at_a_time(store: Store, store_settings: StoreSettings) -> None:
    told = Messages()
    with (
        closing(open_store(store_settings)) as other,
        store.collecting("crawl", {}, 1, lambda: None),
        pytest.raises(StoreBusy, match=r"Another crawl \(process \d+\)"),
    ):
        crawl(Context(store=other, settings=Settings(), progress=told), CrawlRequest(urls=("a.example",)))
    assert told.stages == []


def test_a_request_is_planned_with_the_settings() -> None:
    settings = Settings(crawl=CrawlSettings(most_pages=30, delay=2, private=True))
    one = planned_crawl(settings, CrawlRequest(urls=("a.example", "http://a.example/b"), delay=0.5))
    assert (one.urls, one.most_pages, one.follows) == (("https://a.example", "http://a.example/b"), 2, False)
    assert (one.settings.delay, one.settings.private) == (0.5, True)
    assert planned_crawl(settings, CrawlRequest(urls=("a.example",), follow=True)).most_pages == 30
    assert planned_crawl(settings, START).urls == ("http://a.example/",)
    with pytest.raises(UsageError, match="There is nothing to fetch"):
        planned_crawl(settings, CrawlRequest())
    with pytest.raises(UsageError, match="At least one page"):
        planned_crawl(settings, replace(START, most_pages=0))
