"""The journal of a crawl that was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import StoreError
from siteloom.sources.crawling.crawl_journal import Done, Found, Journal, Links, Progress
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.sources.crawling.frontier import Frontier
from siteloom.sources.crawling.url_filters import UrlPatterns

CRAWL = Crawl(("http://x.example/",), 10, follows=True)
A, B, C = (
    Found("http://x.example/", 0),
    Found("http://x.example/b", 1),
    Found("http://x.example/c/ü", 2, 1),
)
A_DONE, B_DONE = Done(A.url, A.url, is_kept=True), Done(B.url, "", is_kept=False)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    journal = Journal.of(tmp_path, CRAWL, None)
    assert journal.read() == Progress()
    journal.append([Links((A,))])
    journal.append([Links((B,)), A_DONE])
    assert journal.read() == Progress((A, B), (A_DONE,))
    assert journal.read().pages == 1
    journal.remove()
    journal.remove()
    assert journal.read() == Progress()


@given(st.integers(0, 400))
def test_a_journal_that_was_cut_off_anywhere_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    journal = Journal(tmp_path_factory.mktemp("workspace"), "crawls/a.jsonl")
    journal.append([Links((A, B)), A_DONE, Links((C,)), B_DONE])
    whole = journal.file.read_bytes()
    journal.file.write_bytes(whole[:cut])
    before = journal.read()
    assert set(before.done) <= {A_DONE, B_DONE}
    journal.append([Links((Found("http://x.example/d", 1),))])
    after = journal.read()
    assert after.found[-1].url == "http://x.example/d"
    assert after.found[:-1] == before.found
    assert after.done == before.done


def test_each_crawl_has_its_own_and_more_pages_go_on_with_it(tmp_path: Path) -> None:
    others = [
        Crawl(("http://y.example/",), 10, follows=True),
        Crawl(CRAWL.urls, 10, follows=True, patterns=UrlPatterns(("/a/*",))),
        Crawl(CRAWL.urls, 10, follows=True, with_sitemaps=True),
        Crawl(CRAWL.urls, 10, follows=True, with_requisites=True),
    ]
    journals = {Journal.of(tmp_path, crawl, site) for crawl in (CRAWL, *others) for site in (None, "shop")}
    assert len(journals) == 10
    assert Journal.of(tmp_path, Crawl(CRAWL.urls, 500, follows=True), None) in journals


def test_one_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "crawls").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        Journal.of(tmp_path, CRAWL, None).append([A_DONE])


def test_a_frontier_goes_on_where_it_was() -> None:
    frontier = Frontier(3)
    frontier.take_up(Progress((A, B, C), (A_DONE, B_DONE)))
    assert not frontier.add(A)
    assert frontier.next() == C
    frontier.add(Found("http://x.example/e", 1))
    frontier.ended(is_kept=True)
    assert frontier.next() == Found("http://x.example/e", 1)
    frontier.ended(is_kept=True)
    assert not frontier.has_more  # three pages, one of them from before
