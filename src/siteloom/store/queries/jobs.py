"""Jobs: long work requested through the server, with progress and result."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import case, func, insert, select, update

from siteloom.core.database import writing
from siteloom.core.storable_text import storable
from siteloom.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlalchemy import Engine

JobState = Literal["waiting", "running", "done", "failed", "cancelled", "lost"]
JobEnd = Literal["done", "failed", "cancelled"]

_UNFINISHED: tuple[JobState, ...] = ("waiting", "running")


class Job(NamedTuple):
    """A job.

    `done` of `total`, if that is known, of what the message names. The result is what came of a job that is
    done, and of one that failed or was cancelled a sentence that says why.
    """

    id: int
    kind: str
    arguments: dict[str, Any]
    author: str
    state: JobState
    done: int
    total: int | None
    message: str
    result: dict[str, Any] | str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.state not in _UNFINISHED


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a store. They are those of one server: a workspace is served by one at a time."""

    engine: Engine
    clock: Callable[[], datetime]

    def add(self, kind: str, arguments: Mapping[str, object], author: str) -> Job:
        """Write down a job that waits for its turn."""
        row = {
            "kind": kind,
            "arguments": dict(arguments),
            "author": storable(author),
            "state": "waiting",
            "done": 0,
            "message": "",
            "created_at": self.clock(),
        }
        with writing(self.engine) as connection:
            added = connection.execute(insert(schema.jobs).values(row).returning(*schema.jobs.c))
            return Job(*added.one())

    def start(self, job_id: int) -> bool:
        """Write down that a job begins; False if it does not wait any more, for it was cancelled."""
        columns = schema.jobs.c
        begun = update(schema.jobs).where(columns.id == job_id, columns.state == "waiting")
        with writing(self.engine) as connection:
            result = connection.execute(begun.values(state="running", started_at=self.clock()))
            return result.rowcount == 1

    def progress(self, job_id: int, done: int, total: int | None, message: str) -> None:
        """Write down how far a job is."""
        with writing(self.engine) as connection:
            changed = update(schema.jobs).where(schema.jobs.c.id == job_id)
            connection.execute(changed.values(done=done, total=total, message=storable(message)))

    def end(
        self, job_id: int, state: JobEnd, result: Mapping[str, object] | str, *, only_waiting: bool = False
    ) -> bool:
        """Write down what came of a job, or in a sentence why nothing did; False if it had ended before.

        One that was given up for lost may end all the same: another server may have thought so.
        """
        columns = schema.jobs.c
        from_states = ("waiting",) if only_waiting else (*_UNFINISHED, "lost")
        ended = update(schema.jobs).where(columns.id == job_id, columns.state.in_(from_states))
        stored_result = result if isinstance(result, str) else dict(result)
        with writing(self.engine) as connection:
            update_result = connection.execute(
                ended.values(state=state, result=stored_result, ended_at=self.clock())
            )
            return update_result.rowcount == 1

    def give_up_unfinished(self) -> int:
        """Write down of all jobs that have not ended that they are lost; returns how many.

        To be called when a server starts: the one that they belonged to is gone.
        """
        columns = schema.jobs.c
        query = update(schema.jobs).where(columns.state.in_(_UNFINISHED))
        with writing(self.engine) as connection:
            result = connection.execute(query.values(state="lost", ended_at=self.clock()))
            return result.rowcount

    def get(self, job_id: int) -> Job | None:
        """A job, if there is one of this id."""
        query = select(schema.jobs).where(schema.jobs.c.id == job_id)
        with self.engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Job(*row)

    def latest(self, limit: int, state: JobState | None = None) -> list[Job]:
        """The newest jobs, or those of them in a state, the newest first.

        What came of those that are done is left out, for that of many is much.
        """
        columns = schema.jobs.c
        sentence = case((columns.state != "done", columns.result)).label("result")
        shown = [sentence if column is columns.result else column for column in columns]
        query = select(*shown).order_by(columns.id.desc()).limit(limit)
        if state is not None:
            query = query.where(columns.state == state)
        with self.engine.connect() as connection:
            return [Job(*row) for row in connection.execute(query)]

    def newest(
        self, kind: str, arguments: Mapping[str, str] = MappingProxyType({}), state: JobState | None = None
    ) -> Job | None:
        """The newest job of a kind that has these arguments, or the newest such in a state."""
        columns = schema.jobs.c
        query = select(schema.jobs).where(columns.kind == kind).order_by(columns.id.desc()).limit(1)
        if state is not None:
            query = query.where(columns.state == state)
        for name, text in arguments.items():
            query = query.where(columns.arguments[name].as_string() == text)
        with self.engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Job(*row)

    def counts(self) -> dict[tuple[str, JobState], int]:
        """How many jobs there are of each kind in each state."""
        columns = schema.jobs.c
        query = select(columns.kind, columns.state, func.count()).group_by(columns.kind, columns.state)
        with self.engine.connect() as connection:
            return {(kind, state): count for kind, state, count in connection.execute(query)}
