"""Clusterings in the store: the clusters of each run, and the pages in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import insert, select

from siteloom.core.database import writing
from siteloom.core.errors import UsageError
from siteloom.core.model import Cluster, Template, TemplatePath
from siteloom.core.storable_text import storable
from siteloom.store import schema
from siteloom.store.keys import url_key
from siteloom.store.queries.runs import active_runs_of
from siteloom.store.query_base import Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row, Select

IDENTIFYING_COLUMNS = tuple(schema.clusters.c[name] for name in ("id", "name", "site", "run_id"))
"""The columns that `active_clusters` needs of a cluster, and its name."""

KEYS_AT_A_TIME = 10_000
"""Fewer than the parameters that SQLite takes in a statement."""


class PageAddress(NamedTuple):
    """A page in the store."""

    site: str
    url: str


class ClusterQueries(Tables):
    """The clusters of each run, and their templates."""

    __slots__ = ()

    def save_clusters(self, run_id: int, clusters: Sequence[Cluster], pages: Sequence[PageAddress]) -> None:
        """Keep the clusters of a run; their members are indices into `pages`."""
        with writing(self.engine) as connection:
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
                members = [
                    {"cluster_id": cluster_id, "url_id": url_ids[member]} for member in cluster.members
                ]
                connection.execute(insert(schema.cluster_pages), members)

    def clusters(self, name: str | None = None) -> tuple[tuple[Cluster, ...], tuple[PageAddress, ...]]:
        """The clusters that were found last, or one of them, and the pages that members are indices of.

        A clustering of the whole workspace replaces all before it, one of a single site those of the site.
        """
        rows = select(schema.clusters)
        if name is not None:
            rows = rows.where(schema.clusters.c.name == name)
        pages: list[PageAddress] = []
        clusters = []
        with self.engine.connect() as connection:
            for row in active_clusters(
                connection, rows.order_by(schema.clusters.c.site, schema.clusters.c.id)
            ):
                members = (
                    select(schema.sites.c.name, schema.urls.c.url)
                    .select_from(schema.cluster_pages)
                    .join(schema.urls)
                    .join(schema.sites)
                    .where(schema.cluster_pages.c.cluster_id == row.id)
                    .order_by(schema.urls.c.id)
                )
                first_member = len(pages)
                pages += [PageAddress(*member) for member in connection.execute(members)]
                clusters.append(
                    Cluster(
                        row.name,
                        row.site,
                        tuple(range(first_member, len(pages))),
                        row.mask,
                        row.mask_pages,
                        tuple(row.accepted),
                        row.importance,
                        tuple(row.url_patterns),
                        _template(row.template),
                    )
                )
        return tuple(clusters), tuple(pages)

    def templates(self, site: str, cluster: str | None = None) -> dict[str, Template]:
        """The templates of the clusters of a site, or that of one of them, by the clusters' names."""
        columns = schema.clusters.c
        query = select(*IDENTIFYING_COLUMNS, columns.template).where(columns.site == site)
        if cluster is not None:
            query = query.where(columns.name == cluster)
        with self.engine.connect() as connection:
            return {row.name: _template(row.template) for row in active_clusters(connection, query)}

    def cluster_edition(self, name: str) -> int | None:
        """A number that is another when the cluster of a name was found anew; None if there is none."""
        with self.engine.connect() as connection:
            return max(cluster_ids_named(connection, name), default=None)

    def has_cluster(self, name: str) -> bool:
        """Whether there is a cluster of a name among those that were found last."""
        with self.engine.connect() as connection:
            return bool(cluster_ids_named(connection, name))

    def require_cluster(self, name: str) -> None:
        """Raise UsageError if there is no cluster with a name."""
        if not self.has_cluster(name):
            raise UsageError(f"There is no cluster {name}: siteloom cluster lists them.")


def cluster_ids_named(connection: Connection, name: str) -> list[int]:
    """Return the ids of the currently valid clusters with a name."""
    query = select(*IDENTIFYING_COLUMNS).where(schema.clusters.c.name == storable(name))
    return [row.id for row in active_clusters(connection, query)]


def cluster_names(connection: Connection, url_ids: Sequence[int]) -> dict[int, str]:
    """Return the names of the currently valid clusters by the pages in them."""
    members = schema.cluster_pages
    query = select(*IDENTIFYING_COLUMNS, members.c.url_id).join(members).where(members.c.url_id.in_(url_ids))
    return {row.url_id: row.name for row in active_clusters(connection, query)}


def _template(content: dict[str, Any]) -> Template:
    return Template(tuple(TemplatePath(*path) for path in content["essential"]), content["pages"])


def active_clusters(
    connection: Connection, clusters: Select[*tuple[Any, ...]], before: int | None = None
) -> list[Row[*tuple[Any, ...]]]:
    """Return the clusters that are currently valid, or were valid before a run."""
    runs = active_runs_of(connection, "cluster", before)
    rows = connection.execute(clusters.where(schema.clusters.c.run_id.in_(set(runs.values()))))
    return [row for row in rows if row.run_id == runs.get(row.site, runs.get(None))]


def _url_ids(connection: Connection, pages: Sequence[PageAddress]) -> list[int]:
    keys = [url_key(page.site, page.url) for page in pages]
    urls = schema.urls.c
    ids_by_key: dict[bytes, int] = {}
    for start in range(0, len(keys), KEYS_AT_A_TIME):
        query = select(urls.key, urls.id).where(urls.key.in_(keys[start : start + KEYS_AT_A_TIME]))
        ids_by_key.update((key, url_id) for key, url_id in connection.execute(query))
    return [ids_by_key[key] for key in keys]
