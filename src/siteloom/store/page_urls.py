"""The URLs of pages, without the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, select

from siteloom.store import schema
from siteloom.store.clusters import KNOWN_BY, in_force
from siteloom.store.keys import url_key
from siteloom.store.reading import is_page, urls_found
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Engine


class PageUrl(NamedTuple):
    """The URL of a page, and the cluster that the page is in, if any."""

    url: str
    cluster: str | None


@dataclass(frozen=True, slots=True)
class PageUrls:
    """The URLs of the pages of a store."""

    engine: Engine

    def sites(self) -> list[str]:
        """The names of all sites, in their order; nothing is counted for it."""
        with self.engine.connect() as connection:
            return sorted(connection.scalars(select(schema.sites.c.name)))

    def is_any(self) -> bool:
        """Whether there is a page at all."""
        with self.engine.connect() as connection:
            found = select(schema.urls.c.id).where(is_page()).limit(1)
            return connection.execute(found).scalar_one_or_none() is not None

    def of_site(self, site: str) -> Iterator[PageUrl]:
        """Those of a site in the order in which they came, one by one."""
        urls, members = schema.urls.c, schema.cluster_pages.c
        with self.engine.connect() as connection:
            rows = in_force(connection, select(*KNOWN_BY).where(schema.clusters.c.site == site))
            names = {row.id: row.name for row in rows}
            is_member = and_(members.url_id == urls.id, members.cluster_id.in_(list(names)))
            query = (
                select(urls.url, members.cluster_id)
                .join(schema.sites, schema.sites.c.id == urls.site_id)
                .outerjoin(schema.cluster_pages, is_member)
                .where(schema.sites.c.name == site, is_page())
                .order_by(urls.id)
            )
            for url, cluster in connection.execution_options(stream_results=True).execute(query):
                yield PageUrl(url, names.get(cluster))

    def known(self, urls: Iterable[str]) -> set[str]:
        """Those of some URLs whose page is in the store, in the site of its URL."""
        keys = {url_key(site_of(url), url): url for url in urls}
        return urls_found(self.engine, select(schema.urls.c.key).where(is_page()), keys)
