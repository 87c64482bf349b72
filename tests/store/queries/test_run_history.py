"""Runs and checks over time, as the store tells them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest

from siteloom.core.file_lock import write_lock
from siteloom.core.model import Failure
from siteloom.store.queries.runs import recorded_run
from siteloom.store.store import Store
from tests.store.helpers import day

SHOP, OTHER = "shop.example", "other.example"


def on_day(store: Store, number: float) -> Store:
    return dataclasses.replace(store, clock=lambda: day(0) + timedelta(days=number))


def extract(store: Store, number: int, site: str | None, *shards: list[list[object]]) -> int:
    with on_day(store, number).extracting({"site": site}, f"run {number}") as extraction:
        for shard, tally in enumerate(shards):
            extraction.commit(shard, [], [], {"tally": tally})
    return extraction.run_id


def test_runs_of_some_verbs_and_of_a_site(store: Store) -> None:
    ids = [extract(store, 1, None), extract(store, 2, SHOP), extract(store, 3, OTHER)]
    with on_day(store, 4).recording("monitor", {"wrappers": []}) as run:
        pass
    history = store.run_history
    assert [one.id for one in history.runs()] == [*ids, run.id]
    assert [one.id for one in history.runs(["extract"])] == ids
    assert [one.id for one in history.runs(["extract"], SHOP)] == ids[:2]
    assert [one.site for one in history.runs(["extract"], SHOP)] == [None, SHOP]
    assert [one.id for one in history.runs(["extract"], limit=2)] == ids[1:]
    assert [one.id for one in history.runs(since=day(3))] == [ids[2], run.id]
    assert history.count(["extract", "monitor", "ingest"]) == {"extract": 3, "monitor": 1}


def test_a_run_tells_what_was_asked_and_how_long_it_took(store: Store) -> None:
    times = iter([day(1), day(1) + timedelta(seconds=90)])
    with dataclasses.replace(store, clock=lambda: next(times)).recording("learn", {"wrapper": "w"}) as run:
        run.counts["examples"] = 4
    found = store.run_history.run(run.id)
    assert found is not None
    assert (found.verb, found.arguments, found.counts) == ("learn", {"wrapper": "w"}, {"examples": 4})
    assert (found.seconds, found.site, found.status) == (90, None, "done")
    assert store.run_history.run(run.id + 1) is None


def test_a_clock_that_was_set_back_makes_no_time_negative(store: Store) -> None:
    times = iter([day(1), day(0)])
    with dataclasses.replace(store, clock=lambda: next(times)).recording("learn", {}):
        pass
    assert [one.seconds for one in store.run_history.runs()] == [0]


def test_a_run_that_was_killed_has_no_end(store: Store) -> None:
    run = recorded_run(store.engine, store.clock, "cluster", {})
    run.__enter__()
    with write_lock(store.folder):
        assert [one.status for one in store.run_history.runs()] == ["running"]
    (killed,) = store.run_history.runs()
    assert (killed.status, killed.seconds, killed.counts) == ("killed", None, {})
    assert store.run_history.run(killed.id) == killed


def test_what_runs_counted_comes_part_by_part(store: Store) -> None:
    one = extract(store, 1, None, [["pages", 3]], [["pages", 2], ["failed", "no values", 1]])
    two = extract(store, 2, None, [["pages", 7]])
    empty = extract(store, 3, None)
    found = list(store.run_history.tallies([one, two, empty]))
    assert found == [
        (one, [["pages", 3]]),
        (one, [["pages", 2], ["failed", "no values", 1]]),
        (two, [["pages", 7]]),
    ]
    assert list(store.run_history.tallies([])) == []


def test_a_run_that_is_done_keeps_the_sum_of_its_shards(store: Store) -> None:
    with store.extracting({"site": None}, "a") as extraction:
        for shard in range(3):
            extraction.commit(shard, [], [], {"tally": [["pages", shard]]})
        extraction.sum_up = lambda: {"tally": [["pages", 3]]}
    assert list(store.run_history.tallies([extraction.run_id])) == [(extraction.run_id, [["pages", 3]])]
    assert store.shard_summaries(extraction.run_id) == [{"tally": [["pages", 3]]}]


def test_a_run_that_stopped_keeps_its_shards_and_is_taken_up(store: Store) -> None:
    with suppress(ZeroDivisionError), store.extracting({"site": None}, "a") as extraction:
        extraction.commit(4, [], [], {"tally": [["pages", 1]]})
        extraction.sum_up = lambda: {"tally": [["pages", 99]]}
        raise ZeroDivisionError
    with store.extracting({"site": None}, "a") as again:
        assert again.run_id == extraction.run_id
        assert again.done_summaries == {4: {"tally": [["pages", 1]]}}


def test_failures_by_reason_and_the_first_of_them(store: Store) -> None:
    with store.recording("ingest", {}) as run:
        for number in range(5):
            run.fail(Failure(f"https://shop.example/{number}", "too large" if number % 2 else "no HTML"))
    history = store.run_history
    assert history.failures_by_reason([run.id]) == {run.id: Counter({"no HTML": 3, "too large": 2})}
    assert [one.url[-1] for one in history.failures(run.id, 3)] == ["0", "1", "2"]
    assert [one.url[-1] for one in history.failures(run.id, 9, "too large")] == ["1", "3"]
    assert history.failures(run.id, 9, "a\0b \ud800") == []
    assert history.failures_by_reason([run.id + 1]) == {}


@pytest.mark.parametrize("wrappers", [None, ["w/1"], []])
def test_checks_without_what_they_saw_and_with_it(store: Store, wrappers: list[str] | None) -> None:
    with store.recording("monitor", {}) as run:
        for name, is_healthy in (("w/1", True), ("w/2", False), ("w/1", False)):
            store.save_check(run.id, name, 1, "output", is_healthy, {"changes": [name]})
    found = store.run_history.checks(9, wrappers)
    expected = [("w/1", True), ("w/2", False), ("w/1", False)]
    assert [(one.wrapper, one.is_healthy) for one in found] == [
        one for one in expected if wrappers is None or one[0] in wrappers
    ]
    if wrappers is None:
        assert [one.wrapper for one in store.run_history.checks(2)] == ["w/2", "w/1"]
        last = found[-1]
        assert store.run_history.checks_seen([last.id])[last.id].content == {"changes": ["w/1"]}
        assert [one.id for one in store.run_history.checks_of_run(run.id)] == [one.id for one in found]
