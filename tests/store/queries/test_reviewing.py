"""What waits for a person, in the store."""

from __future__ import annotations

import dataclasses

import pytest

from siteloom.core.errors import StoreError
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.watches_and_repairs import NewVersion, RepairState
from siteloom.store.store import Store
from tests.store.helpers import day, page, put
from tests.store.test_overview import cluster


@pytest.fixture
def run_id(store: Store) -> int:
    with store.recording("check", {}) as run:
        return run.id


def repair(
    store: Store, run_id: int, wrapper: str, state: RepairState = "review", *, after: int | None = None
) -> int:
    outcome = "needs-annotation" if state == "annotation" else "repaired"
    return store.save_repair(run_id, wrapper, 1, after, outcome, state, 0.5, "{}", {})


def waiting(store: Store) -> list[int]:
    found = [one.id for one in store.reviewing.repairs()]
    assert store.reviewing.count() == len(found)
    return found


def test_only_what_is_open_waits(store: Store, run_id: int) -> None:
    first = repair(store, run_id, "shop")
    repair(store, run_id, "inns", "applied")
    second = repair(store, run_id, "clubs", "annotation")
    assert waiting(store) == [second, first]
    assert [one.id for one in store.reviewing.repairs("shop")] == [first]
    assert store.reviewing.repairs("inns") == []
    store.close_repair(first, "rejected")
    assert waiting(store) == [second]


def test_a_repair_of_an_outdated_version_waits_no_more(store: Store, run_id: int) -> None:
    for name in ("shop", "inns"):
        store.save_wrapper(name, "a.example", "{}", "learn")
    found = repair(store, run_id, "shop")
    in_part = repair(store, run_id, "inns", "annotation", after=2)
    store.save_wrapper("inns", "a.example", "{}", "needs-annotation")
    assert waiting(store) == [in_part, found]
    assert store.wrappers_in_repair() == {"shop", "inns"}
    for name in ("shop", "inns"):
        store.save_wrapper(name, "a.example", "{}", "learn")
    assert waiting(store) == []
    assert store.wrappers_in_repair() == set()


@pytest.mark.parametrize("state", ["review", "annotation"])
def test_what_was_rejected_waits_again_for_the_same(store: Store, run_id: int, state: RepairState) -> None:
    number = repair(store, run_id, "shop", state)
    (waiting_repair,) = store.reviewing.repairs()
    with pytest.raises(StoreError, match="is not rejected, so it cannot wait again"):
        store.reviewing.reopen(waiting_repair)
    store.close_repair(number, "rejected")
    store.reviewing.reopen(waiting_repair)
    assert store.reviewing.repairs() == [waiting_repair]
    with pytest.raises(StoreError, match="is not rejected, so it cannot wait again"):
        store.reviewing.reopen(waiting_repair._replace(id=number + 1))


@pytest.mark.parametrize("state", ["review", "annotation"])
def test_what_was_accepted_waits_again_and_the_version_before_is_in_force(
    store: Store, run_id: int, state: RepairState
) -> None:
    store.save_wrapper("shop", "a.example", '{"old": 1}', "learn")
    repair(store, run_id, "shop", state)
    (waiting_repair,) = store.reviewing.repairs()
    assert store.reviewing.accept(waiting_repair, "a.example") == 2
    (accepted,) = store.repairs("shop")
    restored = NewVersion("a.example", '{"old": 1}', "rollback", "as version 1")
    store.reviewing.reopen(accepted, restored)
    assert store.wrapper("shop")[2:4] == (3, '{"old": 1}')
    assert store.reviewing.repairs() == [waiting_repair._replace(version_before=3)]
    with pytest.raises(StoreError, match="is not applied"):
        store.reviewing.reopen(accepted, restored)
    assert store.wrapper("shop").version == 3
    assert store.reviewing.accept(store.reviewing.repairs()[0], "a.example") == 4


def test_pages_are_placed_with_their_clusters(store: Store) -> None:
    urls = [f"http://a.example/{number}" for number in range(3)]
    put(store, *map(page, urls))
    addresses = [PageAddress("a.example", url) for url in urls]
    with store.clustering({"site": None}) as run:
        store.save_clusters(run.id, [cluster("a.example/1", 0, 1)], addresses[:2])
    places = store.reviewing.places([*addresses, PageAddress("a.example", "http://a.example/none")])
    assert [places[one][1] for one in addresses] == ["a.example/1", "a.example/1", None]
    assert [places[one][0] for one in addresses] == store.page_ids(addresses)
    assert len(places) == 3
    assert store.reviewing.places([]) == {}


def test_a_cluster_that_is_not_worth_it_is_not_asked_about(store: Store) -> None:
    put(store, page("http://a.example/1"))
    found_in(store, {"a.example/1": [0]}, [PageAddress("a.example", "http://a.example/1")])
    reviewing = dataclasses.replace(store, clock=lambda: day(1)).reviewing
    for _ in range(2):
        reviewing.dismiss("a.example/1")
        assert reviewing.dismissed() == {"a.example/1"}
    reviewing.restore("a.example/1")
    assert reviewing.dismissed() == set()
    reviewing.dismiss("no.example/1")
    assert reviewing.dismissed() == set()


def found_in(store: Store, clusters: dict[str, list[int]], addresses: list[PageAddress]) -> None:
    """A run that has found some clusters, each with the numbers of its pages."""
    with store.clustering({"site": None}) as run:
        found = [cluster(name, *members) for name, members in clusters.items()]
        store.save_clusters(run.id, found, addresses)


@pytest.mark.parametrize(
    ("found", "dismissed"),
    [
        ({"1": [0, 1, 2, 3], "2": [4, 5]}, {"1"}),  # as it was
        ({"1": [4, 5], "2": [0, 1, 2, 3]}, {"2"}),  # under the name of another
        ({"1": [4, 5], "2": [0, 1, 2], "3": [3]}, {"2"}),
        ({"1": [0, 1, 2, 3, 4, 5]}, {"1"}),
        ({"1": [0, 1], "2": [2, 3], "3": [4, 5]}, {"1"}),  # nowhere are more of its pages
        ({"1": [0, 1, 4, 5, 6, 7, 8], "2": [2], "3": [3]}, set()),  # is for the most part something else
        ({"1": [0], "2": [1], "3": [2], "4": [3], "5": [4, 5]}, set()),
        ({"1": [4, 5]}, set()),
    ],
)
def test_what_is_not_worth_it_is_so_under_another_name(
    store: Store, found: dict[str, list[int]], dismissed: set[str]
) -> None:
    urls = [f"http://a.example/{number}" for number in range(9)]
    put(store, *map(page, urls))
    addresses = [PageAddress("a.example", url) for url in urls]
    found_in(store, {"a.example/1": [0, 1, 2, 3], "a.example/2": [4, 5]}, addresses)
    store.reviewing.dismiss("a.example/1")
    for _ in range(2):
        found_in(store, {f"a.example/{name}": members for name, members in found.items()}, addresses)
        assert store.reviewing.dismissed() == {f"a.example/{name}" for name in dismissed}


def test_a_repair_is_put_in_force_as_a_whole_or_not(store: Store, run_id: int) -> None:
    store.save_wrapper("shop", "a.example", "{}", "learn")
    repair(store, run_id, "shop")
    (found,) = store.reviewing.repairs("shop")
    store.close_repair(found.id, "rejected")
    with pytest.raises(StoreError, match="it is rejected already"):
        store.reviewing.accept(found, "a.example")
    assert [one.version for one in store.wrapper_versions("shop")] == [1]
    store.reviewing.reopen(found)
    assert store.reviewing.accept(found, "a.example") == 2
    newest = store.wrapper("shop")
    assert (newest.origin, newest.note, newest.text) == ("repaired", "accepted by review", "{}")
    assert [(one.state, one.version_after) for one in store.repairs("shop")] == [("applied", 2)]
