"""What servers said by which to ask them whether a page has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from siteloom.model import Validators
from siteloom.store import schema
from siteloom.store.batches import batches
from siteloom.store.clusters import KEYS_AT_A_TIME
from siteloom.store.keys import url_key
from siteloom.store.reading import is_newest_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Engine

    from siteloom.store.clusters import PageAddress


def newest_validators(engine: Engine, addresses: Iterable[PageAddress]) -> dict[str, Validators]:
    """The validators of the newest versions of pages by URL, of those that have any."""
    urls, kept = schema.urls.c, schema.validators.c
    query = (
        select(urls.url, kept.etag, kept.last_modified)
        .join(schema.versions, schema.versions.c.url_id == urls.id)
        .join(schema.validators, kept.version_id == schema.versions.c.id)
        .where(is_newest_page())
    )
    found: dict[str, Validators] = {}
    with engine.connect() as connection:
        for some in batches((url_key(one.site, one.url) for one in addresses), KEYS_AT_A_TIME):
            rows = connection.execute(query.where(urls.key.in_(some)))
            found.update((url, Validators(etag, last_modified)) for url, etag, last_modified in rows)
    return found
