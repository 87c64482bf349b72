"""Decisions that wait for a person: repairs that need approval or examples, and dismissed clusters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select, update

from siteloom.core.database import writing
from siteloom.core.errors import StoreError
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.storable_text import storable
from siteloom.store import schema
from siteloom.store.keys import url_key
from siteloom.store.queries.attribute_schemas import successors_of
from siteloom.store.queries.clusters import (
    IDENTIFYING_COLUMNS,
    active_clusters,
    cluster_ids_named,
    cluster_names,
)
from siteloom.store.queries.seeds import is_awaiting_review
from siteloom.store.queries.watches_and_repairs import RepairState, StoredRepair, close_repair, is_waiting
from siteloom.store.queries.wrappers import add_version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from siteloom.store.queries.clusters import PageAddress
    from siteloom.store.queries.watches_and_repairs import NewVersion


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """The decisions that wait for a person, and the locations of their pages."""

    engine: Engine
    clock: Callable[[], datetime]

    def repairs(self, wrapper: str | None = None) -> list[StoredRepair]:
        """The repairs that wait for a yes or for examples, or that of a wrapper, the newest first."""
        query = select(schema.repairs).where(is_waiting()).order_by(schema.repairs.c.id.desc())
        if wrapper is not None:
            query = query.where(schema.repairs.c.wrapper == storable(wrapper))
        with self.engine.connect() as connection:
            return [StoredRepair(*row) for row in connection.execute(query)]

    def count(self) -> int:
        """How many decisions wait: of repairs, and of sites that were wrapped from known records."""
        repairs = select(func.count()).select_from(schema.repairs).where(is_waiting())
        sites = select(func.count()).select_from(schema.grown_sites).where(is_awaiting_review())
        with self.engine.connect() as connection:
            return sum(int(connection.execute(query).scalar_one()) for query in (repairs, sites))

    def accept(self, repair: StoredRepair, site: str) -> int:
        """Put what a repair proposes in force as the next version of its wrapper; returns its number."""
        assert repair.text is not None
        return self.put_in_force(repair, site, repair.text, repair.outcome, "accepted by review")

    def put_in_force(self, repair: StoredRepair, site: str, text: str, origin: str, note: str) -> int:
        """End the waiting of a repair with the next version of its wrapper; returns the version's number.

        Both happen in one transaction, so that what is in force cannot be rejected. If a part of the repair
        is in force already, the repair stays recorded as what made that version.
        """
        with held_back_interrupt(), writing(self.engine) as connection:
            version = add_version(
                connection, repair.wrapper, site, text, at=self.clock(), origin=origin, note=note
            )
            made_version = version if repair.version_after is None else None
            close_repair(connection, repair.id, "applied", made_version)
        return version

    def put_learned_in_force(self, name: str, site: str, text: str) -> int:
        """Keep what was learned as the next version of a wrapper; returns its number.

        With it ends the waiting of repairs: for examples, which are there now, or for a yes to the old.
        """
        columns = schema.repairs.c
        waiting = update(schema.repairs).where(columns.wrapper == storable(name))
        with held_back_interrupt(), writing(self.engine) as connection:
            version = add_version(connection, name, site, text, at=self.clock(), origin="learn", note="")
            for_examples = waiting.where(columns.state == "annotation")
            connection.execute(for_examples.values(state="applied", version_after=version))
            connection.execute(waiting.where(columns.state == "review").values(state="superseded"))
        return version

    def reopen(self, repair: StoredRepair, restored: NewVersion | None = None) -> None:
        """Let a repair that was rejected or put in force wait again for what it waited for.

        If it was put in force, the wrapper as it was before becomes the next version: `restored`.
        The repair is then one of that version.
        """
        columns = schema.repairs.c
        values: dict[str, object] = {"state": waiting_state(repair.outcome)}
        with held_back_interrupt(), writing(self.engine) as connection:
            if restored is not None:
                site, text, origin, note = restored
                version = add_version(
                    connection, repair.wrapper, site, text, at=self.clock(), origin=origin, note=note
                )
                is_of_part = repair.version_after is not None and repair.text is None
                values |= (
                    {"version_after": version}
                    if is_of_part
                    else {"version_before": version, "version_after": None}
                )
            state = "rejected" if restored is None else "applied"
            reopened = update(schema.repairs).where(columns.id == repair.id, columns.state == state)
            if connection.execute(reopened.values(values)).rowcount != 1:
                raise StoreError(f"The repair {repair.id} is not {state}, so it cannot wait again.")

    def dismiss(self, cluster: str) -> None:
        """Ask no one any more to annotate a cluster."""
        with writing(self.engine) as connection:
            cluster_ids = cluster_ids_named(connection, cluster)
            _undismiss(connection, cluster_ids)
            rows = [{"cluster_id": cluster_id, "at": self.clock()} for cluster_id in cluster_ids]
            if rows:
                connection.execute(insert(schema.dismissed_clusters), rows)

    def restore(self, cluster: str) -> None:
        """Ask again to annotate a cluster."""
        with writing(self.engine) as connection:
            _undismiss(connection, cluster_ids_named(connection, cluster))

    def dismissed(self) -> set[str]:
        """The names of the clusters that hold now and were found not worth annotating."""
        query = select(*IDENTIFYING_COLUMNS).join(schema.dismissed_clusters)
        with self.engine.connect() as connection:
            return {row.name for row in active_clusters(connection, query)}

    def places(self, addresses: Sequence[PageAddress]) -> dict[PageAddress, tuple[int, str | None]]:
        """The numbers of those of some pages that are there, each with the cluster that it is in, if any."""
        by_key = {url_key(address.site, address.url): address for address in addresses}
        urls = schema.urls.c
        query = select(urls.key, urls.id).where(urls.key.in_(by_key))
        with self.engine.connect() as connection:
            numbers = {by_key[key]: number for key, number in connection.execute(query)}
            clusters = cluster_names(connection, list(numbers.values()))
        return {address: (number, clusters.get(number)) for address, number in numbers.items()}


def waiting_state(outcome: str) -> RepairState:
    """The state of a repair that waits for a person: for examples, or for a decision."""
    return "annotation" if outcome == "needs-annotation" else "review"


def carry_over_dismissals(connection: Connection, run_id: int, at: datetime) -> None:
    """Ask about no cluster of a run that consists for the most part of what was found not worth annotating.

    To be called when the run holds, in the same transaction.
    """
    clusters, members = schema.clusters.c, schema.cluster_pages
    set_aside = clusters.id.in_(select(schema.dismissed_clusters.c.cluster_id))
    pages: Counter[str] = Counter()
    for heir in successors_of(connection, run_id, set_aside):
        pages[heir.new] += heir.pages
    sizes = (
        select(clusters.id, clusters.name, func.count())
        .join(members, members.c.cluster_id == clusters.id)
        .where(clusters.run_id == run_id)
        .group_by(clusters.id, clusters.name)
    )
    rows = [
        {"cluster_id": cluster_id, "at": at}
        for cluster_id, name, size in connection.execute(sizes)
        if 2 * pages[name] >= size
    ]
    if rows:
        connection.execute(insert(schema.dismissed_clusters), rows)


def _undismiss(connection: Connection, clusters: Sequence[int]) -> None:
    columns = schema.dismissed_clusters.c
    connection.execute(delete(schema.dismissed_clusters).where(columns.cluster_id.in_(clusters)))
