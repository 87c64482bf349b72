"""What is asked of a store to see at a glance what is in it: clusters, checks and wrappers in numbers."""

from __future__ import annotations

import pytest

from siteloom.core.model import Cluster, Example, Resource, Template, TemplatePath
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import page, put

URLS = [f"https://shop.example/p/{number}" for number in range(5)]
ADDRESSES = [PageAddress("shop.example", url) for url in URLS]
PATTERN = r"^https://shop\.example/p/.*$"
TEMPLATE = Template((TemplatePath("html", None, 3), TemplatePath("html/p", "Price:", 2)), 3)


def cluster(name: str, *members: int) -> Cluster:
    site = name.rpartition("/")[0]
    return Cluster(name, site, members, "ab**", 1, ("abcd",), 2.5, (PATTERN,), TEMPLATE)


@pytest.fixture
def shop(store: Store) -> Store:
    put(store, *map(page, URLS))
    with store.recording("cluster", {"site": None}) as run:
        found = [cluster("shop.example/1", 0, 2, 4), cluster("shop.example/2", 1)]
        store.save_clusters(run.id, found, ADDRESSES)
    return store


def test_a_cluster_in_numbers(shop: Store) -> None:
    first, second = shop.cluster_summaries()
    assert (first.name, first.site, first.importance) == ("shop.example/1", "shop.example", 2.5)
    assert (first.pages, first.annotated, first.ends) == (3, 0, (URLS[0], URLS[4]))
    assert first.url_patterns == (PATTERN,)
    assert (second.pages, second.ends) == (1, (URLS[1], URLS[1]))


def test_pages_are_counted_whatever_versions_they_have(shop: Store) -> None:
    put(shop, page(URLS[0], "changed", on_day=2), Resource("https://shop.example/a.css", b"x", "text/css"))
    assert (shop.page_count("shop.example"), shop.page_count("other.example")) == (5, 0)


def test_annotated_pages_count_once(shop: Store) -> None:
    for url in (URLS[0], URLS[0], URLS[2]):
        found = shop.page(PageAddress("shop.example", url))
        shop.save_example(PageAddress("shop.example", url), Example(found, {"name": ["text"]}))
    assert [found.annotated for found in shop.cluster_summaries("shop.example")] == [2, 0]


def test_a_page_whose_annotation_was_taken_back_is_not_annotated(shop: Store) -> None:
    address = ADDRESSES[0]
    found = shop.page(address)
    shop.save_example(address, Example(found, {"name": ["text"]}))
    shop.save_example(address, Example(found, {}))
    assert [found.annotated for found in shop.cluster_summaries("shop.example")] == [0, 0]


def test_only_what_was_found_last_counts(shop: Store) -> None:
    with shop.recording("cluster", {"site": "shop.example"}) as run:
        shop.save_clusters(run.id, [cluster("shop.example/9", 1, 3)], ADDRESSES)
    assert [(found.name, found.pages) for found in shop.cluster_summaries()] == [("shop.example/9", 2)]
    assert shop.templates("shop.example") == {"shop.example/9": TEMPLATE}
    assert shop.cluster_summaries("other.example") == []
    assert shop.templates("shop.example", "shop.example/1") == {}
    assert shop.templates("other.example") == {}


def test_outcomes_of_checks(shop: Store) -> None:
    runs = []
    for is_healthy in (True, False):
        with shop.recording("monitor", {}) as run:
            shop.save_check(run.id, "shop.example/1", 1, "bellwethers", is_healthy, {"much": "evidence"})
            shop.save_check(run.id, "shop.example/1", 1, "output", True, {})
        runs.append(run.id)
    outcomes = [(found.run_id, found.is_healthy) for found in shop.run_history.checks(3)]
    assert outcomes == [(runs[0], True), (runs[1], False), (runs[1], True)]
    newest = sorted((found.run_id, found.version, found.is_healthy) for found in shop.newest_outcomes())
    assert newest == [(runs[1], 1, False), (runs[1], 1, True)]


@pytest.mark.parametrize(("state", "waits"), [("review", True), ("annotation", True), ("applied", False)])
def test_wrappers_in_repair(shop: Store, state: str, waits: bool) -> None:
    with shop.recording("relearn", {}) as run:
        shop.save_repair(run.id, "shop.example/1", 1, None, "repaired", state, 0.5, "{}", {})
    assert shop.wrappers_in_repair() == ({"shop.example/1"} if waits else set())


def test_the_wrapper_of_the_newest_record_of_a_page(shop: Store) -> None:
    for wrapper in ("old", "new"):
        with shop.extracting({"site": None}, wrapper) as extraction:
            rows = [ExtractedRow(url, wrapper, 1, "{}") for url in URLS[: 3 if wrapper == "old" else 1]]
            extraction.commit(0, rows, [], {})
    assert shop.wrappers_of([*URLS[:2], URLS[4]]) == {URLS[0]: "new", URLS[1]: "old"}
    assert shop.extractions() == {None: extraction.run_id}
