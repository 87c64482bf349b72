"""Annotations in the store: what a person saw on a page, tied to the very content that was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import insert, select

from siteloom.errors import StoreError
from siteloom.store import schema
from siteloom.store.clusters import PageAddress
from siteloom.store.keys import content_hash, url_key
from siteloom.store.reading import Place, select_places
from siteloom.store.text import storable
from siteloom.store.writer import HTML

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Engine

    from siteloom.model import Example

_FORMAT = 1  # of the JSON in the column `example`


class Annotation(NamedTuple):
    """What was said of a page, by the fields of an Example, and where the page as it then was stands."""

    place: Place
    example: dict[str, Any]


def save_annotation(
    engine: Engine, address: PageAddress, example: Example, author: str, at: datetime
) -> None:
    """Keep an example of a stored page beside those that the page already has."""
    versions = schema.versions.c
    annotated = (
        select(versions.url_id, versions.id.label("version_id"))
        .join(schema.urls)
        .where(schema.urls.c.key == url_key(address.site, address.url))
        .where(versions.content_hash == content_hash(HTML, example.page.html))
    )
    # Two transactions, for SQLite refuses to write in one that has read what was changed since.
    with engine.connect() as connection:
        version = connection.execute(annotated).mappings().one_or_none()
    if version is None:
        raise StoreError(
            f"The page {address.url} is not in the site {address.site} with the content of this example: "
            "ingest it first."
        )
    annotation = insert(schema.annotations).values(
        **version,
        # As JSON escapes it, databases take any text.
        example={
            "values": _lists(example.values),
            "records": [_lists(record) for record in example.records],
            "nodes": _lists(example.nodes),
        },
        author=storable(author),
        created_at=at,
        format=_FORMAT,
    )
    with engine.begin() as connection:
        connection.execute(annotation)


def newest_annotations(engine: Engine, site: str | None = None) -> list[Annotation]:
    """The newest annotation of every page, or of one site's; the page annotated first comes first."""
    columns = schema.annotations.c
    query = (
        select_places()
        .add_columns(columns.url_id, columns.example)
        .join(schema.annotations, columns.version_id == schema.versions.c.id)
        .order_by(columns.created_at, columns.id)
    )
    if site is not None:
        query = query.join(schema.sites, schema.urls.c.site_id == schema.sites.c.id)
        query = query.where(schema.sites.c.name == site)
    found: dict[int, Annotation] = {}
    with engine.connect() as connection:
        for *place, url_id, example in connection.execute(query):
            found[url_id] = Annotation(Place(*place), example)  # a later one takes the place of the first
    return list(found.values())


def annotated_pages(engine: Engine) -> list[PageAddress]:
    """Where the pages that have an annotation are, in the order in which they came into the store."""
    query = (
        select(schema.sites.c.name, schema.urls.c.url)
        .join(schema.urls)
        .where(schema.urls.c.id.in_(select(schema.annotations.c.url_id)))
        .order_by(schema.urls.c.id)
    )
    with engine.connect() as connection:
        return [PageAddress(*row) for row in connection.execute(query)]


def _lists(values: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {attribute: list(texts) for attribute, texts in values.items()}
