"""Watched pages, checks, and repairs of wrappers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import delete, func, insert, select, update

from siteloom.core.database import writing
from siteloom.core.errors import StoreError
from siteloom.core.file_lock import wait_for_tables
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.storable_text import storable, storable_json
from siteloom.store import schema
from siteloom.store.queries.wrappers import add_version
from siteloom.store.query_base import Tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Select, Table

RepairState = Literal["applied", "review", "annotation", "rejected", "superseded"]
"""A repair is `applied` if it is in force; `review` or `annotation` while it waits for a person's decision or
examples; `rejected` if a person refused it, and `superseded` if a newer one took its place."""

_OPEN = ("review", "annotation")  # the states of a repair that waits for a person
_SUPERSEDED = "superseded"
OUTCOME = tuple(column for column in schema.checks.c if column is not schema.checks.c.content)


# The fields of each of these stand in the order of the columns of its table.


class StoredWatch(NamedTuple):
    """The watch of a wrapper as JSON; no version if the wrapper is not in the store."""

    wrapper: str
    site: str
    version: int | None
    text: str
    saved_at: datetime


class StoredCheck(NamedTuple):
    """The result of a run's check of a wrapper; its kind is `bellwethers` or `output`."""

    id: int
    run_id: int
    wrapper: str
    version: int | None
    at: datetime
    kind: str
    is_healthy: bool
    content: dict[str, Any]


class PastCheck(NamedTuple):
    """The outcome of a check without its details."""

    id: int
    run_id: int
    wrapper: str
    version: int | None
    at: datetime
    kind: str
    is_healthy: bool


class NewVersion(NamedTuple):
    """A version of a wrapper that a repair puts in force: what made it, and a note."""

    site: str
    text: str
    origin: str
    note: str


class StoredRepair(NamedTuple):
    """A repair of a wrapper whose site had changed.

    The outcome is `reused`, `repaired` or `needs-annotation`; RepairState lists the states. `text` is the
    JSON of the wrapper that was proposed, `content` the report.
    """

    id: int
    run_id: int
    wrapper: str
    version_before: int
    version_after: int | None
    outcome: str
    state: RepairState
    confidence: float
    at: datetime
    text: str | None
    content: dict[str, Any]


class ChangeQueries(Tables):
    """Watches, checks and repairs of wrappers."""

    __slots__ = ()

    def save_watch(self, wrapper: str, site: str, version: int | None, text: str) -> None:
        """Keep the JSON of what is watched of a wrapper's pages in the place of what was watched before."""
        name = storable(wrapper)
        outdated = delete(schema.watches).where(schema.watches.c.wrapper == name)
        watch = insert(schema.watches).values(
            wrapper=name,
            site=storable(site),
            wrapper_version=version,
            text=storable_json(text),
            saved_at=self.clock(),
        )
        with writing(self.engine) as connection:
            wait_for_tables(connection)  # else two processes could both find the place free
            connection.execute(outdated)
            connection.execute(watch)

    def watches(self) -> list[StoredWatch]:
        """Return all watches by the names of their wrappers."""
        with self.engine.connect() as connection:
            found = [StoredWatch(*row) for row in connection.execute(select(schema.watches))]
        return sorted(found, key=lambda watch: watch.wrapper)  # databases differ in how they sort text

    def watched(self) -> dict[str, int | None]:
        """The wrappers that are watched, by name, each with the version that it is watched with."""
        columns = schema.watches.c
        with self.engine.connect() as connection:
            found = connection.execute(select(columns.wrapper, columns.wrapper_version)).all()
        return {row.wrapper: row.wrapper_version for row in sorted(found, key=lambda row: row.wrapper)}

    def watch(self, wrapper: str) -> StoredWatch | None:
        """Return the watch of a wrapper, if it has one."""
        query = select(schema.watches).where(schema.watches.c.wrapper == storable(wrapper))
        with self.engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else StoredWatch(*row)

    def save_check(
        self,
        run_id: int,
        wrapper: str,
        version: int | None,
        kind: str,
        is_healthy: bool,
        content: Mapping[str, object],
    ) -> None:
        """Keep what a run found when it looked after a wrapper, at its `bellwethers` or at its `output`."""
        check = insert(schema.checks).values(
            run_id=run_id,
            wrapper=storable(wrapper),
            wrapper_version=version,
            at=self.clock(),
            kind=kind,
            is_healthy=is_healthy,
            content=dict(content),  # as JSON escapes it, databases take any text
        )
        with writing(self.engine) as connection:
            connection.execute(check)

    def newest_checks(self, wrapper: str | None = None) -> list[StoredCheck]:
        """The newest check of each kind of each wrapper, or of one."""
        columns = schema.checks.c
        newest = select(func.max(columns.id)).group_by(columns.wrapper, columns.kind)
        query = _newest_first(schema.checks, wrapper).where(columns.id.in_(newest))
        with self.engine.connect() as connection:
            return [StoredCheck(*row) for row in connection.execute(query)]

    def checks(self, wrapper: str | None = None, limit: int | None = None) -> list[StoredCheck]:
        """All checks or those of one wrapper, the newest first; no more than the limit, if there is one."""
        query = _newest_first(schema.checks, wrapper).limit(limit)
        with self.engine.connect() as connection:
            return [StoredCheck(*row) for row in connection.execute(query)]

    def newest_outcomes(self) -> list[PastCheck]:
        """Return the outcome of the newest check of each kind of each wrapper."""
        columns = schema.checks.c
        newest = select(func.max(columns.id)).group_by(columns.wrapper, columns.kind)
        with self.engine.connect() as connection:
            found = connection.execute(select(*OUTCOME).where(columns.id.in_(newest)))
            return [PastCheck(*row) for row in found]

    def wrappers_in_repair(self) -> set[str]:
        """The names of the wrappers of which a repair waits for a person."""
        columns = schema.repairs.c
        with self.engine.connect() as connection:
            return set(connection.execute(select(columns.wrapper).where(is_waiting())).scalars())

    def save_repair(
        self,
        run_id: int,
        wrapper: str,
        version_before: int,
        version_after: int | None,
        outcome: str,
        state: RepairState,
        confidence: float,
        text: str | None,
        content: Mapping[str, object],
        new_version: NewVersion | None = None,
    ) -> int:
        """Store a repair of a wrapper whose site had changed; returns the id of the repair.

        Older repairs of the wrapper that still wait for a person are superseded. A version that the repair
        puts in force is stored in the same transaction, so that no wrapper changes without a repair that
        says why.
        """
        name, columns, now = storable(wrapper), schema.repairs.c, self.clock()
        waiting = update(schema.repairs).where(columns.wrapper == name, columns.state.in_(_OPEN))
        repair = insert(schema.repairs).values(
            run_id=run_id,
            wrapper=name,
            version_before=version_before,
            outcome=outcome,
            state=state,
            confidence=confidence,
            at=now,
            text=None if text is None else storable_json(text),
            content=dict(content),
        )
        with held_back_interrupt(), writing(self.engine) as connection:
            wait_for_tables(connection)  # else two processes could both leave a repair of the wrapper open
            if new_version is not None:
                site, new_text, origin, note = new_version
                version_after = add_version(
                    connection, wrapper, site, new_text, at=now, origin=origin, note=note
                )
            repair = repair.values(version_after=version_after)
            connection.execute(waiting.values(state=_SUPERSEDED))
            repair_id: int = connection.execute(repair.returning(columns.id)).scalar_one()
        return repair_id

    def repairs(self, wrapper: str | None = None) -> list[StoredRepair]:
        """All repairs or those of one wrapper, the newest first."""
        with self.engine.connect() as connection:
            return [StoredRepair(*row) for row in connection.execute(_newest_first(schema.repairs, wrapper))]

    def close_repair(self, repair_id: int, state: RepairState, version_after: int | None = None) -> None:
        """End the waiting of a repair: `applied`, with the version it became, or another state.

        Raises StoreError if the repair does not wait any more.
        """
        with writing(self.engine) as connection:
            close_repair(connection, repair_id, state, version_after)


def is_waiting() -> ColumnElement[bool]:
    """Whether a repair waits for a person, and its wrapper has no later version, which makes it pointless."""
    repairs, wrappers = schema.repairs.c, schema.wrappers.c
    later = select(wrappers.id).where(
        wrappers.name == repairs.wrapper,
        wrappers.version > func.coalesce(repairs.version_after, repairs.version_before),
    )
    return repairs.state.in_(_OPEN) & ~later.exists()


def close_repair(
    connection: Connection, repair_id: int, state: RepairState, version_after: int | None
) -> None:
    """End the waiting of a repair within a transaction; raises StoreError if it does not wait any more."""
    columns = schema.repairs.c
    closed = update(schema.repairs).where(columns.id == repair_id, columns.state.in_(_OPEN))
    closed = closed.values(state=state)
    if version_after is not None:
        closed = closed.values(version_after=version_after)
    if connection.execute(closed).rowcount == 1:
        return
    state_before = connection.execute(select(columns.state).where(columns.id == repair_id)).scalar()
    if state_before is None:
        raise StoreError(f"There is no repair {repair_id}.")
    raise StoreError(f"The repair {repair_id} waits for no one any more: it is {state_before} already.")


def _newest_first(table: Table, wrapper: str | None) -> Select[*tuple[Any, ...]]:
    query = select(table).order_by(table.c.id.desc())
    return query if wrapper is None else query.where(table.c.wrapper == storable(wrapper))
