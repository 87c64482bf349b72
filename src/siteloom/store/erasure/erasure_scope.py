"""Determine what is to be erased: named sites and pages, or expired data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, exists, false, func, or_, select, tuple_, union_all

from siteloom.store import schema
from siteloom.store.keys import address_key

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine, FromClause, Select, Table

    from siteloom.core.settings import RetentionSettings


class ExpiredRows(NamedTuple):
    """Expired rows of a table, and their kind."""

    kind: str
    table: Table
    condition: ColumnElement[bool]


@dataclass(frozen=True, slots=True, eq=False)
class ErasureScope:
    """Whole sites, and pages and single versions by conditions on their tables.

    `addresses` are the named URLs, which need not be of pages: failures have URLs, too. If nothing is named,
    `versions` also covers those of whole pages.
    """

    sites: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    pages: ColumnElement[bool] = false()
    versions: ColumnElement[bool] = false()
    rows: tuple[ExpiredRows, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether the scope was given by names."""
        return bool(self.sites or self.addresses)

    @property
    def is_page(self) -> ColumnElement[bool]:
        """Whether a page is erased with all its versions."""
        urls, sites = schema.urls.c, schema.sites.c
        of_sites = urls.site_id.in_(select(sites.id).where(sites.name.in_(self.sites)))
        return or_(of_sites, urls.url.in_(self.addresses), self.pages)

    @property
    def url_ids(self) -> Select[int]:
        """The ids of the erased pages."""
        return select(schema.urls.c.id).where(self.is_page)

    @property
    def is_version(self) -> ColumnElement[bool]:
        """Whether a version is erased, alone or with its page."""
        return schema.versions.c.url_id.in_(self.url_ids) if self.is_named else self.versions

    @property
    def is_document(self) -> ColumnElement[bool]:
        """Whether a document of the search index is erased."""
        columns = schema.search_documents.c
        conditions = (
            columns.site.in_(self.sites),
            columns.url.in_(self.addresses),
            columns.url_id.in_(self.url_ids),
            columns.version_id.in_(select(schema.versions.c.id).where(self.versions)),
        )
        # As a union: for conditions joined by OR, PostgreSQL repeats a subquery with a long result per row.
        document_ids = (select(columns.id).where(condition).correlate(None) for condition in conditions)
        return columns.id.in_(union_all(*document_ids))

    def is_anything(self, engine: Engine) -> bool:
        """Return whether the scope contains anything."""
        rows = [
            (schema.urls, self.is_page),
            (schema.versions, self.is_version),
            *((expired_rows.table, expired_rows.condition) for expired_rows in self.rows),
        ]
        with engine.connect() as connection:
            return any(_has_row(connection, table, condition) for table, condition in rows)


def expired_scope(retention: RetentionSettings, now: datetime) -> ErasureScope:
    """Return the scope of expired data.

    An annotated version stays as long as its page, because the annotation needs it. The newest check of each
    kind stays, because it shows the health of a wrapper.
    """
    versions = schema.versions.c
    pages: ColumnElement[bool] = false()
    of_pages: ColumnElement[bool] = false()
    outnumbered: ColumnElement[bool] = false()
    rows: tuple[ExpiredRows, ...] = ()
    if retention.days:
        oldest = now - timedelta(days=retention.days)
        recent_versions = schema.versions.alias("seen").c
        fresh = select(recent_versions.id).where(recent_versions.last_seen_at >= oldest)
        pages = ~fresh.where(recent_versions.url_id == schema.urls.c.id).correlate(schema.urls).exists()
        of_pages = ~fresh.where(recent_versions.url_id == versions.url_id).correlate(schema.versions).exists()
        rows = _older_rows(oldest, now)
    if retention.versions:
        later = schema.versions.alias("later").c
        newer = (
            select(func.count())
            .where(later.url_id == versions.url_id, later.media_type == versions.media_type)
            .where(tuple_(later.last_seen_at, later.id) > tuple_(versions.last_seen_at, versions.id))
            .correlate(schema.versions)
            .scalar_subquery()
        )
        annotations = schema.annotations.c
        is_annotated = exists().where(
            annotations.url_id == versions.url_id, annotations.version_id == versions.id
        )
        outnumbered = and_(newer >= retention.versions, ~is_annotated)
    return ErasureScope(pages=pages, versions=or_(of_pages, outnumbered), rows=rows)


def _older_rows(oldest: datetime, now: datetime) -> tuple[ExpiredRows, ...]:
    """Return the expired rows of other growing tables."""
    checks, runs = schema.checks.c, schema.runs.c
    newest_checks = select(func.max(checks.id)).group_by(checks.wrapper, checks.kind)
    old_runs = select(runs.id).where(runs.started_at < oldest)
    return (
        ExpiredRows("failures", schema.failures, schema.failures.c.run_id.in_(old_runs)),
        ExpiredRows("checks", schema.checks, (checks.at < oldest) & checks.id.not_in(newest_checks)),
        ExpiredRows("jobs", schema.jobs, schema.jobs.c.ended_at < oldest),
        ExpiredRows("sessions", schema.sessions, schema.sessions.c.expires_at < now),
        ExpiredRows("failed sign-ins", schema.failed_sign_ins, schema.failed_sign_ins.c.at < oldest),
    )


def scope_of_names(engine: Engine, names: Collection[str]) -> tuple[ErasureScope, list[str]]:
    """Return the scope of names of sites and URLs, and the unknown names."""
    sites: set[str] = set()
    addresses: set[str] = set()
    unknown = []
    with engine.connect() as connection:
        for name in names:
            if _is_site(connection, name):
                sites.add(name)
            elif known_addresses := _known_addresses(connection, name):
                addresses.update(known_addresses)
            else:
                unknown.append(name)
    return ErasureScope(frozenset(sites), frozenset(addresses)), unknown


def _is_site(connection: Connection, name: str) -> bool:
    columns = (
        schema.sites.c.name,
        schema.wrappers.c.site,
        schema.clusters.c.site,
        schema.grown_sites.c.site,
        schema.seeds.c.source,
    )
    return any(_has_row(connection, column.table, column == name) for column in columns)


def _known_addresses(connection: Connection, name: str) -> list[str]:
    """Return the stored URLs that match a name; the scheme of web pages may be left out."""
    forms = [name] if "://" in name else [name, f"https://{name}", f"http://{name}"]
    return [form for form in forms if _is_address(connection, form)]


def _is_address(connection: Connection, url: str) -> bool:
    rows = (
        (schema.urls, schema.urls.c.url == url),
        (schema.records, schema.records.c.url_key == address_key(url)),
        (schema.seeds, schema.seeds.c.url == url),
        (schema.failures, schema.failures.c.url == url),
    )
    return any(_has_row(connection, table, condition) for table, condition in rows)


def _has_row(connection: Connection, table: FromClause, condition: ColumnElement[bool]) -> bool:
    query = select(1).select_from(table).where(condition).limit(1)
    return connection.execute(query).first() is not None
