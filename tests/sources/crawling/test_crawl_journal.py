"""The journal of a crawl that was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import StoreError
from siteloom.sources.crawling.crawl_journal import (
    CrawlJournal,
    CrawlProgress,
    DiscoveredLinks,
    DiscoveredUrl,
    FetchedUrl,
)
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.sources.crawling.frontier import Frontier
from siteloom.sources.crawling.url_filters import UrlPatterns

CRAWL = Crawl(("http://x.example/",), 10, follows=True)
A, B, C = (
    DiscoveredUrl("http://x.example/", 0),
    DiscoveredUrl("http://x.example/b", 1),
    DiscoveredUrl("http://x.example/c/ü", 2, 1),
)
A_DONE, B_DONE = FetchedUrl(A.url, A.url, is_collected=True), FetchedUrl(B.url, "", is_collected=False)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    journal = CrawlJournal.of(tmp_path, CRAWL, None)
    assert journal.read() == CrawlProgress()
    journal.append([DiscoveredLinks((A,))])
    journal.append([DiscoveredLinks((B,)), A_DONE])
    assert journal.read() == CrawlProgress((A, B), (A_DONE,))
    assert journal.read().pages == 1
    journal.remove()
    journal.remove()
    assert journal.read() == CrawlProgress()


@given(st.integers(0, 400))
def test_a_journal_that_was_cut_off_anywhere_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    journal = CrawlJournal(tmp_path_factory.mktemp("workspace"), "crawls/a.jsonl")
    journal.append([DiscoveredLinks((A, B)), A_DONE, DiscoveredLinks((C,)), B_DONE])
    whole = journal.file.read_bytes()
    journal.file.write_bytes(whole[:cut])
    before = journal.read()
    assert set(before.fetched) <= {A_DONE, B_DONE}
    journal.append([DiscoveredLinks((DiscoveredUrl("http://x.example/d", 1),))])
    after = journal.read()
    assert after.discovered[-1].url == "http://x.example/d"
    assert after.discovered[:-1] == before.discovered
    assert after.fetched == before.fetched


def test_each_crawl_has_its_own_and_more_pages_go_on_with_it(tmp_path: Path) -> None:
    others = [
        Crawl(("http://y.example/",), 10, follows=True),
        Crawl(CRAWL.urls, 10, follows=True, patterns=UrlPatterns(("/a/*",))),
        Crawl(CRAWL.urls, 10, follows=True, with_sitemaps=True),
        Crawl(CRAWL.urls, 10, follows=True, with_requisites=True),
    ]
    journals = {
        CrawlJournal.of(tmp_path, crawl, site) for crawl in (CRAWL, *others) for site in (None, "shop")
    }
    assert len(journals) == 10
    assert CrawlJournal.of(tmp_path, Crawl(CRAWL.urls, 500, follows=True), None) in journals


def test_one_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "crawls").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        CrawlJournal.of(tmp_path, CRAWL, None).append([A_DONE])


def test_a_frontier_goes_on_where_it_was() -> None:
    frontier = Frontier(3)
    frontier.resume(CrawlProgress((A, B, C), (A_DONE, B_DONE)))
    assert not frontier.add(A)
    assert frontier.next_url() == C
    frontier.add(DiscoveredUrl("http://x.example/e", 1))
    frontier.ended(is_collected=True)
    assert frontier.next_url() == DiscoveredUrl("http://x.example/e", 1)
    frontier.ended(is_collected=True)
    assert not frontier.has_urls_left  # three pages, one of them from before
