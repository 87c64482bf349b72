"""The search index: pages and records as documents, and their terms.

A page is indexed in its newest version, a record as it came out of the newest run of extract for its site.
What is new and what is outdated is found by comparing, so that an update may be killed at any moment and
begun again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import zstandard
from sqlalchemy import delete, exists, func, insert, inspect, select, text, true

from siteloom.core.database import writing
from siteloom.core.errors import StoreError
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.model import FoundDocument, IndexDocument, Passage
from siteloom.core.sequences import batches
from siteloom.core.storable_text import storable
from siteloom.store import schema
from siteloom.store.compression import decompressed
from siteloom.store.keys import url_key
from siteloom.store.packs.page_reader import select_newest_pages
from siteloom.store.queries.clusters import cluster_ids_named, cluster_names
from siteloom.store.queries.records import active_extractions
from siteloom.store.queries.search_terms import TABLE, Phrase, TermCondition, TermIndex, term_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Engine, Select

_WRITTEN_AT_A_TIME = 200
_READ_AT_A_TIME = 1_000

# What there is one of in the whole index, or of each site.
_TERMS = "terms"
_RECORDS = "records"
_ATTRIBUTES = "attributes"
_COUNTED_PAGES = "counted pages of "


class NewestVersion(NamedTuple):
    """A page in its newest version."""

    site: str
    url: str
    version_id: int
    url_id: int


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """The index of a store. All but searching is to be done under the write lock."""

    engine: Engine

    @property
    def _terms(self) -> TermIndex:
        return term_index(self.engine.dialect.name)

    def is_current(self) -> bool:
        """Whether all pages and records are indexed, and nothing else is."""
        with self.engine.connect() as connection:
            if not self._has_terms(connection) or _mark(connection, _RECORDS) != _records_state(connection):
                return False
            # Of a page that is outdated the newest version is missing: it comes when the other has gone.
            return not connection.execute(_select_unindexed().limit(1)).all()

    def make_ready(self) -> None:
        """Make the index of terms; anew, if texts have other terms than when it was made."""
        with self.engine.connect() as connection:
            if self._has_terms(connection):
                return
        with held_back_interrupt(), writing(self.engine) as connection:
            self._terms.make(connection)
            for batch in _stored_documents(connection):
                self._terms.add(connection, batch)
            _set_mark(connection, _TERMS, self._terms.version)

    def _has_terms(self, connection: Connection) -> bool:
        """Whether there is an index of terms, and of those that texts have now; backups may lack it."""
        is_current = _mark(connection, _TERMS) == self._terms.version
        return is_current and inspect(connection).has_table(TABLE)

    def remove_outdated_pages(self) -> int:
        """Take out versions of pages that are not the newest any more; returns how many."""
        return self._remove(_is_outdated())

    def forget(self, condition: ColumnElement[bool]) -> Iterator[int]:
        """Take out documents for good, some at a time, and say how many each time."""
        columns = schema.search_documents.c
        with self.engine.connect() as connection:
            gone = connection.execute(select(columns.id).where(condition)).scalars().all()
            has_terms = self._has_terms(connection)
        if not gone:
            return
        if not has_terms:  # what is not of this version cannot be taken out: all are indexed again
            with writing(self.engine) as connection:
                connection.execute(text(f"DROP TABLE IF EXISTS {TABLE}"))
        for ids in batches(gone, _WRITTEN_AT_A_TIME):
            is_in_batch = columns.id.in_(ids)
            with held_back_interrupt(), writing(self.engine) as connection:
                if has_terms:
                    self._take_out(connection, is_in_batch)
                else:
                    connection.execute(delete(schema.search_documents).where(is_in_batch))
            yield len(ids)
        with held_back_interrupt(), writing(self.engine) as connection:
            _set_mark(connection, _ATTRIBUTES, json.dumps(_attributes_left(connection)))

    def wipe(self, connection: Connection) -> None:
        """Leave no trace of what was taken out."""
        if inspect(connection).has_table(TABLE):
            self._terms.wipe(connection)

    def unindexed_pages(self) -> list[NewestVersion]:
        """The pages whose newest version is missing, those of a site together, as they stand in the packs."""
        return self._versions(_select_unindexed())

    def unindexed_count(self) -> int:
        """Count the pages whose newest version is missing."""
        with self.engine.connect() as connection:
            query = select(func.count()).select_from(_select_unindexed().subquery())
            return int(connection.execute(query).scalar_one())

    def indexed_pages(self, site: str) -> list[NewestVersion]:
        """The pages of a site whose newest version is there, as they stand in the packs."""
        return self._versions(_select_newest().where(schema.sites.c.name == storable(site), _is_indexed()))

    def _versions(self, query: Select[*tuple[Any, ...]]) -> list[NewestVersion]:
        in_order = query.order_by(
            schema.sites.c.id, schema.packs.c.id, schema.versions.c.block_offset, schema.versions.c.slot
        )
        with self.engine.connect() as connection:
            return [NewestVersion(*row) for row in connection.execute(in_order)]

    def counted_pages(self, site: str) -> int:
        """Return the number of pages that the segment table had counted when a site was last indexed."""
        with self.engine.connect() as connection:
            return int(_mark(connection, counted_pages_mark(site)) or 0)

    def set_counted_pages(self, site: str, count: int) -> None:
        """Remember that all pages of a site were indexed by a table that had counted so many."""
        with held_back_interrupt(), writing(self.engine) as connection:
            _set_mark(connection, counted_pages_mark(site), str(count))

    def add_pages(self, pages: Iterable[tuple[NewestVersion, IndexDocument]]) -> None:
        """Take in pages, batch by batch as they come, each in the place of what there was of its version."""
        for batch in batches(pages, _WRITTEN_AT_A_TIME):
            rows = [
                {**_row(document), "version_id": page.version_id, "url_id": page.url_id, "key": None}
                for page, document in batch
            ]
            is_in_batch = schema.search_documents.c.version_id.in_([page.version_id for page, _ in batch])
            with held_back_interrupt(), writing(self.engine) as connection:
                self._take_out(connection, is_in_batch)
                self._add(connection, rows, [document.passages for _, document in batch])

    def has_newest_records(self) -> bool:
        """Whether the records are those of the newest runs of extract, by wrappers that are in force."""
        with self.engine.connect() as connection:
            return _mark(connection, _RECORDS) == _records_state(connection)

    def replace_records(self, documents: Iterable[IndexDocument]) -> tuple[int, int]:
        """Have these records and no others in the index; returns how many were added and taken out.

        Those that are there already are left alone.
        """
        columns = schema.search_documents.c
        with self.engine.connect() as connection:
            state = _records_state(connection)
            query = select(columns.key, columns.id).where(columns.kind == "record")
            outdated = {row.key: row.id for row in connection.execute(query)}
        known_keys = set(outdated)
        attributes: dict[str, None] = {}
        added = 0
        for batch in batches(documents, _WRITTEN_AT_A_TIME):
            fresh: dict[bytes, IndexDocument] = {}
            for document in batch:
                attributes.update(dict.fromkeys(passage.attribute for passage in document.passages))
                key = _key(document)
                outdated.pop(key, None)
                if key not in known_keys:
                    known_keys.add(key)
                    fresh[key] = document
            added += len(fresh)
            if fresh:
                self._add_records(fresh)
        for ids in batches(outdated.values(), _READ_AT_A_TIME):
            self._remove(columns.id.in_(ids))
        with held_back_interrupt(), writing(self.engine) as connection:
            _set_mark(connection, _ATTRIBUTES, json.dumps(sorted(attributes)))
            _set_mark(connection, _RECORDS, state)
        return added, len(outdated)

    def _add_records(self, documents: Mapping[bytes, IndexDocument]) -> None:
        with held_back_interrupt(), writing(self.engine) as connection:
            keys = {url_key(document.site, document.url) for document in documents.values()}
            urls = schema.urls.c
            rows_of_urls = connection.execute(select(urls.key, urls.id).where(urls.key.in_(keys)))
            url_ids = {row.key: row.id for row in rows_of_urls}
            rows = [
                {
                    **_row(document),
                    "version_id": None,
                    "url_id": url_ids.get(url_key(document.site, document.url)),
                    "key": key,
                }
                for key, document in documents.items()
            ]
            self._add(connection, rows, [document.passages for document in documents.values()])

    def _add(
        self,
        connection: Connection,
        rows: Sequence[Mapping[str, object]],
        passages: Sequence[tuple[Passage, ...]],
    ) -> None:
        # In their order, or else the ids would belong to other documents.
        statement = insert(schema.search_documents).returning(
            schema.search_documents.c.id, sort_by_parameter_order=True
        )
        ids = connection.execute(statement, rows).scalars().all()
        self._terms.add(connection, dict(zip(ids, passages, strict=True)))

    def _remove(self, condition: ColumnElement[bool]) -> int:
        columns = schema.search_documents.c
        with self.engine.connect() as connection:
            outdated = connection.execute(select(columns.id).where(condition)).scalars().all()
        for ids in batches(outdated, _WRITTEN_AT_A_TIME):
            with held_back_interrupt(), writing(self.engine) as connection:
                self._take_out(connection, columns.id.in_(ids))
        return len(outdated)

    def _take_out(self, connection: Connection, condition: ColumnElement[bool]) -> None:
        columns = schema.search_documents.c
        rows = connection.execute(select(columns.id, columns.content).where(condition)).all()
        if rows:
            self._terms.remove(connection, {row.id: _passages(row.content) for row in rows})
            connection.execute(delete(schema.search_documents).where(condition))

    def attributes(self) -> list[str]:
        """The names of all attributes of records in the index."""
        with self.engine.connect() as connection:
            return json.loads(_mark(connection, _ATTRIBUTES) or "[]")  # type: ignore[no-any-return]

    def search(
        self,
        phrases: tuple[Phrase, ...],
        excluded_phrases: tuple[Phrase, ...] = (),
        *,
        takes_any: bool = False,
        site: str | None = None,
        cluster: str | None = None,
        attribute: str | None = None,
        kind: Literal["page", "record"] | None = None,
        limit: int = 10,
    ) -> list[FoundDocument]:
        """The documents with all wanted phrases, or with any, and with no unwanted one; the best first.

        They may be those of a site or of a cluster. With an attribute, they are records with the
        phrases in its values.
        """
        columns = schema.search_documents.c
        among: ColumnElement[bool] = true()
        with self.engine.connect() as connection:
            if not phrases or not inspect(connection).has_table(TABLE):
                return []
            if site is not None:
                among &= columns.site == storable(site)
            if kind is not None:
                among &= columns.kind == kind
            if cluster is not None:
                members = schema.cluster_pages.c
                in_cluster = members.cluster_id.in_(cluster_ids_named(connection, cluster))
                among &= columns.url_id.in_(select(members.url_id).where(in_cluster))
            condition = TermCondition(phrases, excluded_phrases, attribute, takes_any)
            best = self._terms.best(connection, condition, among, limit)
            return list(_found_documents(connection, best))


def _found_documents(connection: Connection, best: Sequence[tuple[int, float]]) -> Iterator[FoundDocument]:
    columns = schema.search_documents.c
    query = select(schema.search_documents).where(columns.id.in_([document_id for document_id, _ in best]))
    rows = {row.id: row for row in connection.execute(query)}
    clusters = cluster_names(connection, [row.url_id for row in rows.values() if row.url_id is not None])
    for document_id, score in best:
        row = rows[document_id]
        document = IndexDocument(row.kind, row.site, row.url, _passages(row.content))
        yield FoundDocument(document, clusters.get(row.url_id), score)


def _is_outdated() -> ColumnElement[bool]:
    """Whether a document is a version of a page that is not the newest any more."""
    columns = schema.search_documents.c
    # Not as a list of ids: PostgreSQL would go through it anew for every document.
    is_newest = (
        select_newest_pages()
        .with_only_columns(schema.versions.c.id)
        .where(schema.versions.c.id == columns.version_id)
        .correlate(schema.search_documents)
        .exists()
    )
    return (columns.kind == "page") & ~is_newest


def _select_unindexed() -> Select[*tuple[Any, ...]]:
    return _select_newest().where(~_is_indexed())


def _select_newest() -> Select[*tuple[Any, ...]]:
    versions = schema.versions.c
    return (
        select_newest_pages()
        .join(schema.sites, schema.sites.c.id == schema.urls.c.site_id)
        .with_only_columns(schema.sites.c.name, schema.urls.c.url, versions.id, versions.url_id)
    )


def _is_indexed() -> ColumnElement[bool]:
    return exists().where(schema.search_documents.c.version_id == schema.versions.c.id)


def _records_state(connection: Connection) -> str:
    """Changes with the records that hold: by another run of extract, or other wrappers in force."""
    newest = connection.execute(select(func.coalesce(func.max(schema.wrappers.c.id), 0))).scalar_one()
    return f"{sorted(active_extractions(connection).values())} {newest}"


def counted_pages_mark(site: str) -> str:
    """The name of what is remembered of the counted pages of a site."""
    return _COUNTED_PAGES + storable(site)


def _attributes_left(connection: Connection) -> list[str]:
    """The names of the attributes of all records that are in the index."""
    is_record = schema.search_documents.c.kind == "record"
    return sorted(
        {
            passage.attribute
            for batch in _stored_documents(connection, is_record)
            for passages in batch.values()
            for passage in passages
        }
    )


def _mark(connection: Connection, name: str) -> str | None:
    columns = schema.search_marks.c
    return connection.execute(select(columns.value).where(columns.name == name)).scalar_one_or_none()


def _set_mark(connection: Connection, name: str, value: str) -> None:
    connection.execute(delete(schema.search_marks).where(schema.search_marks.c.name == name))
    connection.execute(insert(schema.search_marks).values(name=name, value=value))


def _row(document: IndexDocument) -> dict[str, object]:
    return {
        "kind": document.kind,
        "site": storable(document.site),
        "url": storable(document.url),
        "content": _content(document.passages),
    }


def _key(document: IndexDocument) -> bytes:
    """A record is known again by all that there is of it."""
    whole = json.dumps([document.site, document.url, _plain_passages(document.passages)])
    return blake2b(whole.encode(), digest_size=16).digest()


def _plain_passages(passages: Iterable[Passage]) -> list[list[str]]:
    return [[passage.text, passage.field, passage.attribute] for passage in passages]


def _content(passages: Iterable[Passage]) -> bytes:
    """Passages as they are kept: JSON, compressed to less than half."""
    return zstandard.ZstdCompressor().compress(json.dumps(_plain_passages(passages)).encode())


def _passages(content: bytes) -> tuple[Passage, ...]:
    try:
        plain = json.loads(decompressed(content))
        return tuple(Passage(text, field, attribute) for text, field, attribute in plain)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"A document of the search index is damaged: {error}.") from error


def _stored_documents(
    connection: Connection, condition: ColumnElement[bool] = true()
) -> Iterator[dict[int, tuple[Passage, ...]]]:
    """All documents by id, or some of them, a few at a time."""
    columns = schema.search_documents.c
    batch = select(columns.id, columns.content).where(condition).order_by(columns.id).limit(_READ_AT_A_TIME)
    following = batch
    while rows := connection.execute(following).all():
        yield {row.id: _passages(row.content) for row in rows}
        following = batch.where(columns.id > rows[-1].id)
