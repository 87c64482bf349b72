"""Annotations of pages, added in revisions; a change is refused if someone else changed the same page
first.

Whoever changes something names what they looked at. If that is not the newest any more, nothing is kept.
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
    """What was said of a page, by the fields of an Example, and where the page as it then was stands.

    All annotations of a page are kept, and the newest holds; an empty one takes back what was said before.
    """

    id: int
    url_id: int
    place: VersionPlace
    example: dict[str, Any]
    author: str
    at: datetime


class AnnotationQueries(Tables):
    """What was said of pages, by whom and when."""

    __slots__ = ()

    def save_example(
        self, address: PageAddress, example: Example, author: str = "", at: datetime | None = None
    ) -> None:
        """Keep an example as an annotation of its page, made now unless a time is given.

        The page must be in the store with the bytes that it has in the example.
        Older annotations of the page are kept too, but the newest holds.
        """
        row = annotation_row(self.engine, address, example, author, at or self.clock())
        with writing(self.engine) as connection:
            connection.execute(insert(schema.annotations).values(**row))

    def save_examples(self, examples: Sequence[tuple[PageAddress, Example]], author: str = "") -> None:
        """Keep examples as annotations of their pages, all or none.

        What was said last of a page, by the same author and of the same version, is not said twice: so
        whoever was killed may say it all again.
        """
        now = self.clock()
        rows = [annotation_row(self.engine, address, example, author, now) for address, example in examples]
        columns = schema.annotations.c
        with writing(self.engine) as connection:
            wait_for_tables(connection)  # else two processes could both find that nothing was said yet
            for row in rows:
                held = select(columns.version_id, columns.example, columns.author)
                held = held.where(columns.id == newest_annotation_of(row["url_id"]))
                known = connection.execute(held).one_or_none()
                if known != (row["version_id"], row["example"], row["author"]):
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
    found: dict[int, tuple[Annotation, bool]] = {}
    with engine.connect() as connection:
        for *place, is_empty, annotation_id, url_id, example, author, at in connection.execute(query):
            # A later one takes the place of the first.
            found[url_id] = (
                Annotation(annotation_id, url_id, VersionPlace(*place), example, author, at),
                is_empty,
            )
    return [annotation for annotation, is_empty in found.values() if not is_empty]


def is_annotated() -> ColumnElement[bool]:
    """Whether the newest annotation of a URL says anything."""
    this = schema.annotations.c
    other = schema.annotations.alias("other").c
    later = or_(
        other.created_at > this.created_at, and_(other.created_at == this.created_at, other.id > this.id)
    )
    is_outdated = select(other.id).where(other.url_id == this.url_id, later).exists()
    return select(this.id).where(this.url_id == schema.urls.c.id, ~this.is_empty, ~is_outdated).exists()


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
    """What is said of a page now, and the annotation that it takes the place of, if the page has any."""

    address: PageAddress
    example: Example
    follows: Annotation | None


def apply_updates(
    engine: Engine,
    cluster: str,
    schema_follows: int,
    attributes: Mapping[str, Attribute] | None,
    amendments: Sequence[OptimisticUpdate],
    author: str,
    at: datetime,
) -> bool:
    """Keep amendments, and what is said of the cluster's attributes if that changes; returns whether it was.

    It is not if a page has another annotation by now, or the cluster another schema.
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
    for one in amendments:
        # Clocks of several machines differ, and the newest annotation is the one that holds.
        row = annotation_row(
            engine, one.address, one.example, author, max(at, one.follows.at) if one.follows else at
        )
        newest = newest_annotation_of(row["url_id"])
        is_newest = newest.is_(None) if one.follows is None else newest == one.follows.id
        is_newest &= revision == schema_follows
        changes.append(insert_if(schema.annotations, row, is_newest).returning(schema.annotations.c.id))
    with engine.connect() as connection, connection.begin() as transaction:
        wait_for_tables(connection)  # else two processes could both find the same to be the newest
        for change in changes:
            if connection.execute(change).scalar_one_or_none() is None:
                transaction.rollback()
                return False
    return True
