"""What people said of the attributes of a cluster's pages: every revision of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from siteloom.model import Attribute
from siteloom.store import schema
from siteloom.store.conditional import insert_if
from siteloom.store.lock import wait_for_tables
from siteloom.store.text import storable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Engine


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


def save_cluster_schema(
    engine: Engine, cluster: str, attributes: Mapping[str, Attribute], author: str, at: datetime, follows: int
) -> bool:
    """Keep what is said of a cluster, if it is still what it follows; returns whether it was."""
    columns = schema.cluster_schemas.c
    newest = select(func.coalesce(func.max(columns.revision), 0)).where(columns.cluster == cluster)
    row = {
        "cluster": cluster,
        "revision": follows + 1,
        # As pairs: databases may change the order of an object's keys.
        "content": [[name, asdict(attribute)] for name, attribute in attributes.items()],
        "author": storable(author),
        "at": at,
    }
    keep = insert_if(schema.cluster_schemas, row, newest.scalar_subquery() == follows)
    with engine.begin() as connection:
        wait_for_tables(connection)  # else two processes could both find the same revision to be the newest
        return connection.execute(keep.returning(columns.id)).scalar_one_or_none() is not None
