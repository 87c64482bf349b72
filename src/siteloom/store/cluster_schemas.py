"""What people said of the attributes of a cluster's pages: every revision of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from siteloom.model import Attribute
from siteloom.store import schema
from siteloom.store.text import storable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Engine, ScalarSelect


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
