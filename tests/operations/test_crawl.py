"""A crawl shares its workspace with others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from siteloom.core.errors import StoreBusy
from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.settings import StoreSettings
from siteloom.operations.crawl import crawl_into
from siteloom.operations.ingest import ingest
from siteloom.sources.crawling import crawl_source
from siteloom.sources.crawling.crawl_journal import (
    CrawlJournal,
    CrawlProgress,
    DiscoveredLinks,
    DiscoveredUrl,
)
from siteloom.sources.crawling.crawl_source import Crawl
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

        report = ingest(store, [Interleaved(items, other)], verb="crawl", on_commit=count)
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
        report = ingest(
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

    ingest(store, [Items([Skipped("http://a.example/list", "walked"), gone])], verb="crawl", on_commit=note)
    assert noted == [[], [gone], [gone]]


def test_a_crawl_that_ends_early_is_not_finished(
    store: Store, store_settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_source, "_PROGRAM", "no.such.program")
    crawl = Crawl(("http://a.example/",), 5, follows=True)
    journal = CrawlJournal.of(store.folder, crawl, None)
    before = DiscoveredLinks((DiscoveredUrl("http://a.example/", 0), DiscoveredUrl("http://a.example/1", 1)))
    journal.append([before])
    begun: list[CrawlProgress] = []
    report = crawl_into(store, crawl, on_begin=begun.append)
    assert [one.discovered for one in begun] == [before.urls]
    assert not report.is_finished
    assert report.ingested.failures == {"process lost": 1}
    assert [journal.read()] == begun


def test_one_crawl_at_a_time(store: Store, store_settings: StoreSettings) -> None:
    with (
        closing(open_store(store_settings)) as other,
        store.collecting("crawl", {}, 1, lambda: None),
        pytest.raises(StoreBusy, match=r"Another crawl \(process \d+\)"),
    ):
        crawl_into(other, Crawl(("http://a.example/",), 1), on_begin=lambda _: pytest.fail("it has not"))
