"""The record of runs."""

from __future__ import annotations

import signal

import pytest
from sqlalchemy import event, select

from siteloom.core.file_lock import write_lock
from siteloom.core.model import Failure
from siteloom.store import schema
from siteloom.store.queries.runs import recorded_run
from siteloom.store.store import Store
from tests.store.helpers import day


def statuses(store: Store) -> list[tuple[str, str]]:
    return [(run.verb, run.status) for run in reversed(store.runs(10))]


def test_a_run_ends_as_done_failed_or_interrupted(store: Store) -> None:
    with write_lock(store.folder), recorded_run(store.engine, store.clock, "ingest", {}):
        assert statuses(store) == [("ingest", "running")]
    with pytest.raises(ZeroDivisionError), recorded_run(store.engine, store.clock, "ingest", {}):
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), recorded_run(store.engine, store.clock, "ingest", {}):
        raise KeyboardInterrupt
    assert [status for _, status in statuses(store)] == ["done", "failed", "interrupted"]


def test_a_run_found_running_was_killed_unless_it_is_of_another_verb(store: Store) -> None:
    killed = recorded_run(store.engine, store.clock, "ingest", {})
    other = recorded_run(store.engine, store.clock, "learn", {})
    killed.__enter__()
    other.__enter__()
    with write_lock(store.folder):
        with recorded_run(store.engine, store.clock, "ingest", {}):
            pass
        assert statuses(store) == [("ingest", "killed"), ("learn", "running"), ("ingest", "done")]
    assert store.runs(10)[-1].ended_at is None


def test_a_run_keeps_what_was_asked_and_when(store: Store) -> None:
    times = iter([day(1), day(2)])
    asked = {"sources": ["a\udc80.warc", "b"], "site": None}
    with recorded_run(store.engine, lambda: next(times), "ingest", asked) as run:
        run.counts["new"] = 7
    with store.engine.connect() as connection:
        assert connection.execute(select(schema.runs.c.arguments)).scalar_one() == asked
    (kept,) = store.runs(1)
    assert (kept.started_at, kept.ended_at, kept.counts) == (day(1), day(2), {"new": 7})


def test_failures_are_written_before_too_many_wait(store: Store) -> None:
    with recorded_run(store.engine, store.clock, "ingest", {}) as run:
        for number in range(1_100):
            run.fail(Failure(str(number), "no URL"))
            assert len(run._waiting) < 500
        assert len(list(store.failures(run.id))) == 1_000
    assert len(list(store.failures(run.id))) == 1_100
    assert run.counts == {"failed": 1_100}


def test_ctrl_c_when_failures_have_been_written_does_not_write_them_twice(store: Store) -> None:
    failure = Failure("http://a.example/", "no HTML")
    presses = iter([signal.SIGINT])

    def press_once(*_: object) -> None:
        for press in presses:
            signal.raise_signal(press)

    def fail_and_flush() -> None:
        with recorded_run(store.engine, store.clock, "ingest", {}) as run:
            event.listen(store.engine, "checkin", press_once)  # the first thing after a commit
            run.fail(failure)
            run.flush()

    with pytest.raises(KeyboardInterrupt):
        fail_and_flush()
    (run,) = store.runs(1)
    assert run.status == "interrupted"
    assert list(store.failures(run.id)) == [failure]


def test_failures_that_say_what_no_database_takes_are_kept_readably(store: Store) -> None:
    with recorded_run(store.engine, store.clock, "ingest", {}) as run:
        run.fail(Failure("a\0", "b\ud800", "c\udc80"))
    assert list(store.failures(run.id)) == [Failure("a�", "b�", "c�")]
