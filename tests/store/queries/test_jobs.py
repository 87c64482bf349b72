"""Jobs in the store: from waiting to their end, and what a server that starts makes of them."""

from __future__ import annotations

import dataclasses

from siteloom.store.queries.jobs import JobState
from siteloom.store.store import Store
from tests.store.helpers import day

ODD_TEXT = "a\0b \ud800 \N{SNAKE} 'quoted'"


def on_day(store: Store, number: int) -> Store:
    return dataclasses.replace(store, clock=lambda: day(number))


def test_a_job_waits_runs_and_ends(store: Store) -> None:
    added = on_day(store, 0).jobs.add("cluster", {"site": "a.example"}, "ana")
    assert (added.kind, added.arguments, added.author) == ("cluster", {"site": "a.example"}, "ana")
    assert (added.state, added.done, added.total, added.message) == ("waiting", 0, None, "")
    assert (added.created_at, added.started_at, added.ended_at) == (day(0), None, None)
    assert not added.has_ended
    assert on_day(store, 1).jobs.start(added.id)
    store.jobs.progress(added.id, 3, 7, "pages read")
    running = store.jobs.get(added.id)
    assert running is not None
    assert (running.state, running.done, running.total, running.message) == ("running", 3, 7, "pages read")
    assert on_day(store, 2).jobs.end(added.id, "done", {"clusters": 2})
    ended = store.jobs.get(added.id)
    assert ended == running._replace(state="done", result={"clusters": 2}, ended_at=day(2))
    assert ended.started_at == day(1)
    assert ended.has_ended


def test_the_newest_jobs_come_first(store: Store) -> None:
    ids = [store.jobs.add("learn", {"cluster": f"a.example/{number}"}, "").id for number in range(4)]
    assert [job.id for job in store.jobs.latest(3)] == ids[:0:-1]
    store.jobs.end(ids[1], "failed", "No page is annotated.")
    (failed,) = store.jobs.latest(3, "failed")
    assert (failed.id, failed.result) == (ids[1], "No page is annotated.")
    assert [job.id for job in store.jobs.latest(9, "waiting")] == [ids[3], ids[2], ids[0]]
    assert store.jobs.counts() == {("learn", "failed"): 1, ("learn", "waiting"): 3}


def test_the_newest_job_of_a_kind_and_its_arguments(store: Store) -> None:
    first, second = (store.jobs.add("discover", {"cluster": f"a.example/{n}"}, "").id for n in (1, 2))
    again = store.jobs.add("discover", {"cluster": "a.example/1", "names": {"cluster": "a.example/2"}}, "").id
    store.jobs.add("learn", {"cluster": "a.example/1"}, "")
    store.jobs.end(first, "done", {"rows": 3})

    def newest(kind: str, arguments: dict[str, str], state: JobState | None = None) -> int | None:
        found = store.jobs.newest(kind, arguments, state)
        return None if found is None else found.id

    assert newest("discover", {}) == again
    assert newest("discover", {"cluster": "a.example/1"}) == again
    assert newest("discover", {"cluster": "a.example/2"}) == second
    assert newest("discover", {"cluster": "a.example/1"}, "done") == first
    assert newest("discover", {"cluster": "a.example/2"}, "done") is None
    assert newest("discover", {"cluster": "a.example"}) is None
    assert newest("discover", {"site": "a.example"}) is None
    assert newest("index", {}) is None


def test_there_is_no_job_of_an_unknown_id(store: Store) -> None:
    assert store.jobs.get(1) is None
    assert store.jobs.get(2**62) is None
    assert not store.jobs.start(1)
    assert not store.jobs.end(1, "done", {})


def test_a_job_that_was_cancelled_is_not_begun(store: Store) -> None:
    job = store.jobs.add("extract", {}, "ben")
    assert store.jobs.end(job.id, "cancelled", "It was cancelled.", only_waiting=True)
    assert not store.jobs.start(job.id)
    assert [one.state for one in store.jobs.latest(9)] == ["cancelled"]


def test_a_job_that_runs_does_not_wait(store: Store) -> None:
    job = store.jobs.add("extract", {}, "ben")
    assert store.jobs.start(job.id)
    assert not store.jobs.start(job.id)
    assert not store.jobs.end(job.id, "cancelled", "It was cancelled.", only_waiting=True)
    assert [one.state for one in store.jobs.latest(9)] == ["running"]


def test_a_job_ends_once(store: Store) -> None:
    job = store.jobs.add("extract", {}, "ben")
    assert store.jobs.end(job.id, "done", {"records": 1})
    assert not store.jobs.end(job.id, "failed", "Too late.")
    (listed,) = store.jobs.latest(9)
    assert (listed.state, listed.result) == ("done", None), "lists leave out what may be large"
    assert store.jobs.get(job.id) == listed._replace(result={"records": 1})


def test_what_a_server_left_behind_is_lost(store: Store) -> None:
    waiting, running, done = (store.jobs.add("learn", {}, "") for _ in range(3))
    store.jobs.start(running.id)
    store.jobs.end(done.id, "done", {})
    assert on_day(store, 5).jobs.give_up_unfinished() == 2
    assert store.jobs.give_up_unfinished() == 0
    found = {job.id: job for job in store.jobs.latest(9)}
    assert [found[one.id].state for one in (waiting, running, done)] == ["lost", "lost", "done"]
    assert found[running.id].ended_at == day(5)
    assert store.jobs.end(running.id, "done", {"records": 2})


def test_any_text_can_be_kept(store: Store) -> None:
    job = store.jobs.add("learn", {"cluster": ODD_TEXT}, ODD_TEXT)
    store.jobs.progress(job.id, 2**40, 2**41, ODD_TEXT)
    store.jobs.end(job.id, "failed", ODD_TEXT)
    found = store.jobs.get(job.id)
    assert found is not None
    assert (found.arguments, found.result, found.done) == ({"cluster": ODD_TEXT}, ODD_TEXT, 2**40)
    assert "\N{SNAKE}" in found.message
