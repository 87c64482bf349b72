"""What is to be forgotten: what was named, or what was kept for long enough."""

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


class OldRows(NamedTuple):
    """Rows of a table that are too old, and what they are called."""

    kind: str
    table: Table
    condition: ColumnElement[bool]


@dataclass(frozen=True, slots=True, eq=False)
class ErasureScope:
    """Sites as a whole, and pages and single versions by conditions on their tables.

    `addresses` are URLs that were named, of which there may be more than pages: what failed has one, too.
    Where nothing is named, `versions` says of those of whole pages, too, that they go.
    """

    sites: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    pages: ColumnElement[bool] = false()
    versions: ColumnElement[bool] = false()
    rows: tuple[OldRows, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether someone asked for it by name."""
        return bool(self.sites or self.addresses)

    @property
    def is_page(self) -> ColumnElement[bool]:
        """Whether a page goes with all its versions."""
        urls, sites = schema.urls.c, schema.sites.c
        of_sites = urls.site_id.in_(select(sites.id).where(sites.name.in_(self.sites)))
        return or_(of_sites, urls.url.in_(self.addresses), self.pages)

    @property
    def url_ids(self) -> Select[int]:
        """These pages."""
        return select(schema.urls.c.id).where(self.is_page)

    @property
    def is_version(self) -> ColumnElement[bool]:
        """Whether a version goes, alone or with its page."""
        return schema.versions.c.url_id.in_(self.url_ids) if self.is_named else self.versions

    @property
    def is_document(self) -> ColumnElement[bool]:
        """Whether a document of the search index goes."""
        columns = schema.search_documents.c
        conditions = (
            columns.site.in_(self.sites),
            columns.url.in_(self.addresses),
            columns.url_id.in_(self.url_ids),
            columns.version_id.in_(select(schema.versions.c.id).where(self.versions)),
        )
        # One by one: of questions joined by OR, PostgreSQL asks one anew for each row if its answer is long.
        found = (select(columns.id).where(condition).correlate(None) for condition in conditions)
        return columns.id.in_(union_all(*found))

    def is_anything(self, engine: Engine) -> bool:
        """Whether there is any such thing."""
        rows = [
            (schema.urls, self.is_page),
            (schema.versions, self.is_version),
            *((old.table, old.condition) for old in self.rows),
        ]
        with engine.connect() as connection:
            return any(_is_there(connection, table, condition) for table, condition in rows)


def expired_scope(retention: RetentionSettings, now: datetime) -> ErasureScope:
    """What was kept for long enough by now.

    A version that someone annotated stays as long as its page: without it, the annotation would tell of
    nothing. The newest check of each kind stays, for it says how a wrapper is.
    """
    versions = schema.versions.c
    pages: ColumnElement[bool] = false()
    of_pages: ColumnElement[bool] = false()
    outnumbered: ColumnElement[bool] = false()
    rows: tuple[OldRows, ...] = ()
    if retention.days:
        oldest = now - timedelta(days=retention.days)
        seen = schema.versions.alias("seen").c
        fresh = select(seen.id).where(seen.last_seen_at >= oldest)
        pages = ~fresh.where(seen.url_id == schema.urls.c.id).correlate(schema.urls).exists()
        of_pages = ~fresh.where(seen.url_id == versions.url_id).correlate(schema.versions).exists()
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
        said = schema.annotations.c
        is_annotated = exists().where(said.url_id == versions.url_id, said.version_id == versions.id)
        outnumbered = and_(newer >= retention.versions, ~is_annotated)
    return ErasureScope(pages=pages, versions=or_(of_pages, outnumbered), rows=rows)


def _older_rows(oldest: datetime, now: datetime) -> tuple[OldRows, ...]:
    """What else becomes more and more."""
    checks, runs = schema.checks.c, schema.runs.c
    newest_checks = select(func.max(checks.id)).group_by(checks.wrapper, checks.kind)
    old_runs = select(runs.id).where(runs.started_at < oldest)
    return (
        OldRows("failures", schema.failures, schema.failures.c.run_id.in_(old_runs)),
        OldRows("checks", schema.checks, (checks.at < oldest) & checks.id.not_in(newest_checks)),
        OldRows("jobs", schema.jobs, schema.jobs.c.ended_at < oldest),
        OldRows("sessions", schema.sessions, schema.sessions.c.expires_at < now),
        OldRows("failed sign-ins", schema.failed_sign_ins, schema.failed_sign_ins.c.at < oldest),
    )


def scope_of_names(engine: Engine, names: Collection[str]) -> tuple[ErasureScope, list[str]]:
    """What names of sites and URLs mean, and those that mean nothing."""
    sites: set[str] = set()
    addresses: set[str] = set()
    unknown = []
    with engine.connect() as connection:
        for name in names:
            if _is_site(connection, name):
                sites.add(name)
            elif known := _known_addresses(connection, name):
                addresses.update(known)
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
    return any(_is_there(connection, column.table, column == name) for column in columns)


def _known_addresses(connection: Connection, name: str) -> list[str]:
    """The URLs that are written so; of pages of the web, the scheme may be left out."""
    forms = [name] if "://" in name else [name, f"https://{name}", f"http://{name}"]
    return [form for form in forms if _is_address(connection, form)]


def _is_address(connection: Connection, url: str) -> bool:
    rows = (
        (schema.urls, schema.urls.c.url == url),
        (schema.records, schema.records.c.url_key == address_key(url)),
        (schema.seeds, schema.seeds.c.url == url),
        (schema.failures, schema.failures.c.url == url),
    )
    return any(_is_there(connection, table, condition) for table, condition in rows)


def _is_there(connection: Connection, table: FromClause, condition: ColumnElement[bool]) -> bool:
    query = select(1).select_from(table).where(condition).limit(1)
    return connection.execute(query).first() is not None
