"""Annotations of pages, added in revisions; a change is refused if someone else changed the same page
first.

A change names the annotation that it is based on. If that is no longer the newest one, nothing is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, func, insert, or_, select

from siteloom.core.database import writing
from siteloom.core.errors import StoreError
from siteloom.core.file_lock import wait_for_tables
from siteloom.core.storable_text import storable
from siteloom.store import schema
from siteloom.store.keys import content_hash, url_key
from siteloom.store.packs.page_reader import VersionPlace, select_places
from siteloom.store.packs.page_writer import HTML
from siteloom.store.queries.attribute_schemas import newest_revision_of, schema_row
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.query_base import Tables, insert_if

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Engine, ScalarSelect, Select

    from siteloom.core.model import Attribute, Example


_FORMAT = 1  # of the JSON in the column `example`


class Annotation(NamedTuple):
    """An annotation of a page: the fields of an Example, and the location of the annotated version.

    All annotations of a page are kept, and the newest is valid; an empty one withdraws earlier ones.
    """

    id: int
    url_id: int
    place: VersionPlace
    example: dict[str, Any]
    author: str
    at: datetime


class AnnotationQueries(Tables):
    """Annotations of pages, with author and time."""

    __slots__ = ()

    def save_example(
        self, address: PageAddress, example: Example, author: str = "", at: datetime | None = None
    ) -> None:
        """Store an example as an annotation of its page, dated now unless a time is given.

        The page must be in the store with the same bytes as in the example. Older annotations of the page are
        kept, but the newest is valid.
        """
        row = annotation_row(self.engine, address, example, author, at or self.clock())
        with writing(self.engine) as connection:
            connection.execute(insert(schema.annotations).values(**row))

    def save_examples(self, examples: Sequence[tuple[PageAddress, Example]], author: str = "") -> None:
        """Store examples as annotations of their pages, all or none.

        An annotation equal to the newest one of the page, by the same author and of the same version, is not
        repeated, so an interrupted import can be repeated.
        """
        now = self.clock()
        rows = [annotation_row(self.engine, address, example, author, now) for address, example in examples]
        columns = schema.annotations.c
        with writing(self.engine) as connection:
            wait_for_tables(connection)  # else two processes could both find that nothing was said yet
            for row in rows:
                query = select(columns.version_id, columns.example, columns.author)
                query = query.where(columns.id == newest_annotation_of(row["url_id"]))
                stored = connection.execute(query).one_or_none()
                if stored != (row["version_id"], row["example"], row["author"]):
                    connection.execute(insert(schema.annotations).values(**row))

    def annotations(self, page_ids: Sequence[int]) -> list[Annotation]:
        """All annotations of the pages of some numbers, the oldest first."""
        query = _select_annotations().where(schema.annotations.c.url_id.in_(page_ids))
        with self.engine.connect() as connection:
            return [
                Annotation(annotation_id, url_id, VersionPlace(*place), example, author, at)
                for *place, _, annotation_id, url_id, example, author, at in connection.execute(query)
            ]

    def newest_annotation(self, page_ids: Sequence[int]) -> int:
        """The id of the newest annotation of the pages of some numbers; 0 if there is none."""
        columns = schema.annotations.c
        query = select(func.coalesce(func.max(columns.id), 0)).where(columns.url_id.in_(page_ids))
        with self.engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def annotated_pages(self) -> list[PageAddress]:
        """The addresses of all pages that have an annotation, in the order they came; no page is read."""
        query = (
            select(schema.sites.c.name, schema.urls.c.url)
            .join(schema.urls)
            .where(is_annotated())
            .order_by(schema.urls.c.id)
        )
        with self.engine.connect() as connection:
            return [PageAddress(*row) for row in connection.execute(query)]


def newest_annotation_of(url_id: int) -> ScalarSelect[int]:
    """The id of the annotation of a page that holds."""
    columns = schema.annotations.c
    return (
        select(columns.id)
        .where(columns.url_id == url_id)
        .order_by(columns.created_at.desc(), columns.id.desc())
        .limit(1)
        .scalar_subquery()
    )


def newest_annotations(engine: Engine, site: str | None = None) -> list[Annotation]:
    """The newest annotation of every page, or of one site's; the page annotated first comes first."""
    query = _select_annotations()
    if site is not None:
        query = query.join(schema.sites, schema.urls.c.site_id == schema.sites.c.id)
        query = query.where(schema.sites.c.name == site)
    annotations_by_page: dict[int, tuple[Annotation, bool]] = {}
    with engine.connect() as connection:
        for *place, is_empty, annotation_id, url_id, example, author, at in connection.execute(query):
            # A later one takes the place of the first.
            annotations_by_page[url_id] = (
                Annotation(annotation_id, url_id, VersionPlace(*place), example, author, at),
                is_empty,
            )
    return [annotation for annotation, is_empty in annotations_by_page.values() if not is_empty]


def is_annotated() -> ColumnElement[bool]:
    """Whether the newest annotation of a URL says anything."""
    annotation = schema.annotations.c
    later_annotation = schema.annotations.alias("other").c
    later = or_(
        later_annotation.created_at > annotation.created_at,
        and_(later_annotation.created_at == annotation.created_at, later_annotation.id > annotation.id),
    )
    is_outdated = (
        select(later_annotation.id).where(later_annotation.url_id == annotation.url_id, later).exists()
    )
    return (
        select(annotation.id)
        .where(annotation.url_id == schema.urls.c.id, ~annotation.is_empty, ~is_outdated)
        .exists()
    )


def _select_annotations() -> Select[*tuple[Any, ...]]:
    columns = schema.annotations.c
    return (
        select_places()
        .add_columns(
            columns.is_empty, columns.id, columns.url_id, columns.example, columns.author, columns.created_at
        )
        .join(schema.annotations, columns.version_id == schema.versions.c.id)
        .order_by(columns.created_at, columns.id)
    )


def annotation_row(
    engine: Engine, address: PageAddress, example: Example, author: str, at: datetime
) -> dict[str, Any]:
    """An example as a row, tied to the version of its page that it is of."""
    versions = schema.versions.c
    annotated = (
        select(versions.url_id, versions.id.label("version_id"))
        .join(schema.urls)
        .where(schema.urls.c.key == url_key(address.site, address.url))
        .where(versions.content_hash == content_hash(HTML, example.page.html))
    )
    # In a transaction of its own, for SQLite refuses to write in one that has read what was changed since.
    with engine.connect() as connection:
        version = connection.execute(annotated).mappings().one_or_none()
    if version is None:
        raise StoreError(
            f"The page {address.url} is not in the site {address.site} with the content of this example: "
            "ingest it first."
        )
    return {
        **version,
        # As JSON escapes it, databases take any text.
        "example": {
            "values": _lists(example.values),
            "records": [_lists(record) for record in example.records],
            "nodes": _lists(example.nodes),
            "record_nodes": [_lists(nodes) for nodes in example.record_nodes],
        },
        "author": storable(author),
        "created_at": at,
        "format": _FORMAT,
        "is_empty": not (example.values or example.records),
    }


def _lists(values: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {attribute: list(texts) for attribute, texts in values.items()}


class OptimisticUpdate(NamedTuple):
    """A new annotation of a page, and the annotation that it replaces, if the page has any."""

    address: PageAddress
    example: Example
    replaces: Annotation | None


def apply_updates(
    engine: Engine,
    cluster: str,
    schema_follows: int,
    attributes: Mapping[str, Attribute] | None,
    updates: Sequence[OptimisticUpdate],
    author: str,
    at: datetime,
) -> bool:
    """Store updates, and the cluster's schema if it changes; returns whether they were stored.

    They are not if a page has another annotation by now, or the cluster another schema.
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
    for update in updates:
        # Clocks of several machines differ, and the newest annotation is the one that holds.
        row = annotation_row(
            engine,
            update.address,
            update.example,
            author,
            max(at, update.replaces.at) if update.replaces else at,
        )
        newest = newest_annotation_of(row["url_id"])
        is_newest = newest.is_(None) if update.replaces is None else newest == update.replaces.id
        is_newest &= revision == schema_follows
        changes.append(insert_if(schema.annotations, row, is_newest).returning(schema.annotations.c.id))
    with engine.connect() as connection, connection.begin() as transaction:
        wait_for_tables(connection)  # else two processes could both find the same to be the newest
        for change in changes:
            if connection.execute(change).scalar_one_or_none() is None:
                transaction.rollback()
                return False
    return True
