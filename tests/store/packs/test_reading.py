"""Reading many pages: the right ones in the right order, and no block opened more often than need be."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from siteloom.core.errors import StoreError
from siteloom.core.model import Page, Resource
from siteloom.store.packs import page_reader
from siteloom.store.packs.pack_file import Pack
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import page, put

Opened = Counter[tuple[str, int]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """How often each block of each pack was read and decompressed."""
    counts: Opened = Counter()
    read = Pack._block

    def counted(pack: Pack, offset: int) -> bytes:
        counts[str(pack.path), offset] += 1
        return read(pack, offset)

    monkeypatch.setattr(Pack, "_block", counted)
    return counts


def site_pages(count: int, site: str = "a.example") -> dict[PageAddress, Page]:
    return {
        PageAddress(site, each.url): each
        for each in (page(f"http://{site}/{number}", str(number)) for number in range(count))
    }


def test_pages_come_in_the_order_of_their_addresses(store: Store, opened: Opened) -> None:
    pages = site_pages(300) | site_pages(200, "b.example")
    put(store, *pages.values())
    wanted = Random(1).sample(list(pages), 240)
    assert list(store.pages_at(wanted)) == [pages[address] for address in wanted]
    assert len(opened) == 5
    assert set(opened.values()) == {1}


def test_more_pages_than_are_read_together_are_read_batch_by_batch(store: Store, opened: Opened) -> None:
    pages = site_pages(700)
    put(store, *pages.values())
    assert list(store.pages_at(list(pages))) == list(pages.values())
    assert sum(opened.values()) == len(opened) == 6  # a block that two batches share stays at hand
    shuffled = Random(1).sample(list(pages), len(pages))
    assert list(store.pages_at(shuffled)) == [pages[address] for address in shuffled]


def test_few_large_pages_are_held_at_a_time(
    store: Store, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_reader, "_BYTES_AT_A_TIME", 2_000)
    monkeypatch.setattr(Pack, "_BLOCKS_KEPT", 1)
    pages = [Page(f"http://a.example/{number}", b"x" * 1_000) for number in range(400)]
    put(store, *pages)
    addresses = [PageAddress("a.example", each.url) for each in (pages[0], pages[-1], pages[1], pages[-2])]
    found = store.pages_at(addresses)
    assert next(found).html == pages[0].html
    assert len(opened) == 2
    assert sum(opened.values()) == 2
    assert len(list(found)) == 3
    assert sum(opened.values()) == 4  # the second two are another batch


def test_a_page_that_is_asked_for_twice_comes_twice(store: Store) -> None:
    put(store, page("http://a.example/1"))
    address = PageAddress("a.example", "http://a.example/1")
    assert list(store.pages_at([address] * 3)) == [page("http://a.example/1")] * 3
    assert list(store.pages_at([])) == []


def test_the_newest_version_of_a_page_is_read(store: Store) -> None:
    url = "http://a.example/1"
    put(store, page(url, "old"), page(url, "new", 1), page(url, "other"), Resource(url, b"x", "image/png"))
    address = PageAddress("a.example", url)
    assert list(store.pages_at([address])) == [page(url, "new", 1)] == [store.page(address)]


@pytest.mark.parametrize("url", ["http://a.example/2", "http://a.example/image", "http://a.example/\ud800"])
def test_a_page_that_is_not_there_is_named(store: Store, url: str) -> None:
    put(store, page("http://a.example/1"), Resource("http://a.example/image", b"x", "image/png"))
    addresses = [PageAddress("a.example", each) for each in ("http://a.example/1", url)]
    with pytest.raises(StoreError, match=r"^There is no page .* in the site a\.example\.$"):
        list(store.pages_at(addresses))
    with pytest.raises(StoreError, match=r"^There is no page .* in the site a\.example\.$"):
        store.page(addresses[1])
