"""The URLs of pages: with their clusters, without resources, in their order."""

from __future__ import annotations

from siteloom.core.model import Resource
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.pages import PageUrl
from siteloom.store.store import Store
from tests.store.helpers import page, put
from tests.store.test_overview import cluster

URLS = [f"https://a.example/{number}" for number in range(5)]


def test_urls_come_with_the_clusters_that_hold_now(store: Store) -> None:
    put(store, *(page(url) for url in URLS), Resource("https://a.example/style.css", b"p{}", "text/css"))
    put(store, page(URLS[0], "another version", on_day=1), page("https://b.example/"))
    assert list(store.page_urls.of_site("a.example")) == [PageUrl(url, None) for url in URLS]
    addresses = [PageAddress("a.example", url) for url in URLS]
    for members in ((0, 1, 2), (3, 1)):
        with store.clustering({"site": "a.example"}) as run:
            store.save_clusters(run.id, [cluster("a.example/1", *sorted(members))], addresses)
    names = [None, "a.example/1", None, "a.example/1", None]
    assert list(store.page_urls.of_site("a.example")) == list(map(PageUrl, URLS, names))
    assert list(store.page_urls.of_site("c.example")) == []


def test_known_urls_are_those_of_pages(store: Store) -> None:
    put(store, page(URLS[0]), Resource(URLS[1], b"p{}", "text/css"))
    put(store, page(URLS[2]), site="of a name")
    assert store.page_urls.stored(URLS) == {URLS[0]}
    assert store.page_urls.stored([]) == set()


def test_names_of_sites_and_whether_there_is_a_page(store: Store) -> None:
    assert (store.page_urls.sites(), store.page_urls.has_pages()) == ([], False)
    put(store, Resource("https://b.example/style.css", b"p{}", "text/css"))
    assert (store.page_urls.sites(), store.page_urls.has_pages()) == (["b.example"], False)
    put(store, page(URLS[0]))
    assert (store.page_urls.sites(), store.page_urls.has_pages()) == (["a.example", "b.example"], True)
