"""Single pages of the archive: where they are found, their versions, and the cluster each is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from siteloom.store import schema
from siteloom.store.batches import batches
from siteloom.store.clusters import KEYS_AT_A_TIME, cluster_names
from siteloom.store.keys import url_key
from siteloom.store.reading import VersionPlace, is_page, select_places
from siteloom.store.writer import HTML
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine


class PageVersion(NamedTuple):
    """A version of a page: where it stands, and when its content was last met."""

    place: VersionPlace
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class PageIndex:
    """The pages of a store, one at a time."""

    engine: Engine

    def find(self, url: str, site: str | None = None) -> int | None:
        """The number of the page at a URL: of a site, or of the site of its URL, else of any that has it."""
        with self.engine.connect() as connection:
            found = _page_at(connection, url, [site or site_of(url)])
            if found is None and not site:
                for some in batches(connection.scalars(select(schema.sites.c.name)), KEYS_AT_A_TIME):
                    if found := _page_at(connection, url, some):
                        break
            return found

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
    """The number of the page at a URL of the first of some sites that has it."""
    columns = schema.urls.c
    keys = [url_key(site, url) for site in sites]
    query = select(columns.key, columns.id).where(columns.key.in_(keys), is_page())
    found = {row.key: row.id for row in connection.execute(query)}
    return next((found[key] for key in keys if key in found), None)
