"""Clusters in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from siteloom.store import schema
from siteloom.store.queries.annotations import is_annotated
from siteloom.store.queries.clusters import IDENTIFYING_COLUMNS, KEYS_AT_A_TIME, active_clusters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Engine, Row


class ClusterSummary(NamedTuple):
    """A cluster in numbers; no page of it but the first and the last is named.

    `annotated` is how many of the pages have an annotation.
    """

    name: str
    site: str
    importance: float
    url_patterns: tuple[str, ...]
    pages: int
    annotated: int
    ends: tuple[str, str]


def cluster_summaries(engine: Engine, site: str | None = None) -> list[ClusterSummary]:
    """The clusters that hold now in numbers, or those of a site, in the order in which they were found."""
    columns = schema.clusters.c
    query = select(*IDENTIFYING_COLUMNS, columns.importance, columns.url_patterns)
    if site is not None:
        query = query.where(columns.site == site)
    with engine.connect() as connection:
        rows = active_clusters(connection, query.order_by(columns.site, columns.id))
        counts = _page_counts(connection, [row.id for row in rows])
    return [
        ClusterSummary(
            row.name,
            row.site,
            row.importance,
            tuple(row.url_patterns),
            counted.pages,
            counted.annotated,
            (counted.first, counted.last),
        )
        for row in rows
        if (counted := counts.get(row.id)) is not None
    ]


def _page_counts(connection: Connection, cluster_ids: Sequence[int]) -> dict[int, Row[*tuple[Any, ...]]]:
    """How many pages some clusters have, how many of these are annotated, and the first and last of them."""
    members = schema.cluster_pages.c
    first_url, last_url = schema.urls.alias("first"), schema.urls.alias("last")
    counts: dict[int, Row[*tuple[Any, ...]]] = {}
    for start in range(0, len(cluster_ids), KEYS_AT_A_TIME):
        is_in_batch = members.cluster_id.in_(cluster_ids[start : start + KEYS_AT_A_TIME])
        pages = (
            select(
                members.cluster_id,
                func.count().label("pages"),
                func.min(members.url_id).label("first"),
                func.max(members.url_id).label("last"),
            )
            .where(is_in_batch)
            .group_by(members.cluster_id)
            .subquery()
        )
        annotated = (
            select(members.cluster_id, func.count().label("pages"))
            .join(schema.urls, schema.urls.c.id == members.url_id)
            .where(is_in_batch, is_annotated())
            .group_by(members.cluster_id)
            .subquery()
        )
        query = (
            select(
                pages.c.cluster_id,
                pages.c.pages,
                func.coalesce(annotated.c.pages, 0).label("annotated"),
                first_url.c.url.label("first"),
                last_url.c.url.label("last"),
            )
            .join(first_url, first_url.c.id == pages.c.first)
            .join(last_url, last_url.c.id == pages.c.last)
            .outerjoin(annotated, annotated.c.cluster_id == pages.c.cluster_id)
        )
        counts.update((row.cluster_id, row) for row in connection.execute(query))
    return counts
