"""Records in the store: the results of runs of extract, stored shard by shard.

A shard's records, its failures and the mark that it is done are written in one transaction. So a run can be
killed at any moment and resumed: marked shards are complete, others have left nothing.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, delete, insert, select, update

from siteloom.core.database import writing
from siteloom.core.errors import StoreError
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.sequences import evenly_spaced, row_batches
from siteloom.core.storable_text import storable, storable_json
from siteloom.core.urls import site_of
from siteloom.store import schema
from siteloom.store.keys import address_key
from siteloom.store.queries.runs import active_runs_of, begin_run, mark_killed, save_failures, tracked_run
from siteloom.store.queries.wrappers import WITHDRAWN, is_in_force, is_newest
from siteloom.store.query_base import Tables

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine

    from siteloom.core.model import Failure
    from siteloom.extraction.shard_extraction import ExtractedRow

_VERB = "extract"
_FINGERPRINT = "fingerprint"  # its key among the arguments of a run
_RECORDS_AT_A_TIME = 500


class StoredRecord(NamedTuple):
    """What a run that started at some time found on a page: the wrapper that did, and the record as JSON."""

    run_id: int
    started_at: datetime
    wrapper: str
    version: int | None
    content: str


class Extraction:
    """A run of extract in progress.

    `done_summaries` has the summary of each shard that was committed before the run was resumed. `counts`
    begin empty in any case; their final values are stored with the run. If `sum_up` is set, it returns the
    summary of all shards, which replaces theirs when the run succeeds.
    """

    def __init__(
        self, engine: Engine, run_id: int, done: Mapping[int, Mapping[str, Any]], counts: Counter[str]
    ) -> None:
        self.run_id = run_id
        self.done_summaries = done
        self.counts = counts
        self.sum_up: Callable[[], Mapping[str, object]] | None = None
        self._engine = engine

    def keep_sum(self, connection: Connection) -> None:
        """Keep one summary for all shards: a run that is done is not taken up again, and read often."""
        if self.sum_up is None:
            return
        shards = schema.extracted_shards
        connection.execute(delete(shards).where(shards.c.run_id == self.run_id))
        connection.execute(insert(shards), {"run_id": self.run_id, "shard": 0, "summary": self.sum_up()})

    def commit(
        self,
        shard: int,
        rows: Sequence[ExtractedRow],
        failures: Sequence[Failure],
        summary: Mapping[str, object],
    ) -> None:
        """Keep all that came of a shard; if the process dies meanwhile, nothing of it."""
        mark = {"run_id": self.run_id, "shard": shard, "summary": dict(summary)}
        records = [
            {
                "run_id": self.run_id,
                "shard": shard,
                "place": place,
                "url_key": address_key(row.url),
                "url": storable(row.url),
                "wrapper": storable(row.wrapper),
                "wrapper_version": row.version,
                "content": storable_json(row.content),
            }
            for place, row in enumerate(rows)
        ]
        with held_back_interrupt(), writing(self._engine) as connection:
            connection.execute(insert(schema.extracted_shards), mark)
            if records:
                connection.execute(insert(schema.records), records)
            save_failures(connection, self.run_id, failures)


@contextmanager
def extraction_run(
    engine: Engine, clock: Callable[[], datetime], arguments: Mapping[str, object], fingerprint: str
) -> Iterator[Extraction]:
    """A run of extract: the newest if it stopped half way with this fingerprint, else a new one.

    Call it under the write lock.
    """
    with writing(engine) as connection:
        mark_killed(connection, _VERB)
        run_id = _resume_run(connection, fingerprint)
        if run_id is None:
            run_id = begin_run(connection, _VERB, {**arguments, _FINGERPRINT: fingerprint}, clock())
        done = _done_shards(connection, run_id)
    with tracked_run(engine, clock, run_id) as run:
        extraction = Extraction(engine, run_id, done, run.counts)
        run.on_good_end = extraction.keep_sum
        yield extraction


def _resume_run(connection: Connection, fingerprint: str) -> int | None:
    """Let the newest run go on if it stopped half way with this fingerprint; returns its id."""
    columns = schema.runs.c
    newest = (
        select(columns.id, columns.status, columns.arguments)
        .where(columns.verb == _VERB)
        .order_by(columns.id.desc())
        .limit(1)
        # The last commit of a killed process may still be under way in PostgreSQL.
        # It holds on to the row of its run, so that this waits for it.
        .with_for_update()
    )
    run = connection.execute(newest).one_or_none()
    if run is None or run.status == "done" or run.arguments.get(_FINGERPRINT) != fingerprint:
        return None
    restarted = update(schema.runs).where(columns.id == run.id)
    connection.execute(restarted.values(status="running", ended_at=None, counts={}))
    run_id: int = run.id
    return run_id


def _done_shards(connection: Connection, run_id: int) -> dict[int, dict[str, Any]]:
    columns = schema.extracted_shards.c
    query = select(columns.shard, columns.summary).where(columns.run_id == run_id).order_by(columns.shard)
    return {row.shard: row.summary for row in connection.execute(query)}


def newest_extraction(
    engine: Engine, before: datetime | None = None, records: ColumnElement[bool] | None = None
) -> int | None:
    """The newest run of extract that came to a good end: begun up to a time, with certain records."""
    columns = schema.runs.c
    query = select(columns.id).where(columns.verb == _VERB, columns.status == "done")
    if before is not None:
        query = query.where(columns.started_at <= before)
    if records is not None:
        record_columns = schema.records.c
        query = query.where(
            select(record_columns.id).where(record_columns.run_id == columns.id, records).exists()
        )
    with engine.connect() as connection:
        run_id: int | None = connection.execute(query.order_by(columns.id.desc()).limit(1)).scalar()
    return run_id


class RecordQueries(Tables):
    """The records of runs of extract."""

    __slots__ = ()

    def records(self, run_id: int | None = None) -> Iterator[str]:
        """The JSON of all records of a run, by default of the newest run of extract that came to a good end.

        They come in the order of the pages, read from the tables a few at a time. A run that is named may be
        one that has not ended, and gives all that it found; else records of wrappers that are out of force by
        now are left out. They are kept, for these may be put back.
        """
        if run_id is None:
            run_id = newest_extraction(self.engine)
            if run_id is None:
                raise StoreError("No records were extracted yet: run siteloom extract.")
            return _records(self.engine, run_id, is_not_withdrawn())
        if _run_arguments(self.engine, run_id) is None:
            raise StoreError(f"There is no run {run_id} of extract: siteloom status lists the latest runs.")
        return _records(self.engine, run_id)

    def records_in_force(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The records that hold now, each with its site: for each site, those of the newest run for it.

        Wrappers that are out of force by now are left out.
        """
        in_force = active_runs(self.engine)
        for asked_for, run_id in in_force.runs.items():
            for row in map(json.loads, _records(self.engine, run_id, is_not_withdrawn())):
                site = in_force.site_of(asked_for, row["wrapper"], row["url"])
                if site is not None:
                    yield site, row

    def urls_with_record(self, run_id: int) -> set[str]:
        """The URLs of the pages that a run of extract has a record of."""
        columns = schema.records.c
        with self.engine.connect() as connection:
            return set(
                connection.execute(select(columns.url).where(columns.run_id == run_id).distinct()).scalars()
            )

    def records_of(self, url: str) -> list[StoredRecord]:
        """Return the records of each run of extract at a URL, newest run first, including unfinished ones."""
        columns = schema.records.c
        query = (
            select(
                columns.run_id,
                schema.runs.c.started_at,
                columns.wrapper,
                columns.wrapper_version,
                columns.content,
            )
            .join(schema.runs)
            .where(columns.url_key == address_key(url))
            .order_by(columns.run_id.desc(), columns.shard, columns.place)
        )
        with self.engine.connect() as connection:
            return [StoredRecord(*row) for row in connection.execute(query)]

    def records_as_of(
        self,
        wrapper: str,
        before: datetime,
        versions: Collection[int] | None = None,
        most_pages: int | None = None,
    ) -> Iterator[str]:
        """The JSON of the records of a wrapper, of any of its versions or of some, as they were at a time.

        They are those of the newest run of extract that came to a good end and has any,
        among those begun up to that time; none if there is no such run. If they are of
        more pages than wanted, they are those of some evenly spaced ones.
        """
        columns = schema.records.c
        condition = columns.wrapper == storable(wrapper)
        if versions is not None:
            condition = and_(condition, columns.wrapper_version.in_(versions))
        run_id = newest_extraction(self.engine, before, condition)
        if run_id is None:
            return iter(())
        if most_pages is not None:
            pages = _page_keys(self.engine, run_id, condition)
            if len(pages) > most_pages:
                condition = and_(condition, columns.url_key.in_(evenly_spaced(pages, most_pages)))
        return _records(self.engine, run_id, condition)

    def shard_summaries(self, run_id: int) -> list[Mapping[str, Any]]:
        """The summaries of all shards that a run of extract is done with; if it is at its end, their sum."""
        with self.engine.connect() as connection:
            return list(_done_shards(connection, run_id).values())

    def wrappers_of(self, urls: Sequence[str]) -> dict[str, str]:
        """The name of the wrapper that gave the newest record of each URL, of those that have one."""
        columns = schema.records.c
        keys = {address_key(url): url for url in urls}
        wrappers_by_url: dict[str, str] = {}
        with self.engine.connect() as connection:
            for start in range(0, len(keys), _RECORDS_AT_A_TIME):
                batch = list(keys)[start : start + _RECORDS_AT_A_TIME]
                query = select(columns.url_key, columns.wrapper).where(columns.url_key.in_(batch))
                for key, wrapper in connection.execute(query.order_by(columns.run_id)):
                    wrappers_by_url[keys[key]] = wrapper
        return wrappers_by_url

    def extractions(self) -> dict[str | None, int]:
        """The run of extract that holds for each site that has one of its own, under None for all others."""
        with self.engine.connect() as connection:
            return active_extractions(connection)

    def last_extract_run(self) -> int | None:
        """The id of the newest run of extract that came to a good end, if there is one."""
        return newest_extraction(self.engine)


def active_extractions(connection: Connection) -> dict[str | None, int]:
    """The run of extract that holds for each site that has one of its own, and under None for all others."""
    return active_runs_of(connection, _VERB)


class ActiveRuns(NamedTuple):
    """Which records hold: the run for each site that has one of its own, and under None for all others.

    `sites` has the site of each wrapper that is in force.
    """

    runs: Mapping[str | None, int]
    sites: Mapping[str, str]

    def site_of(self, asked_for: str | None, wrapper: str, url: str) -> str | None:
        """The site of a record of the run that was asked for a site or for all; None if it does not hold."""
        site = asked_for or self.sites.get(wrapper) or site_of(url)
        run_id = self.runs[asked_for]
        return site if self.runs.get(site, run_id) == run_id else None


def active_runs(engine: Engine) -> ActiveRuns:
    """Which records hold now: for each site, those of the newest run for it."""
    columns = schema.wrappers.c
    wrappers = select(columns.name, columns.site).where(is_in_force(schema.wrappers))
    with engine.connect() as connection:
        runs = active_extractions(connection)
        return ActiveRuns(runs, {row.name: row.site for row in connection.execute(wrappers)})


def single_run(engine: Engine, run_id: int) -> ActiveRuns | None:
    """The records of a run of extract, as if no other had been; None if there is no such run."""
    arguments = _run_arguments(engine, run_id)
    if arguments is None:
        return None
    return ActiveRuns({arguments.get("site"): run_id}, active_runs(engine).sites)


def _run_arguments(engine: Engine, run_id: int) -> Mapping[str, Any] | None:
    """Return the arguments of a run of extract; None if there is no such run."""
    columns = schema.runs.c
    query = select(columns.arguments).where(columns.verb == _VERB, columns.id == run_id)
    with engine.connect() as connection:
        arguments: Mapping[str, Any] | None = connection.execute(query).scalar_one_or_none()
    return arguments


def is_not_withdrawn() -> ColumnElement[bool]:
    """Whether a record was found by a wrapper that is still in force, or that is none of the workspace."""
    wrappers, columns = schema.wrappers, schema.records.c
    withdrawn = select(wrappers.c.name).where(is_newest(wrappers), wrappers.c.origin == WITHDRAWN)
    # Without a version, it was no wrapper of the workspace.
    return columns.wrapper_version.is_(None) | columns.wrapper.not_in(withdrawn)


def _page_keys(engine: Engine, run_id: int, condition: ColumnElement[bool]) -> list[bytes]:
    """The pages that a run found certain records on, in their order."""
    columns = schema.records.c
    query = select(columns.url_key).where(columns.run_id == run_id, condition)
    with engine.connect() as connection:
        rows = connection.execute(query.order_by(columns.shard, columns.place))
        return list(dict.fromkeys(row.url_key for row in rows))


def _records(engine: Engine, run_id: int, condition: ColumnElement[bool] | None = None) -> Iterator[str]:
    columns = schema.records.c
    query = select(columns.content, columns.shard, columns.place).where(columns.run_id == run_id)
    if condition is not None:
        query = query.where(condition)
    for rows in row_batches(engine, query, [columns.shard, columns.place], _RECORDS_AT_A_TIME):
        yield from (row.content for row in rows)
