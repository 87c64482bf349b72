"""The sites of a store, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from siteloom.core.errors import UsageError
from siteloom.store import schema
from siteloom.store.packs.page_reader import is_page
from siteloom.store.packs.page_writer import HTML
from siteloom.store.queries.annotations import is_annotated
from siteloom.store.queries.pages import PageUrls
from siteloom.store.queries.wrappers import is_in_force
from siteloom.store.query_base import Tables

if TYPE_CHECKING:
    from collections.abc import Collection


class Site(NamedTuple):
    """A site in numbers.

    `pages` and `versions` are those of HTML documents; the bytes, before and
    after packing, are those of all versions of all documents. `annotated` is
    how many of the pages have an annotation.
    """

    name: str
    pages: int
    versions: int
    bytes: int
    packed_bytes: int
    annotated: int
    wrappers: int


class SiteQueries(Tables):
    """The sites that pages are of."""

    __slots__ = ()

    def sites(self) -> tuple[Site, ...]:
        """All sites by name."""
        is_html = schema.versions.c.media_type == HTML
        documents = (
            select(
                schema.urls.c.site_id,
                func.count(schema.urls.c.id.distinct()).filter(is_html).label("pages"),
                func.count().filter(is_html).label("versions"),
                func.sum(schema.versions.c.size).label("bytes"),
            )
            .join(schema.versions)
            .group_by(schema.urls.c.site_id)
            .subquery()
        )
        packed = (
            select(schema.packs.c.site_id, func.sum(schema.packs.c.committed_bytes).label("bytes"))
            .group_by(schema.packs.c.site_id)
            .subquery()
        )
        annotated = (
            select(func.count())
            .select_from(schema.urls)
            .where(schema.urls.c.site_id == schema.sites.c.id, is_annotated())
        )
        wrappers = select(func.count()).where(
            schema.wrappers.c.site == schema.sites.c.name, is_in_force(schema.wrappers)
        )
        query = (
            select(
                schema.sites.c.name,
                documents.c.pages,
                documents.c.versions,
                documents.c.bytes,
                packed.c.bytes,
                annotated.scalar_subquery(),
                wrappers.scalar_subquery(),
            )
            .outerjoin(documents, documents.c.site_id == schema.sites.c.id)
            .outerjoin(packed, packed.c.site_id == schema.sites.c.id)
            .order_by(schema.sites.c.name)
        )
        with self.engine.connect() as connection:
            rows = connection.execute(query).all()
        return tuple(Site(name, *(int(number or 0) for number in numbers)) for name, *numbers in rows)

    def require_sites(self, names: Collection[str]) -> None:
        """Raise UsageError if there is no site with one of these names."""
        site_names = PageUrls(self.engine).sites()
        if unknown := sorted(set(names).difference(site_names)):
            listed_sites = ", ".join(site_names[:5]) or "none at all"
            raise UsageError(f"There is no site {unknown[0]} among the pages: there are {listed_sites}.")

    def page_count(self, site: str) -> int:
        """How many pages there are of a site."""
        query = select(func.count()).select_from(schema.urls).join(schema.sites)
        with self.engine.connect() as connection:
            result = connection.execute(query.where(schema.sites.c.name == site, is_page()))
            return int(result.scalar_one())
