"""The history of runs: their arguments, duration, counts and failures."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from siteloom.core.file_lock import is_locked
from siteloom.core.model import Failure
from siteloom.core.sequences import batches
from siteloom.core.storable_text import storable
from siteloom.store import schema
from siteloom.store.queries.clusters import KEYS_AT_A_TIME
from siteloom.store.queries.runs import Run
from siteloom.store.queries.watches_and_repairs import OUTCOME, PastCheck, StoredCheck

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import ColumnElement, Engine


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The runs and checks of a store over time."""

    engine: Engine
    folder: Path

    def runs(
        self,
        verbs: Collection[str] = (),
        site: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> list[Run]:
        """The latest runs of some verbs, the oldest first; with a site, those that were for it or for all."""
        columns = schema.runs.c
        query = select(schema.runs).order_by(columns.id.desc()).limit(limit)
        if verbs:
            query = query.where(columns.verb.in_(verbs))
        if site is not None:
            asked_for = columns.arguments["site"].as_string()
            query = query.where(asked_for.is_(None) | (asked_for == storable(site)))
        if since is not None:
            query = query.where(columns.started_at >= since)
        with self.engine.connect() as connection:
            found = [Run(*row) for row in reversed(connection.execute(query).all())]
        return self._as_they_are(found)

    def count(self, verbs: Collection[str], site: str | None = None) -> dict[str, int]:
        """How many runs of some verbs there are, or of those that were for one site alone."""
        verb = schema.runs.c.verb
        query = select(verb, func.count().label("runs")).where(verb.in_(verbs)).group_by(verb)
        if site is not None:
            query = query.where(schema.runs.c.arguments["site"].as_string() == storable(site))
        with self.engine.connect() as connection:
            return {row.verb: row.runs for row in connection.execute(query)}

    def run(self, run_id: int) -> Run | None:
        """A run, if there is one of this id."""
        with self.engine.connect() as connection:
            row = connection.execute(select(schema.runs).where(schema.runs.c.id == run_id)).one_or_none()
        return None if row is None else self._as_they_are([Run(*row)])[0]

    def _as_they_are(self, runs: list[Run]) -> list[Run]:
        """Runs, of which one that is marked as running was killed if no process is at work."""
        if all(run.status != "running" for run in runs) or is_locked(self.folder):
            return runs
        return [run._replace(status="killed") if run.status == "running" else run for run in runs]

    def tallies(self, run_ids: Sequence[int]) -> Iterator[tuple[int, Sequence[Sequence[Any]]]]:
        """What runs of extract counted, as rows, part by part: a run that came to its end has mostly one."""
        columns = schema.extracted_shards.c
        query = select(columns.run_id, columns.summary).order_by(columns.run_id, columns.shard)
        for batch in batches(run_ids, KEYS_AT_A_TIME):
            with self.engine.connect() as connection:
                for run_id, summary in connection.execute(query.where(columns.run_id.in_(batch))):
                    yield run_id, summary.get("tally", ())

    def failures_by_reason(self, run_ids: Sequence[int]) -> dict[int, Counter[str]]:
        """Count the failures of runs by reason."""
        columns = schema.failures.c
        query = select(columns.run_id, columns.reason, func.count()).group_by(columns.run_id, columns.reason)
        counts: dict[int, Counter[str]] = defaultdict(Counter)
        for batch in batches(run_ids, KEYS_AT_A_TIME):
            with self.engine.connect() as connection:
                for run_id, reason, count in connection.execute(query.where(columns.run_id.in_(batch))):
                    counts[run_id][reason] = count
        return dict(counts)

    def failures(self, run_id: int, limit: int, reason: str | None = None) -> list[Failure]:
        """The first failures of a run, or those for one reason."""
        columns = schema.failures.c
        query = select(columns.url, columns.reason, columns.detail).where(columns.run_id == run_id)
        if reason is not None:
            query = query.where(columns.reason == storable(reason))
        with self.engine.connect() as connection:
            return [Failure(*row) for row in connection.execute(query.order_by(columns.id).limit(limit))]

    def checks(self, limit: int, wrappers: Collection[str] | None = None) -> list[PastCheck]:
        """Return the outcomes of the latest checks, or of those of some wrappers, the oldest first."""
        columns = schema.checks.c
        query = select(*OUTCOME).order_by(columns.id.desc()).limit(limit)
        if wrappers is not None:
            query = query.where(columns.wrapper.in_(map(storable, wrappers)))
        with self.engine.connect() as connection:
            return [PastCheck(*row) for row in reversed(connection.execute(query).all())]

    def checks_seen(self, check_ids: Sequence[int]) -> dict[int, StoredCheck]:
        """Some checks with what they saw."""
        return self._checks(schema.checks.c.id, check_ids)

    def checks_of_run(self, run_id: int) -> list[StoredCheck]:
        """Return the checks of a run."""
        return list(self._checks(schema.checks.c.run_id, [run_id]).values())

    def _checks(self, column: ColumnElement[int], values: Sequence[int]) -> dict[int, StoredCheck]:
        query = select(schema.checks).order_by(schema.checks.c.id)
        checks: dict[int, StoredCheck] = {}
        for batch in batches(values, KEYS_AT_A_TIME):
            with self.engine.connect() as connection:
                checks |= {
                    row.id: StoredCheck(*row) for row in connection.execute(query.where(column.in_(batch)))
                }
        return checks
