"""Schemas that people declared for clusters, and their carry-over to new clusterings.

A cluster is identified by its name, which is a number in its site, and the next run may give that number to
other pages. A declaration is about pages, so it follows these pages.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, insert, select

from siteloom.core.file_lock import wait_for_tables
from siteloom.core.model import Attribute
from siteloom.core.sequences import batches
from siteloom.core.storable_text import storable
from siteloom.store import schema
from siteloom.store.queries.clusters import IDENTIFYING_COLUMNS, KEYS_AT_A_TIME, active_clusters

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine, ScalarSelect


class _DeclaredAttributes(NamedTuple):
    """The newest revision of a cluster's schema: the attributes with their declared properties."""

    revision: int
    content: list[list[Any]]
    author: str


_NOTHING = _DeclaredAttributes(0, [], "")


class SuccessorCluster(NamedTuple):
    """The new cluster with most pages of an old one, and how many these are."""

    pages: int
    old: str
    new: str


def carry_over_schemas(connection: Connection, run_id: int, at: datetime) -> None:
    """Carry over the schemas of clusters to the clusters of a run that have their pages, and to no others.

    A schema goes to the cluster with most of the pages, if that has half of them. A cluster with pages of
    several old ones gets all their schemas; in conflicts, the one of more pages is used. Call it when the run
    becomes valid, in the same transaction.
    """
    wait_for_tables(connection)  # else what someone says meanwhile would be lost
    declared = _newest(connection)
    inherited: dict[str, list[_DeclaredAttributes]] = defaultdict(list)
    described = schema.clusters.c.name.in_(select(schema.cluster_schemas.c.cluster))
    for heir in sorted(successors_of(connection, run_id, described), key=lambda heir: -heir.pages):
        inherited[heir.new].append(declared[heir.old])
    names = connection.execute(select(schema.clusters.c.name).where(schema.clusters.c.run_id == run_id))
    rows = []
    for name in names.scalars():
        merged = _merged(inherited[name])
        previous = declared.get(name, _NOTHING)
        if merged.content != previous.content:
            row = {"revision": previous.revision + 1, "content": merged.content, "author": merged.author}
            rows.append({"cluster": name, "at": at, **row})
    if rows:
        connection.execute(insert(schema.cluster_schemas), rows)


def _newest(connection: Connection) -> dict[str, _DeclaredAttributes]:
    """Return the newest schema of each cluster, by name."""
    columns = schema.cluster_schemas.c
    newest = select(columns.cluster, func.max(columns.revision).label("revision")).group_by(columns.cluster)
    newest_revisions = newest.subquery()
    query = select(columns.cluster, columns.revision, columns.content, columns.author).join(
        newest_revisions,
        (newest_revisions.c.cluster == columns.cluster) & (newest_revisions.c.revision == columns.revision),
    )
    return {name: _DeclaredAttributes(*columns_of_row) for name, *columns_of_row in connection.execute(query)}


def successors_of(
    connection: Connection, run_id: int, condition: ColumnElement[bool]
) -> list[SuccessorCluster]:
    """Return for each old cluster the cluster of a run with most of its pages, if that has half of them."""
    old_clusters = active_clusters(connection, select(*IDENTIFYING_COLUMNS).where(condition), run_id)
    names = {row.id: row.name for row in old_clusters}
    sizes: dict[int, int] = defaultdict(int)
    heirs: dict[int, SuccessorCluster] = {}
    for batch in batches(names, KEYS_AT_A_TIME):
        for old_cluster, new_name, pages in _overlaps(connection, run_id, batch):
            sizes[old_cluster] += pages
            if new_name is not None and (old_cluster not in heirs or pages > heirs[old_cluster].pages):
                heirs[old_cluster] = SuccessorCluster(pages, names[old_cluster], new_name)
    return [heir for old_cluster, heir in heirs.items() if 2 * heir.pages >= sizes[old_cluster]]


def _overlaps(
    connection: Connection, run_id: int, cluster_ids: Collection[int]
) -> Sequence[tuple[int, str | None, int]]:
    """How many pages of some clusters are in which cluster of a run; with None, in none of them."""
    old, new = schema.cluster_pages.alias("old").c, schema.cluster_pages.alias("new").c
    found = (
        select(new.url_id, schema.clusters.c.name)
        .join(schema.clusters, schema.clusters.c.id == new.cluster_id)
        .where(schema.clusters.c.run_id == run_id)
        .subquery()
    )
    query = (
        select(old.cluster_id, found.c.name, func.count())
        .outerjoin(found, found.c.url_id == old.url_id)
        .where(old.cluster_id.in_(cluster_ids))
        .group_by(old.cluster_id, found.c.name)
        .order_by(old.cluster_id, found.c.name)
    )
    return [(before, now, pages) for before, now, pages in connection.execute(query)]


def _merged(said: Sequence[_DeclaredAttributes]) -> _DeclaredAttributes:
    """What was said of several clusters as of one; the first has the first word, and the author."""
    attributes: dict[str, Any] = {}
    for one in said:
        for name, told in one.content:
            attributes.setdefault(name, told)
    return _DeclaredAttributes(
        0, [[name, told] for name, told in attributes.items()], said[0].author if said else ""
    )


class ClusterSchema(NamedTuple):
    """The attributes of a cluster's pages, in the order in which they are shown; revision 0 says nothing."""

    revision: int
    attributes: Mapping[str, Attribute]


def cluster_schema(engine: Engine, cluster: str) -> ClusterSchema:
    """What is said of a cluster now."""
    columns = schema.cluster_schemas.c
    query = (
        select(columns.revision, columns.content)
        .where(columns.cluster == cluster)
        .order_by(columns.revision.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        return ClusterSchema(0, {})
    return ClusterSchema(row.revision, {name: Attribute(**told) for name, told in row.content})


def newest_revision_of(cluster: str) -> ScalarSelect[int]:
    """The revision that holds of a cluster; 0 if nothing was said of it."""
    columns = schema.cluster_schemas.c
    newest = select(func.coalesce(func.max(columns.revision), 0)).where(columns.cluster == cluster)
    return newest.scalar_subquery()


def schema_row(
    cluster: str, revision: int, attributes: Mapping[str, Attribute], author: str, at: datetime
) -> dict[str, Any]:
    """What is said of a cluster as a row."""
    return {
        "cluster": cluster,
        "revision": revision,
        # As pairs: databases may change the order of an object's keys.
        "content": [[name, asdict(attribute)] for name, attribute in attributes.items()],
        "author": storable(author),
        "at": at,
    }
