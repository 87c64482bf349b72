"""What people change at a workbench: annotations of pages and the schema of a cluster, all or none.

Whoever changes something names what they looked at. If that is not the newest any more, nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.store import schema
from siteloom.store.annotations import annotation_row, newest_annotation_of
from siteloom.store.cluster_schemas import newest_revision_of, schema_row
from siteloom.store.conditional import insert_if
from siteloom.store.lock import wait_for_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Engine

    from siteloom.model import Attribute, Example
    from siteloom.store.annotations import Annotation
    from siteloom.store.clusters import PageAddress


class Amendment(NamedTuple):
    """What is said of a page now, and the annotation that it takes the place of, if the page has any."""

    address: PageAddress
    example: Example
    follows: Annotation | None


def amend(
    engine: Engine,
    cluster: str,
    schema_follows: int,
    attributes: Mapping[str, Attribute] | None,
    amendments: Sequence[Amendment],
    author: str,
    at: datetime,
) -> bool:
    """Keep amendments, and what is said of the cluster's attributes if that changes; returns whether it was.

    It is not if a page has another annotation by now, or the cluster another schema.
    """
    revision = newest_revision_of(cluster)
    changes = []
    if attributes is not None:
        row = schema_row(cluster, schema_follows + 1, attributes, author, at)
        is_newest = revision == schema_follows
        changes.append(
            insert_if(schema.cluster_schemas, row, is_newest).returning(schema.cluster_schemas.c.id)
        )
        schema_follows += 1
    for one in amendments:
        # Clocks of several machines differ, and the newest annotation is the one that holds.
        row = annotation_row(
            engine, one.address, one.example, author, max(at, one.follows.at) if one.follows else at
        )
        newest = newest_annotation_of(row["url_id"])
        is_newest = newest.is_(None) if one.follows is None else newest == one.follows.id
        is_newest &= revision == schema_follows
        changes.append(insert_if(schema.annotations, row, is_newest).returning(schema.annotations.c.id))
    with engine.connect() as connection, connection.begin() as transaction:
        wait_for_tables(connection)  # else two processes could both find the same to be the newest
        for change in changes:
            if connection.execute(change).scalar_one_or_none() is None:
                transaction.rollback()
                return False
    return True
