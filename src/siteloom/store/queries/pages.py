"""Stored pages, their URLs and versions, and HTTP validators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, select

from siteloom.core.model import Validators
from siteloom.core.sequences import batches
from siteloom.core.urls import site_of
from siteloom.store import schema
from siteloom.store.keys import url_key
from siteloom.store.packs.page_reader import VersionPlace, is_newest_page, is_page, select_places, stored_urls
from siteloom.store.packs.page_writer import HTML
from siteloom.store.queries.clusters import (
    IDENTIFYING_COLUMNS,
    KEYS_AT_A_TIME,
    active_clusters,
    cluster_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from siteloom.store.queries.clusters import PageAddress


class PageVersion(NamedTuple):
    """A version of a page: where it stands, and when its content was last met."""

    place: VersionPlace
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class PageIndex:
    """The pages of a store, one at a time."""

    engine: Engine

    def find(self, url: str, site: str | None = None) -> int | None:
        """Return the id of the page at a URL in the given site or the URL's site, else in any that has it."""
        with self.engine.connect() as connection:
            page_id = _page_at(connection, url, [site or site_of(url)])
            if page_id is None and not site:
                for sites in batches(connection.scalars(select(schema.sites.c.name)), KEYS_AT_A_TIME):
                    if page_id := _page_at(connection, url, sites):
                        break
            return page_id

    def versions(self, page_id: int, limit: int) -> list[PageVersion]:
        """The newest versions of a page, the newest first."""
        columns = schema.versions.c
        query = (
            select_places()
            .add_columns(columns.last_seen_at)
            .where(columns.url_id == page_id, columns.media_type == HTML)
            .order_by(columns.last_seen_at.desc(), columns.id.desc())
            .limit(limit)
        )
        with self.engine.connect() as connection:
            return [PageVersion(VersionPlace(*place), at) for *place, at in connection.execute(query)]

    def cluster(self, page_id: int) -> str | None:
        """The name of the cluster that a page is in, if it is in one."""
        with self.engine.connect() as connection:
            return cluster_names(connection, [page_id]).get(page_id)


def _page_at(connection: Connection, url: str, sites: Sequence[str]) -> int | None:
    """Return the id of the page at a URL in the first of the sites that has it."""
    columns = schema.urls.c
    keys = [url_key(site, url) for site in sites]
    query = select(columns.key, columns.id).where(columns.key.in_(keys), is_page())
    ids_by_key = {row.key: row.id for row in connection.execute(query)}
    return next((ids_by_key[key] for key in keys if key in ids_by_key), None)


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

    def has_pages(self) -> bool:
        """Whether there is a page at all."""
        with self.engine.connect() as connection:
            query = select(schema.urls.c.id).where(is_page()).limit(1)
            return connection.execute(query).scalar_one_or_none() is not None

    def of_site(self, site: str) -> Iterator[PageUrl]:
        """Those of a site in the order in which they came, one by one."""
        urls, members = schema.urls.c, schema.cluster_pages.c
        with self.engine.connect() as connection:
            rows = active_clusters(
                connection, select(*IDENTIFYING_COLUMNS).where(schema.clusters.c.site == site)
            )
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

    def stored(self, urls: Iterable[str]) -> set[str]:
        """Return the URLs whose page is in the store, in the site of its URL."""
        keys = {url_key(site_of(url), url): url for url in urls}
        return stored_urls(self.engine, select(schema.urls.c.key).where(is_page()), keys)


def newest_validators(engine: Engine, addresses: Iterable[PageAddress]) -> dict[str, Validators]:
    """The validators of the newest versions of pages by URL, of those that have any."""
    urls, validators = schema.urls.c, schema.validators.c
    query = (
        select(urls.url, validators.etag, validators.last_modified)
        .join(schema.versions, schema.versions.c.url_id == urls.id)
        .join(schema.validators, validators.version_id == schema.versions.c.id)
        .where(is_newest_page())
    )
    validators_by_url: dict[str, Validators] = {}
    with engine.connect() as connection:
        for batch in batches((url_key(address.site, address.url) for address in addresses), KEYS_AT_A_TIME):
            rows = connection.execute(query.where(urls.key.in_(batch)))
            validators_by_url.update(
                (url, Validators(etag, last_modified)) for url, etag, last_modified in rows
            )
    return validators_by_url
