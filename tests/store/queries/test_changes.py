"""What is kept of sites that change: watches, checks, repairs, and records as they were at a time."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime, timedelta

import pytest

from siteloom.core.errors import StoreError
from siteloom.core.settings import StoreSettings
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.store.queries import records
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.watches_and_repairs import StoredCheck, StoredRepair, StoredWatch
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.store.helpers import day, page, put

ANY_TEXT = "a\0b \ud800 c\udfff \N{SNAKE} \x1b \u2028 'quoted' \\u0041 \\"


@pytest.fixture
def run_id(store: Store) -> int:
    with store.recording("check", {}) as run:
        return run.id


def repair(store: Store, run_id: int, state: str, wrapper: str = "shop") -> int:
    return store.save_repair(run_id, wrapper, 1, None, "repaired", state, 0.5, "{}", {})


def states(store: Store, wrapper: str | None = None) -> dict[int, str]:
    return {repair.id: repair.state for repair in store.repairs(wrapper)}


def extract(store: Store, at: datetime, found: Mapping[str, Sequence[str]], *, ends_well: bool = True) -> int:
    """A run of extract on a day: the contents of the records of each wrapper, one shard a wrapper."""
    on_that_day = dataclasses.replace(store, clock=lambda: at)
    with suppress(ZeroDivisionError), on_that_day.extracting({}, str(at)) as extraction:
        for shard, (wrapper, contents) in enumerate(found.items()):
            rows = [ExtractedRow("http://a.example/", wrapper, shard, content) for content in contents]
            extraction.commit(shard, rows, [], {})
        if not ends_well:
            raise ZeroDivisionError
    return extraction.run_id


def test_a_watch_comes_back_as_it_was_given(store: Store) -> None:
    before = store.clock()
    text = json.dumps({"pages": ["\N{SNAKE}" * 100_000]}, ensure_ascii=False)
    store.save_watch("a.example/1", "a.example", 3, text)
    found = store.watch("a.example/1")
    assert found is not None
    assert before <= found.saved_at <= store.clock()
    assert found == StoredWatch("a.example/1", "a.example", 3, text, found.saved_at)


def test_a_watch_takes_the_place_of_the_one_before(store: Store) -> None:
    for version, text in ((None, "{}"), (2, "[]"), (None, "null")):
        store.save_watch("shop", f"{version}.example", version, text)
        (found,) = store.watches()
        assert found[:-1] == ("shop", f"{version}.example", version, text)


def test_watches_are_listed_by_wrapper(store: Store) -> None:
    assert store.watches() == []
    for name in ("b", "é", "B", "a", "b"):
        store.save_watch(name, "a.example", None, json.dumps(name))
    assert [(found.wrapper, json.loads(found.text)) for found in store.watches()] == [
        (name, name) for name in ("B", "a", "b", "é")
    ]
    assert store.watch("c") is None


def test_a_check_comes_back_as_it_was_given(store: Store, run_id: int) -> None:
    before = store.clock()
    content = {"share": 0.5, "alarms": [{"attribute": None, "lost": True}]}
    store.save_check(run_id, "shop", None, "bellwethers", False, content)
    (found,) = store.checks()
    assert before <= found.at <= store.clock()
    assert found == StoredCheck(
        found.id, run_id, "shop", None, found.at, "bellwethers", is_healthy=False, content=content
    )


def test_all_checks_are_kept_and_told_newest_first(store: Store, run_id: int) -> None:
    assert store.checks() == store.checks("shop") == []
    for number in range(12):
        wrapper = ("shop", "guide", "Shop")[number % 3]
        store.save_check(run_id, wrapper, 1, "output", number % 2 == 0, {"number": number})

    def numbers(wrapper: str | None = None, limit: int | None = None) -> list[int]:
        return [check.content["number"] for check in store.checks(wrapper, limit)]

    assert numbers() == list(range(11, -1, -1))
    assert numbers("shop") == [9, 6, 3, 0]
    assert numbers("shop", 2) == [9, 6]
    assert numbers(limit=3) == [11, 10, 9]
    assert numbers("none") == []
    assert {check.is_healthy for check in store.checks("shop", 1)} == {False}


def test_a_repair_comes_back_as_it_was_given(store: Store, run_id: int) -> None:
    before = store.clock()
    given = (run_id, "shop", 2, 3, "repaired", "applied", 0.1 + 0.2)
    repair_id = store.save_repair(*given, '{"rules": []}', {"diff": ["-a", "+b"]})
    (found,) = store.repairs()
    assert before <= found.at <= store.clock()
    assert found == StoredRepair(repair_id, *given, found.at, '{"rules": []}', {"diff": ["-a", "+b"]})


def test_a_repair_may_propose_no_wrapper(store: Store, run_id: int) -> None:
    store.save_repair(run_id, "shop", 1, None, "needs-annotation", "annotation", 0.0, None, {})
    (found,) = store.repairs("shop")
    assert (found.version_after, found.text) == (None, None)


def test_repairs_are_told_newest_first(store: Store, run_id: int) -> None:
    ids = [repair(store, run_id, "applied", wrapper) for wrapper in ("shop", "guide", "shop")]
    assert list(states(store)) == ids[::-1]
    assert list(states(store, "shop")) == [ids[2], ids[0]]
    assert states(store, "none") == {}


def test_a_newer_repair_supersedes_those_of_its_wrapper_that_still_wait(store: Store, run_id: int) -> None:
    other = repair(store, run_id, "review", "guide")
    kept = {repair(store, run_id, state): state for state in ("applied", "rejected")}
    waited = [repair(store, run_id, state) for state in ("review", "annotation")]
    newest = repair(store, run_id, "applied")
    assert states(store) == {
        newest: "applied",
        other: "review",
        **dict.fromkeys(waited, "superseded"),
        **kept,
    }


def test_a_repair_that_cannot_be_kept_supersedes_none(store: Store, run_id: int) -> None:
    waiting = repair(store, run_id, "review")
    with pytest.raises(StoreError):
        repair(store, run_id + 99, "review")
    assert states(store) == {waiting: "review"}


@pytest.mark.parametrize("state", ["review", "annotation"])
def test_a_repair_that_waits_is_settled(store: Store, run_id: int, state: str) -> None:
    repair_id = repair(store, run_id, state)
    store.settle_repair(repair_id, "applied", 7)
    (found,) = store.repairs()
    assert (found.state, found.version_after) == ("applied", 7)


def test_only_the_repair_that_is_meant_is_settled(store: Store, run_id: int) -> None:
    rejected, other = repair(store, run_id, "review"), repair(store, run_id, "review", "guide")
    store.settle_repair(rejected, "rejected")
    assert [(found.id, found.state, found.version_after) for found in store.repairs()] == [
        (other, "review", None),
        (rejected, "rejected", None),
    ]


@pytest.mark.parametrize("state", ["applied", "rejected", "superseded"])
def test_a_repair_that_waits_no_more_cannot_be_settled(store: Store, run_id: int, state: str) -> None:
    repair_id = repair(store, run_id, "review")
    store.settle_repair(repair_id, state)
    sentence = rf"^The repair {repair_id} waits for no one any more: it is {state} already\.$"
    with pytest.raises(StoreError, match=sentence):
        store.settle_repair(repair_id, "applied", 7)
    (found,) = store.repairs()
    assert (found.state, found.version_after) == (state, None)


def test_a_repair_that_is_not_there_cannot_be_settled(store: Store) -> None:
    with pytest.raises(StoreError, match=r"^There is no repair 5\.$"):
        store.settle_repair(5, "applied")


def test_text_that_no_database_takes_is_kept(store: Store, run_id: int) -> None:
    content = {"name": ANY_TEXT}
    text = json.dumps(content, ensure_ascii=False)
    name = "shop\udc80\0"
    store.save_watch(name, ANY_TEXT, None, text)
    store.save_check(run_id, name, None, "output", False, content)
    store.save_repair(run_id, name, 1, None, "repaired", "review", 0.5, text, content)
    watch, (check,), (found,) = store.watch(name), store.checks(name), store.repairs(name)
    assert watch is not None
    assert found.text is not None
    assert [json.loads(watch.text), json.loads(found.text), check.content, found.content] == [content] * 4
    assert {watch.wrapper, check.wrapper, found.wrapper} == {"shop" + 2 * "\N{REPLACEMENT CHARACTER}"}
    store.save_watch(name, "a.example", None, "{}")
    assert len(store.watches()) == 1
    repair(store, run_id, "applied", name)
    assert list(states(store, name).values()) == ["applied", "superseded"]


def test_of_those_that_save_at_once_one_watch_and_one_repair_that_waits_remain(
    store_settings: StoreSettings, store: Store, run_id: int
) -> None:
    def save(_: int) -> None:
        with closing(open_store(store_settings)) as one:
            for number in range(20):
                one.save_watch("shop", "a.example", number, "{}")
                repair(one, run_id, "review")

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(save, range(3)))
    assert len(store.watches()) == 1
    assert list(states(store).values()) == ["review"] + 59 * ["superseded"]


def test_records_are_those_of_the_newest_run_up_to_a_time(store: Store) -> None:
    for number in (1, 3):
        extract(store, day(number), {"shop": [f"{number}"], "guide": ["0"]})
    moment = timedelta(microseconds=1)
    for before, found in (
        (day(1) - moment, []),
        (day(1), ["1"]),
        (day(3) - moment, ["1"]),
        (day(3), ["3"]),
        (day(9), ["3"]),
    ):
        assert list(store.records_as_of("shop", before)) == found
    assert list(store.records_as_of("none", day(9))) == []


def test_records_of_all_versions_of_a_wrapper_come_in_their_order(store: Store) -> None:
    on_that_day = dataclasses.replace(store, clock=lambda: day(1))
    with on_that_day.extracting({}, "f") as extraction:
        for shard in (2, 0, 10):
            rows = [
                ExtractedRow("http://a.example/", wrapper, version, f'"{shard} {wrapper} {version}"')
                for version in (1, 2, None)
                for wrapper in ("shop", "Shop")
            ]
            extraction.commit(shard, rows, [], {})
    expected = [f'"{shard} shop {version}"' for shard in (0, 2, 10) for version in (1, 2, None)]
    assert list(store.records_as_of("shop", day(1))) == expected


def test_runs_that_did_not_end_well_or_are_of_other_verbs_have_no_records(store: Store) -> None:
    assert store.last_extract_run() is None
    extract(store, day(0), {"shop": ["0"]}, ends_well=False)
    assert store.last_extract_run() is None
    assert list(store.records_as_of("shop", day(9))) == []
    good = extract(store, day(1), {"shop": ["1"]})
    extract(store, day(2), {"shop": ["2"]}, ends_well=False)
    put(store, page("http://a.example/1"))
    assert store.last_extract_run() == good
    assert list(store.records_as_of("shop", day(9))) == ["1"]
    assert store.last_extract_run() != extract(store, day(3), {}) == store.last_extract_run()


@pytest.mark.parametrize("count", [499, 500, 501, 1_000, 1_750])
def test_more_records_than_are_read_together_come_all_and_once(store: Store, count: int) -> None:
    contents = [str(number) for number in range(count)]
    extract(store, day(1), {"guide": contents, "shop": contents, "other": contents})
    assert list(store.records_as_of("shop", day(1))) == contents


def test_few_records_are_held_at_a_time(store: Store) -> None:
    size = 10_000
    extract(store, day(1), {"shop": [json.dumps("x" * size)] * 5_000})
    tracemalloc.start()
    assert sum(len(content) for content in store.records_as_of("shop", day(1))) == 5_000 * (size + 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * records._RECORDS_AT_A_TIME * size


def test_records_of_wrappers_with_any_name_are_found(store: Store) -> None:
    extract(store, day(1), {ANY_TEXT: ["1"], "shop": ["2"]})
    assert list(store.records_as_of(ANY_TEXT, day(1))) == ["1"]


def test_records_are_those_of_some_versions_on_some_pages(store: Store) -> None:
    on_that_day = dataclasses.replace(store, clock=lambda: day(1))
    with on_that_day.extracting({}, "f") as extraction:
        rows = [
            ExtractedRow(f"http://a.example/{number}", "shop", 1 + number % 2, f"{number}")
            for number in range(20)
            for _ in range(2)
        ]
        extraction.commit(0, rows, [], {})
    extract(store, day(2), {"guide": ["0"], "shop": ["of version 1"]})
    assert list(store.records_as_of("shop", day(2), [2, 3])) == [
        f"{number}" for number in range(1, 20, 2) for _ in range(2)
    ]
    assert list(store.records_as_of("shop", day(2), [3])) == []
    assert list(store.records_as_of("shop", day(1), [2], 2)) == ["1", "1", "11", "11"]
    assert len(list(store.records_as_of("shop", day(1), None, 20))) == 40


def test_the_wrappers_that_are_watched_are_told_with_their_versions(store: Store) -> None:
    assert store.watched() == {}
    for name, version in (("b", 2), ("B", None), ("b", 3)):
        store.save_watch(name, "a.example", version, "{}")
    assert list(store.watched().items()) == [("B", None), ("b", 3)]


def test_the_newest_checks_of_one_wrapper_are_told(store: Store, run_id: int) -> None:
    for wrapper, kind, is_healthy in (
        ("shop", "output", False),
        ("shop", "output", True),
        ("shop", "bellwethers", False),
        ("guide", "output", False),
    ):
        store.save_check(run_id, wrapper, 1, kind, is_healthy, {})
    found = [(one.kind, one.is_healthy) for one in store.newest_checks("shop")]
    assert found == [("bellwethers", False), ("output", True)]
    assert len(store.newest_checks()) == 3


def test_pages_that_are_not_stored_are_left_out_if_wanted(store: Store) -> None:
    put(store, page("http://a.example/1", "old"))
    put(store, page("http://a.example/1", "new", 1), page("http://a.example/2"))
    wanted = [PageAddress("a.example", f"http://a.example/{number}") for number in (2, 3, 1)]
    found = list(store.pages_at(wanted, skips_missing=True))
    assert [one.html for one in found] == [b"<p>text</p>", b"<p>new</p>"]
    with pytest.raises(StoreError, match=r"There is no page http://a\.example/3 in the site a\.example"):
        list(store.pages_at(wanted))
