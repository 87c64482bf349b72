"""Clusterings in the store: the clusters of each run, and the pages in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import distinct, func, insert, select

from siteloom.model import Cluster, Template, TemplatePath
from siteloom.store import schema
from siteloom.store.keys import url_key
from siteloom.store.runs import runs_in_force

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Engine, Row, Select

_KNOWN_BY = tuple(schema.clusters.c[name] for name in ("id", "name", "site", "run_id"))
# Fewer than the parameters that SQLite takes in a statement.
_KEYS_AT_A_TIME = 10_000


class PageAddress(NamedTuple):
    """A page in the store."""

    site: str
    url: str


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


def save_clusters(
    engine: Engine, run_id: int, clusters: Sequence[Cluster], pages: Sequence[PageAddress]
) -> None:
    """Keep the clusters of a run; their members are indices into `pages`."""
    with engine.begin() as connection:
        url_ids = _url_ids(connection, pages)
        for cluster in clusters:
            row = insert(schema.clusters).values(
                run_id=run_id,
                name=cluster.id,
                site=cluster.site,
                mask=cluster.mask,
                mask_pages=cluster.mask_pages,
                accepted=cluster.accepted,
                importance=cluster.importance,
                url_patterns=cluster.url_patterns,
                template={
                    "pages": cluster.template.pages,
                    "essential": [
                        [path.tags, path.text, path.support] for path in cluster.template.essential
                    ],
                },
            )
            cluster_id = connection.execute(row.returning(schema.clusters.c.id)).scalar_one()
            members = [{"cluster_id": cluster_id, "url_id": url_ids[member]} for member in cluster.members]
            connection.execute(insert(schema.cluster_pages), members)


def latest_clusters(
    engine: Engine, name: str | None = None
) -> tuple[tuple[Cluster, ...], tuple[PageAddress, ...]]:
    """The clusters that hold now, or the one of a name, and the pages that their members are indices of.

    A clustering of the whole workspace replaces all before it, one of a single
    site those of the site.
    """
    rows = select(schema.clusters)
    if name is not None:
        rows = rows.where(schema.clusters.c.name == name)
    pages: list[PageAddress] = []
    clusters = []
    with engine.connect() as connection:
        for row in _in_force(connection, rows.order_by(schema.clusters.c.site, schema.clusters.c.id)):
            members = (
                select(schema.sites.c.name, schema.urls.c.url)
                .select_from(schema.cluster_pages)
                .join(schema.urls)
                .join(schema.sites)
                .where(schema.cluster_pages.c.cluster_id == row.id)
                .order_by(schema.urls.c.id)
            )
            first = len(pages)
            pages += [PageAddress(*member) for member in connection.execute(members)]
            clusters.append(
                Cluster(
                    row.name,
                    row.site,
                    tuple(range(first, len(pages))),
                    row.mask,
                    row.mask_pages,
                    tuple(row.accepted),
                    row.importance,
                    tuple(row.url_patterns),
                    _template(row.template),
                )
            )
    return tuple(clusters), tuple(pages)


def cluster_summaries(engine: Engine, site: str | None = None) -> list[ClusterSummary]:
    """The clusters that hold now in numbers, or those of a site, in the order in which they were found."""
    columns = schema.clusters.c
    query = select(*_KNOWN_BY, columns.importance, columns.url_patterns)
    if site is not None:
        query = query.where(columns.site == site)
    with engine.connect() as connection:
        rows = _in_force(connection, query.order_by(columns.site, columns.id))
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
    members, annotations = schema.cluster_pages.c, schema.annotations.c
    first, last = schema.urls.alias("first"), schema.urls.alias("last")
    found: dict[int, Row[*tuple[Any, ...]]] = {}
    for start in range(0, len(cluster_ids), _KEYS_AT_A_TIME):
        some = members.cluster_id.in_(cluster_ids[start : start + _KEYS_AT_A_TIME])
        pages = (
            select(
                members.cluster_id,
                func.count().label("pages"),
                func.min(members.url_id).label("first"),
                func.max(members.url_id).label("last"),
            )
            .where(some)
            .group_by(members.cluster_id)
            .subquery()
        )
        annotated = (
            select(members.cluster_id, func.count(distinct(annotations.url_id)).label("pages"))
            .join(schema.annotations, annotations.url_id == members.url_id)
            .where(some)
            .group_by(members.cluster_id)
            .subquery()
        )
        query = (
            select(
                pages.c.cluster_id,
                pages.c.pages,
                func.coalesce(annotated.c.pages, 0).label("annotated"),
                first.c.url.label("first"),
                last.c.url.label("last"),
            )
            .join(first, first.c.id == pages.c.first)
            .join(last, last.c.id == pages.c.last)
            .outerjoin(annotated, annotated.c.cluster_id == pages.c.cluster_id)
        )
        found.update((row.cluster_id, row) for row in connection.execute(query))
    return found


def latest_templates(engine: Engine, site: str, name: str | None = None) -> dict[str, Template]:
    """The templates of a site's clusters that hold now, or of the one of a name, by the clusters' names."""
    columns = schema.clusters.c
    query = select(*_KNOWN_BY, columns.template).where(columns.site == site)
    if name is not None:
        query = query.where(columns.name == name)
    with engine.connect() as connection:
        return {row.name: _template(row.template) for row in _in_force(connection, query)}


def clusters_called(connection: Connection, name: str) -> list[int]:
    """The ids of the clusters that hold now and have a name."""
    query = select(*_KNOWN_BY).where(schema.clusters.c.name == name)
    return [row.id for row in _in_force(connection, query)]


def cluster_names(connection: Connection, url_ids: Sequence[int]) -> dict[int, str]:
    """The names of the clusters that hold now, by the pages that are in one."""
    members = schema.cluster_pages
    query = select(*_KNOWN_BY, members.c.url_id).join(members).where(members.c.url_id.in_(url_ids))
    return {row.url_id: row.name for row in _in_force(connection, query)}


def _template(content: dict[str, Any]) -> Template:
    return Template(tuple(TemplatePath(*path) for path in content["essential"]), content["pages"])


def _in_force(connection: Connection, clusters: Select[*tuple[Any, ...]]) -> list[Row[*tuple[Any, ...]]]:
    """Those of some clusters that hold now."""
    in_force = runs_in_force(connection, "cluster")
    rows = connection.execute(clusters.where(schema.clusters.c.run_id.in_(in_force.values())))
    return [row for row in rows if row.run_id == in_force.get(row.site, in_force.get(None))]


def _url_ids(connection: Connection, pages: Sequence[PageAddress]) -> list[int]:
    keys = [url_key(page.site, page.url) for page in pages]
    urls = schema.urls.c
    found: dict[bytes, int] = {}
    for start in range(0, len(keys), _KEYS_AT_A_TIME):
        query = select(urls.key, urls.id).where(urls.key.in_(keys[start : start + _KEYS_AT_A_TIME]))
        found.update((key, url_id) for key, url_id in connection.execute(query))
    return [found[key] for key in keys]
