"""Single pages: found by their URLs, with their versions and clusters."""

from __future__ import annotations

from siteloom.core.model import Resource
from siteloom.operations.annotation.sample_pages import version_of
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import day, page, put
from tests.store.test_overview import cluster

URL = "https://www.shop.example/p/1"


def test_a_page_is_found_by_its_url(store: Store) -> None:
    other = "https://shop.example/p/2"
    put(store, page(URL), page(other), Resource("https://shop.example/a.css", b"x", "text/css"))

    first, second = store.page_ids([PageAddress("shop.example", url) for url in (URL, other)])
    find = store.page_index.find
    assert (find(URL), find(other)) == (first, second)
    assert find(URL, "shop.example") == first
    assert find(URL, "other.example") is None
    assert find("https://shop.example/p/3") is None
    assert find("https://shop.example/a.css") is None, "a stylesheet is no page"
    assert find("no address \udc80 at all") is None


def test_a_page_of_another_site_is_found_as_well(store: Store) -> None:
    put(store, page(URL), site="collection")

    assert store.page_index.find(URL) == store.page_ids([PageAddress("collection", URL)])[0]
    put(store, page(URL))
    assert store.page_index.find(URL) == store.page_ids([PageAddress("shop.example", URL)])[0]


def test_its_versions_are_told_the_newest_first(store: Store) -> None:
    put(store, *(page(URL, text, number) for number, text in enumerate("abcb")))
    (number,) = store.page_ids([PageAddress("shop.example", URL)])

    versions = store.page_index.versions(number, 2)
    read = list(store.pages_in([one.place for one in versions]))
    assert [one.last_seen_at for one in versions] == [day(3), day(2)]
    assert [version_of(one) for one in read] == [version_of(page(URL, text)) for text in "bc"]
    assert len(store.page_index.versions(number, 9)) == 3
    assert store.page_index.versions(number + 1, 9) == []


def test_a_page_is_in_the_cluster_that_was_found_last(store: Store) -> None:
    put(store, page(URL), page("https://shop.example/p/2"))
    addresses = [PageAddress("shop.example", url) for url in (URL, "https://shop.example/p/2")]
    first, second = store.page_ids(addresses)
    assert store.page_index.cluster(first) is None
    for name in ("shop.example/1", "shop.example/2"):
        with store.clustering({"site": None}) as run:
            store.save_clusters(run.id, [cluster(name, 0)], addresses)

    assert store.page_index.cluster(first) == "shop.example/2"
    assert store.page_index.cluster(second) is None
