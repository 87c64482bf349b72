"""Writes pages into the store, block by block, so that nothing is lost or kept twice.

The order makes it safe to kill: a block is on the disk in its pack before the
tables speak of it, and the tables learn of all its pages in one transaction.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple, Self

from sqlalchemy import bindparam, func, insert, select, update

from siteloom.model import Failure, Page, Resource
from siteloom.store import schema
from siteloom.store.interrupts import held_back_interrupt
from siteloom.store.keys import content_hash, folder_name, url_key
from siteloom.store.packs import Document, append_block, encode_block
from siteloom.store.text import is_storable

if TYPE_CHECKING:
    from collections import Counter
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection, Engine

HTML = "text/html"

# 64 pages together shrink 35 times, 128 pages 38 times; the whole block is
# decompressed to read one page of it, which takes a few milliseconds.
_PAGES_OF_A_BLOCK = 128
_BYTES_OF_A_BLOCK = 16_000_000
# Pages of many sites may come mixed, each site filling a block of its own.
_BYTES_WAITING = 128_000_000
# How many pages are looked up in the tables together.
_PAGES_LOOKED_UP = 32
_BYTES_LOOKED_UP = 8_000_000
# A pack is the unit of work that worker processes share out among them.
_BYTES_OF_A_PACK = 256_000_000


@dataclass(slots=True)
class _Incoming:
    """A document on its way into the store."""

    document: Document
    site: str
    key: bytes
    content: bytes
    seen_at: datetime


@dataclass(slots=True)
class _Batch:
    """Documents that will be handled together."""

    items: list[_Incoming] = field(default_factory=list)
    bytes: int = 0

    def add(self, item: _Incoming) -> None:
        self.items.append(item)
        self.bytes += len(item.document.body)

    def is_full(self, items: int, size: int) -> bool:
        return len(self.items) >= items or self.bytes >= size


class _Compressing(NamedTuple):
    site: str
    items: list[_Incoming]
    block: Future[bytes]


class _KnownVersion(NamedTuple):
    id: int
    last_seen_at: datetime


class PageWriter:
    """Takes pages and resources one by one; use it as a context manager.

    What becomes of them is added to `counts` once they are committed: `new`
    ones, `changed` ones (another version of a known URL) and `unchanged` ones.
    Those that come without a time were fetched `now`.
    """

    def __init__(
        self, engine: Engine, packs_folder: Path, *, now: datetime, counts: Counter[str], jobs: int
    ) -> None:
        self._engine = engine
        self._packs_folder = packs_folder
        self._now = now
        self._counts = counts
        self._jobs = jobs
        self._compressors = ThreadPoolExecutor(jobs)
        self._arrived = _Batch()
        self._blocks: dict[str, _Batch] = {}  # of each site, not full yet
        self._compressing: deque[_Compressing] = deque()
        self._uncommitted: dict[tuple[bytes, bytes], _Incoming] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # After Ctrl-C, what has been read is kept; after an error the store may be unable to.
        try:
            if error is None or issubclass(error, KeyboardInterrupt):
                self.flush()
        finally:
            self._compressors.shutdown(cancel_futures=True)

    def add(self, item: Page | Resource, site: str) -> Failure | None:
        """Take a document in, or say why it cannot be kept.

        It is safe once `flush` or a later `add` has committed it.
        """
        document = _document(item)
        if failure := _refusal(document, site):
            return failure
        self._arrived.add(
            _Incoming(
                document,
                site,
                url_key(site, document.url),
                content_hash(document.media_type, document.body),
                document.fetched_at or self._now,
            )
        )
        if self._arrived.is_full(_PAGES_LOOKED_UP, _BYTES_LOOKED_UP):
            with held_back_interrupt():
                self._sort_in()
        return None

    def flush(self) -> None:
        """Commit everything that was added."""
        with held_back_interrupt():
            self._sort_in()
            for site in list(self._blocks):
                self._compress(site)
            while self._compressing:
                self._commit_oldest()

    def _sort_in(self) -> None:
        """Set apart what is known already, and put the rest into blocks."""
        seen_again: dict[int, datetime] = {}
        arrived, self._arrived = self._arrived, _Batch()
        with self._engine.begin() as connection:
            known = _known_versions(connection, arrived.items)
            for item in arrived.items:
                version = known.get((item.key, item.content))
                waiting = self._uncommitted.get((item.key, item.content))
                if version is not None:
                    self._counts["unchanged"] += 1
                    if item.seen_at > seen_again.get(version.id, version.last_seen_at):
                        seen_again[version.id] = item.seen_at
                elif waiting is not None:
                    self._counts["unchanged"] += 1
                    waiting.seen_at = max(waiting.seen_at, item.seen_at)
                else:
                    self._uncommitted[item.key, item.content] = item
                    self._blocks.setdefault(item.site, _Batch()).add(item)
            _mark_seen(connection, seen_again)
        for site in [s for s, b in self._blocks.items() if b.is_full(_PAGES_OF_A_BLOCK, _BYTES_OF_A_BLOCK)]:
            self._compress(site)
        while sum(block.bytes for block in self._blocks.values()) > _BYTES_WAITING:
            self._compress(max(self._blocks, key=lambda site: self._blocks[site].bytes))

    def _compress(self, site: str) -> None:
        items = self._blocks.pop(site).items
        block = self._compressors.submit(encode_block, [item.document for item in items])
        self._compressing.append(_Compressing(site, items, block))
        while len(self._compressing) > self._jobs:
            self._commit_oldest()

    def _commit_oldest(self) -> None:
        site, items, block = self._compressing.popleft()
        with self._engine.begin() as connection:
            site_id = _site_id(connection, site)
            pack_id, file, committed = _pack_with_room(connection, site_id, site)
            offset, committed = append_block(self._packs_folder / file, committed, block.result())
            pack = update(schema.packs).where(schema.packs.c.id == pack_id)
            connection.execute(pack.values(committed_bytes=committed))
            url_ids, known = _url_ids(connection, site_id, items)
            connection.execute(
                insert(schema.versions),
                [
                    {
                        "url_id": url_ids[item.key],
                        "content_hash": item.content,
                        "media_type": item.document.media_type,
                        "size": len(item.document.body),
                        "last_seen_at": item.seen_at,
                        "pack_id": pack_id,
                        "block_offset": offset,
                        "slot": slot,
                    }
                    for slot, item in enumerate(items)
                ],
            )
        for item in items:
            del self._uncommitted[item.key, item.content]
            self._counts["changed" if item.key in known else "new"] += 1
            known.add(item.key)


def _document(item: Page | Resource) -> Document:
    fetched_at = item.fetched_at
    if fetched_at is not None and fetched_at.tzinfo is None:
        fetched_at = fetched_at.replace(tzinfo=UTC)
    if isinstance(item, Page):
        return Document(item.url, item.html, HTML, item.charset, fetched_at)
    return Document(item.url, item.body, item.media_type, None, fetched_at)


def _refusal(document: Document, site: str) -> Failure | None:
    texts = {"URL": document.url, "media type": document.media_type, "site name": site}
    for what, text in texts.items():
        if not is_storable(text):
            return Failure(document.url, f"bad {what}", f"{text!r} holds a character that databases refuse")
    return None


def _known_versions(
    connection: Connection, items: list[_Incoming]
) -> dict[tuple[bytes, bytes], _KnownVersion]:
    query = (
        select(
            schema.urls.c.key,
            schema.versions.c.content_hash,
            schema.versions.c.id,
            schema.versions.c.last_seen_at,
        )
        .join(schema.versions)
        .where(schema.urls.c.key.in_([item.key for item in items]))
    )
    return {(row[0], row[1]): _KnownVersion(row[2], row[3]) for row in connection.execute(query)}


def _mark_seen(connection: Connection, seen_again: dict[int, datetime]) -> None:
    if seen_again:
        version = update(schema.versions).where(schema.versions.c.id == bindparam("version"))
        rows = [{"version": version_id, "time": time} for version_id, time in seen_again.items()]
        connection.execute(version.values(last_seen_at=bindparam("time")), rows)


def _site_id(connection: Connection, site: str) -> int:
    sites = schema.sites.c
    found: int | None = connection.execute(select(sites.id).where(sites.name == site)).scalar()
    if found is not None:
        return found
    added: int = connection.execute(insert(schema.sites).values(name=site).returning(sites.id)).scalar_one()
    return added


def _pack_with_room(connection: Connection, site_id: int, site: str) -> tuple[int, str, int]:
    """The site's newest pack unless it is full, else a new one: its id, file and committed bytes."""
    packs = schema.packs.c
    query = select(packs.id, packs.file, packs.committed_bytes).where(packs.site_id == site_id)
    # Locked, because the last commit of a killed process may still be under way in PostgreSQL.
    query = query.order_by(packs.id.desc()).limit(1).with_for_update()
    newest = connection.execute(query).one_or_none()
    if newest is not None and newest.committed_bytes < _BYTES_OF_A_PACK:
        return newest[0], newest[1], newest[2]
    count = select(func.count()).select_from(schema.packs).where(packs.site_id == site_id)
    number = connection.execute(count).scalar_one() + 1
    file = f"{folder_name(site)}/{number:06}.pack"
    added = insert(schema.packs).values(site_id=site_id, file=file, committed_bytes=0).returning(packs.id)
    return connection.execute(added).scalar_one(), file, 0


def _url_ids(
    connection: Connection, site_id: int, items: list[_Incoming]
) -> tuple[dict[bytes, int], set[bytes]]:
    """The id of each URL, new ones added; and the keys of those that were there before."""
    urls = schema.urls.c
    urls_by_key = {item.key: item.document.url for item in items}
    query = select(urls.key, urls.id).where(urls.key.in_(list(urls_by_key)))
    ids = {row[0]: row[1] for row in connection.execute(query)}
    known = set(ids)
    new = [{"site_id": site_id, "key": key, "url": url} for key, url in urls_by_key.items() if key not in ids]
    if new:
        added = connection.execute(insert(schema.urls).returning(urls.key, urls.id), new)
        ids.update((row[0], row[1]) for row in added)
    return ids, known
