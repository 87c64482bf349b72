"""The record of each run: its arguments, outcome, and failures."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, insert, select, update

from siteloom.core.database import writing
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.storable_text import storable
from siteloom.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from siteloom.core.model import Failure

FORGET = "forget"
"""The verb of the runs that remove pages."""

_FAILURES_WAITING = 500


class Run(NamedTuple):
    """One run of a verb; its status is `running`, `done`, `failed`, `interrupted` or `killed`.

    The fields stand in the order of the columns.
    """

    id: int
    verb: str
    arguments: dict[str, Any]
    started_at: datetime
    ended_at: datetime | None
    status: str
    counts: dict[str, int]

    @property
    def site(self) -> str | None:
        """The only site it was about, if it was about one."""
        site = self.arguments.get("site")
        return site if isinstance(site, str) else None

    @property
    def seconds(self) -> float | None:
        """How long it took, if its end is known; one that was taken up again counts from its first start."""
        return None if self.ended_at is None else max(0.0, (self.ended_at - self.started_at).total_seconds())


class RunRecorder:
    """A run that is under way; `on_good_end` belongs to the transaction in which it comes to hold."""

    def __init__(self, engine: Engine, run_id: int) -> None:
        self.id = run_id
        self.counts: Counter[str] = Counter()
        self.failures_by_reason: Counter[str] = Counter()
        self.on_good_end: Callable[[Connection], object] = lambda _: None
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
            with held_back_interrupt():  # between the two it would make them wait though they are written
                with writing(self._engine) as connection:
                    save_failures(connection, self.id, self._waiting)
                self._waiting.clear()


def save_failures(connection: Connection, run_id: int, failures: Sequence[Failure]) -> None:
    """Keep failures of a run."""
    rows = [
        {
            "run_id": run_id,
            "url": storable(failure.url),
            "reason": storable(failure.reason),
            "detail": storable(failure.detail),
        }
        for failure in failures
    ]
    if rows:
        connection.execute(insert(schema.failures), rows)


def active_runs_of(connection: Connection, verb: str, before: int | None = None) -> dict[str | None, int]:
    """The newest good run of a verb for each site that has its own, and under None that for all others.

    One for the whole workspace replaces all before it, one for a site or some sites those for these. With
    `before`, it is as it was when the run of this number began.
    """
    columns = schema.runs.c
    query = select(columns.id, columns.arguments).where(columns.verb == verb, columns.status == "done")
    if before is not None:
        query = query.where(columns.id < before)
    runs: dict[str | None, int] = {}
    for run_id, arguments in connection.execute(query.order_by(columns.id.desc())):
        sites = arguments.get("sites") or [arguments.get("site")]
        for site in sites:
            runs.setdefault(site, run_id)
        if None in sites:
            break
    return runs


def last_erasure(connection: Connection) -> int | None:
    """The id of the last run that removed pages, or began to; None if none ever did."""
    columns = schema.runs.c
    newest: int | None = connection.execute(
        select(func.max(columns.id)).where(columns.verb == FORGET)
    ).scalar()
    return newest


def erasure_mark(connection: Connection) -> tuple[int, str] | None:
    """What is another whenever a run that removes pages has begun or ended; what was read before is outdated.

    It is None as long as there was none.
    """
    columns = schema.runs.c
    query = select(columns.id, columns.status).where(columns.verb == FORGET)
    newest = connection.execute(query.order_by(columns.id.desc()).limit(1)).first()
    return None if newest is None else (newest.id, newest.status)


@contextmanager
def recorded_run(
    engine: Engine, clock: Callable[[], datetime], verb: str, arguments: Mapping[str, object]
) -> Iterator[RunRecorder]:
    """Record a run from its start to its end, whichever end that is.

    Call it under the write lock: a run of the same verb that is still marked
    as running was then killed.
    """
    with writing(engine) as connection:
        mark_killed(connection, verb)
        run_id = begin_run(connection, verb, arguments, clock())
    with tracked_run(engine, clock, run_id) as run:
        yield run


def mark_killed(connection: Connection, verb: str) -> None:
    """Write down that a run of a verb that is still marked as running was killed."""
    columns = schema.runs.c
    unfinished = update(schema.runs).where(columns.status == "running", columns.verb == verb)
    connection.execute(unfinished.values(status="killed"))


def begin_run(connection: Connection, verb: str, arguments: Mapping[str, object], at: datetime) -> int:
    """Write down that a run begins; returns its id."""
    started = insert(schema.runs).values(
        verb=verb, arguments=arguments, started_at=at, status="running", counts={}
    )
    run_id: int = connection.execute(started.returning(schema.runs.c.id)).scalar_one()
    return run_id


@contextmanager
def tracked_run(engine: Engine, clock: Callable[[], datetime], run_id: int) -> Iterator[RunRecorder]:
    """Record how a run that has begun goes on, and which end it comes to."""
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
            with writing(engine) as connection:
                ended = update(schema.runs).where(schema.runs.c.id == run_id)
                connection.execute(ended.values(ended_at=clock(), status=status, counts=dict(run.counts)))
                if status == "done":
                    run.on_good_end(connection)
