"""The record of each run: what was asked, how it went, which pages failed and why."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, update

from siteloom.store import schema
from siteloom.store.interrupts import held_back_interrupt
from siteloom.store.text import storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Engine

    from siteloom.model import Failure

_FAILURES_WAITING = 500


class Run(NamedTuple):
    """One run of a verb; its status is `running`, `done`, `failed`, `interrupted` or `killed`."""

    id: int
    verb: str
    started_at: datetime
    ended_at: datetime | None
    status: str
    counts: dict[str, int]


class RunRecorder:
    """A run that is under way."""

    def __init__(self, engine: Engine, run_id: int) -> None:
        self.id = run_id
        self.counts: Counter[str] = Counter()
        self.failures_by_reason: Counter[str] = Counter()
        self._engine = engine
        self._waiting: list[Failure] = []

    def fail(self, failure: Failure) -> None:
        """Count a failure and keep it."""
        self.counts["failed"] += 1
        self.failures_by_reason[failure.reason] += 1
        self._waiting.append(failure)
        if len(self._waiting) >= _FAILURES_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write the failures that wait."""
        if self._waiting:
            rows = [
                {
                    "run_id": self.id,
                    "url": storable(failure.url),
                    "reason": storable(failure.reason),
                    "detail": storable(failure.detail),
                }
                for failure in self._waiting
            ]
            with held_back_interrupt():  # between the two it would make them wait though they are written
                with self._engine.begin() as connection:
                    connection.execute(insert(schema.failures), rows)
                self._waiting.clear()


@contextmanager
def recorded_run(
    engine: Engine, clock: Callable[[], datetime], verb: str, arguments: Mapping[str, object]
) -> Iterator[RunRecorder]:
    """Record a run from its start to its end, whichever end that is.

    Call it under the write lock: a run of the same verb that is still marked
    as running was then killed.
    """
    columns = schema.runs.c
    with engine.begin() as connection:
        unfinished = update(schema.runs).where(columns.status == "running", columns.verb == verb)
        connection.execute(unfinished.values(status="killed"))
        started = insert(schema.runs).values(
            verb=verb, arguments=arguments, started_at=clock(), status="running", counts={}
        )
        run_id = connection.execute(started.returning(columns.id)).scalar_one()
    run = RunRecorder(engine, run_id)
    status = "failed"
    try:
        yield run
        status = "done"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        with held_back_interrupt():
            run.flush()
            with engine.begin() as connection:
                ended = update(schema.runs).where(columns.id == run.id)
                connection.execute(ended.values(ended_at=clock(), status=status, counts=dict(run.counts)))
