"""Write pages into the store, block by block, so that nothing is lost or stored twice.

The order makes it safe to kill: a block is on the disk in its pack before the tables refer to it, and all its
pages are added to the tables in one transaction. Blocks of several sites share a transaction, because it is
expensive.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, Self

from sqlalchemy import bindparam, delete, insert, select, update

from siteloom.core.database import writing
from siteloom.core.errors import StoreBusy
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.model import Failure, Page, Resource, in_utc
from siteloom.sources.page_source import refusal
from siteloom.store import schema
from siteloom.store.keys import content_hash, folder_name, url_key
from siteloom.store.packs.pack_file import Document, PackAppender, encode_block, pack_name, pack_number
from siteloom.store.queries.runs import last_erasure

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from siteloom.core.model import Validators

HTML = "text/html"

# 64 pages together shrink 35 times, 128 pages 39 times; reading one page decompresses the whole block, which
# takes a few milliseconds.
_PAGES_OF_A_BLOCK = 128
_BYTES_OF_A_BLOCK = 16_000_000
# Pages of many sites may come mixed, each site filling a block of its own.
_BYTES_WAITING = 128_000_000
# Few enough for one statement, which has at most 32,766 parameters in SQLite.
_PAGES_OF_A_COMMIT = 4_000
# The number of pages looked up in the tables together.
_PAGES_LOOKED_UP = 32
_BYTES_LOOKED_UP = 8_000_000
# A source with no more than this number of pages in this many seconds is slow: its pages are expensive, as
# those from the web are, and are committed without waiting for more of their site.
_SECONDS_WAITING = 30.0
_PAGES_OF_A_SLOW_SOURCE = 1_000
# A pack is the unit of work of worker processes.
_BYTES_OF_A_PACK = 256_000_000


@dataclass(slots=True)
class _Incoming:
    """A document on its way into the store."""

    document: Document
    site: str
    key: bytes
    content: bytes
    seen_at: datetime
    validators: Validators | None


@dataclass(slots=True)
class _Batch:
    """Documents that are processed together."""

    items: list[_Incoming] = field(default_factory=list)
    bytes: int = 0

    def add(self, item: _Incoming) -> None:
        self.items.append(item)
        self.bytes += len(item.document.body)

    def is_full(self, items: int, size: int) -> bool:
        return len(self.items) >= items or self.bytes >= size


class _Block(NamedTuple):
    """A block of a site that is being compressed."""

    site: str
    items: list[_Incoming]
    compressed: Future[bytes]


class _PackEnd(NamedTuple):
    """The location of a site's next block."""

    pack_id: int
    file: str
    committed: int


class _StoredVersion(NamedTuple):
    id: int
    last_seen_at: datetime


class PageWriter:
    """Stores pages and resources one by one; use it as a context manager.

    Once they are committed, they are added to `counts` as `new`, `changed` (another version of a known URL)
    or `unchanged`. `added_pages` and `changed_pages` count pages alone, by site. Those without a time count
    as fetched from `now` on, each a microsecond after the previous one, so that the last one is the newest.

    The caller either holds the lock of the workspace, or passes `lock` to acquire it, with whether to wait:
    then it is held only while everything added is committed. `on_commit` is called after each commit.
    """

    def __init__(
        self,
        engine: Engine,
        packs_folder: Path,
        *,
        now: datetime,
        counts: Counter[str],
        jobs: int,
        seconds: Callable[[], float] = time.monotonic,
        lock: Callable[[bool], AbstractContextManager[None]] | None = None,
        on_commit: Callable[[], object] = lambda: None,
    ) -> None:
        self.added_pages: Counter[str] = Counter()
        self.changed_pages: Counter[str] = Counter()
        self._engine = engine
        self._packs_folder = packs_folder
        self._now = now
        self._counts = counts
        self._jobs = jobs
        self._compressors = ThreadPoolExecutor(jobs)
        self._arrived = _Batch()
        self._blocks: dict[str, _Batch] = {}  # of each site, not full yet
        self._compressing: deque[_Block] = deque()
        self._uncommitted: dict[tuple[bytes, bytes], _Incoming] = {}
        self._seconds = seconds
        self._looked_at = seconds()  # when it was last asked whether the source is slow
        self._added_since = 0
        self._lock = lock
        self._on_commit = on_commit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # After Ctrl-C, pages read so far are stored; after an error the store may be unable to.
        try:
            if error is None or issubclass(error, KeyboardInterrupt):
                self.flush()
        finally:
            self._compressors.shutdown(cancel_futures=True)

    def add(self, item: Page | Resource, site: str) -> Failure | None:
        """Add a document, or return why it cannot be stored.

        It is safe once `flush` or a later `add` has committed it.
        """
        if failure := refusal(item, site):
            return failure
        document = _document(item)
        self._now += timedelta(microseconds=1)
        self._arrived.add(
            _Incoming(
                document,
                site,
                url_key(site, document.url),
                content_hash(document.media_type, document.body),
                document.fetched_at or self._now,
                item.validators if isinstance(item, Page) else None,
            )
        )
        if self._lock is not None:
            self.flush_when_due()
            return None
        if self._arrived.is_full(_PAGES_LOOKED_UP, _BYTES_LOOKED_UP):
            with held_back_interrupt():
                self._sort_in()
        self._added_since += 1
        if self._seconds() - self._looked_at >= _SECONDS_WAITING:
            if self._added_since <= _PAGES_OF_A_SLOW_SOURCE:
                self.flush()
            self._looked_at, self._added_since = self._seconds(), 0
        return None

    def flush(self, *, waits: bool = True) -> None:
        """Commit everything that was added; raises StoreBusy without waiting if another process writes."""
        with self._lock(waits) if self._lock else nullcontext(), held_back_interrupt():
            self._sort_in()
            for site in list(self._blocks):
                self._compress(site)
            self._commit_until(0)
            self._on_commit()

    def flush_when_due(self) -> None:
        """Commit everything when a block is full, or after some time, because others may write in between.

        Call it for items that are not pages, too, so that they are recorded in time. While another process
        writes, pages are still accepted, because making the fetcher wait could lose some. If the lock is held
        all the time, `add` commits by itself.
        """
        if self._lock is None:
            return
        is_late = self._seconds() - self._looked_at >= _SECONDS_WAITING
        if is_late or self._arrived.is_full(_PAGES_OF_A_BLOCK, _BYTES_OF_A_BLOCK):
            with suppress(StoreBusy):
                self.flush(waits=self._arrived.is_full(_PAGES_OF_A_COMMIT, _BYTES_WAITING))
                self._looked_at = self._seconds()

    def _sort_in(self) -> None:
        """Separate documents that are already stored, and put new ones into blocks."""
        seen_at_by_version: dict[int, datetime] = {}
        validators: dict[int, Validators] = {}
        arrived, self._arrived = self._arrived, _Batch()
        with writing(self._engine) as connection:
            stored = _stored_versions(connection, arrived.items)
            for item in arrived.items:
                version = stored.get((item.key, item.content))
                waiting = self._uncommitted.get((item.key, item.content))
                if version is not None:
                    self._counts["unchanged"] += 1
                    if item.seen_at > seen_at_by_version.get(version.id, version.last_seen_at):
                        seen_at_by_version[version.id] = item.seen_at
                        if item.validators:
                            validators[version.id] = item.validators
                elif waiting is not None:
                    self._counts["unchanged"] += 1
                    if item.seen_at > waiting.seen_at:
                        waiting.seen_at = item.seen_at
                        waiting.validators = item.validators or waiting.validators
                else:
                    self._uncommitted[item.key, item.content] = item
                    self._blocks.setdefault(item.site, _Batch()).add(item)
            _mark_seen(connection, seen_at_by_version)
            _save_validators(connection, validators)
        for site in [s for s, b in self._blocks.items() if b.is_full(_PAGES_OF_A_BLOCK, _BYTES_OF_A_BLOCK)]:
            self._compress(site)
        self._make_room()
        self._commit_until(self._jobs)

    def _make_room(self) -> None:
        """If too much waits for blocks to fill, compress the largest blocks until half of it is left."""
        waiting = sum(block.bytes for block in self._blocks.values())
        if waiting > _BYTES_WAITING:
            for site in sorted(self._blocks, key=lambda site: self._blocks[site].bytes, reverse=True):
                waiting -= self._blocks[site].bytes
                self._compress(site)
                if waiting <= _BYTES_WAITING // 2:
                    break

    def _compress(self, site: str) -> None:
        items = self._blocks.pop(site).items
        compressed = self._compressors.submit(encode_block, [item.document for item in items])
        self._compressing.append(_Block(site, items, compressed))

    def _commit_until(self, limit: int) -> None:
        """Commit the oldest blocks until `limit` are left for the compressors to work on."""
        while len(self._compressing) > limit:
            batch: dict[str, _Block] = {}
            pages = 0
            while len(self._compressing) > limit and pages < _PAGES_OF_A_COMMIT:
                if self._compressing[0].site in batch:
                    break  # its location depends on whether the previous block fills the pack
                block = self._compressing.popleft()
                batch[block.site] = block
                pages += len(block.items)
            self._commit(batch)

    def _commit(self, batch: dict[str, _Block]) -> None:
        """Store the next block of each site."""
        compressed = {site: block.compressed.result() for site, block in batch.items()}
        items = [item for block in batch.values() for item in block.items]
        with writing(self._engine) as connection:
            site_ids = _site_ids(connection, list(batch))
            ends = _pack_ends(connection, site_ids)
            offsets = self._append(connection, ends, compressed)
            url_ids, known_keys = _url_ids(connection, site_ids, items)
            connection.execute(
                insert(schema.versions),
                [
                    {
                        "url_id": url_ids[item.key],
                        "content_hash": item.content,
                        "media_type": item.document.media_type,
                        "size": len(item.document.body),
                        "last_seen_at": item.seen_at,
                        "pack_id": ends[site].pack_id,
                        "block_offset": offsets[site],
                        "slot": slot,
                    }
                    for site, block in batch.items()
                    for slot, item in enumerate(block.items)
                ],
            )
            if with_validators := [(item, item.validators) for item in items if item.validators]:
                added = _stored_versions(connection, [item for item, _ in with_validators])
                by_version = {
                    added[item.key, item.content].id: validators for item, validators in with_validators
                }
                _save_validators(connection, by_version)
        for item in items:
            del self._uncommitted[item.key, item.content]
            is_changed = item.key in known_keys
            self._counts["changed" if is_changed else "new"] += 1
            if item.document.media_type == HTML:
                (self.changed_pages if is_changed else self.added_pages)[item.site] += 1
            known_keys.add(item.key)

    def _append(
        self, connection: Connection, ends: dict[str, _PackEnd], blocks: dict[str, bytes]
    ) -> dict[str, int]:
        """Append a block to the pack of each site; returns where each begins."""
        appender = PackAppender(self._packs_folder)
        offsets: dict[str, int] = {}
        packs = []
        for site, (pack_id, file, committed) in ends.items():
            offsets[site], end = appender.append(file, committed, blocks[site])
            packs.append({"pack": pack_id, "end": end})
        appender.sync()
        pack = update(schema.packs).where(schema.packs.c.id == bindparam("pack"))
        connection.execute(pack.values(committed_bytes=bindparam("end")), packs)
        return offsets


def _document(item: Page | Resource) -> Document:
    fetched_at = None if item.fetched_at is None else in_utc(item.fetched_at)
    if isinstance(item, Page):
        return Document(item.url, item.html, HTML, item.charset, fetched_at)
    return Document(item.url, item.body, item.media_type, None, fetched_at)


def _stored_versions(
    connection: Connection, items: list[_Incoming]
) -> dict[tuple[bytes, bytes], _StoredVersion]:
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
    return {(row[0], row[1]): _StoredVersion(row[2], row[3]) for row in connection.execute(query)}


def _mark_seen(connection: Connection, seen_at_by_version: dict[int, datetime]) -> None:
    if seen_at_by_version:
        version = update(schema.versions).where(schema.versions.c.id == bindparam("version"))
        rows = [{"version": version_id, "time": time} for version_id, time in seen_at_by_version.items()]
        connection.execute(version.values(last_seen_at=bindparam("time")), rows)


def _save_validators(connection: Connection, by_version: dict[int, Validators]) -> None:
    """Replace the validators of versions: the same content may come from another server."""
    if by_version:
        table = schema.validators
        connection.execute(delete(table).where(table.c.version_id.in_(list(by_version))))
        rows = [{"version_id": version, **found._asdict()} for version, found in by_version.items()]
        connection.execute(insert(table), rows)


def _site_ids(connection: Connection, names: list[str]) -> dict[str, int]:
    """The id of each site, new ones added."""
    sites = schema.sites.c
    query = select(sites.name, sites.id).where(sites.name.in_(names))
    ids = {row[0]: row[1] for row in connection.execute(query)}
    new = [{"name": name} for name in names if name not in ids]
    if new:
        added = connection.execute(insert(schema.sites).returning(sites.name, sites.id), new)
        ids.update((row[0], row[1]) for row in added)
    return ids


def _pack_ends(connection: Connection, site_ids: dict[str, int]) -> dict[str, _PackEnd]:
    """The end of each site's newest pack unless that is full, else of a new one."""
    packs = _packs_by_site(connection, site_ids)
    ends = {site: ends[-1] for site, ends in packs.items() if ends and ends[-1].committed < _BYTES_OF_A_PACK}
    full = [site for site in site_ids if site not in ends]
    if full:
        erased_by = last_erasure(connection)
        new = {_next_pack(site, packs[site], erased_by): site for site in full}
        columns = schema.packs.c
        rows = [{"site_id": site_ids[site], "file": file, "committed_bytes": 0} for file, site in new.items()]
        added = connection.execute(insert(schema.packs).returning(columns.id, columns.file), rows)
        ends.update((new[file], _PackEnd(pack_id, file, 0)) for pack_id, file in added)
    return ends


def _next_pack(site: str, packs: list[_PackEnd], erased_by: int | None) -> str:
    number = max((pack_number(pack.file) for pack in packs), default=0) + 1
    return f"{folder_name(site)}/{pack_name(number, erased_by)}"


def _packs_by_site(connection: Connection, site_ids: dict[str, int]) -> dict[str, list[_PackEnd]]:
    """Return the ends of all packs of each site, the newest pack last."""
    packs = schema.packs.c
    query = (
        select(schema.sites.c.name, packs.id, packs.file, packs.committed_bytes)
        .join(schema.sites)
        .where(packs.site_id.in_(list(site_ids.values())))
        .order_by(packs.id)
        # Locked, because the last commit of a killed process may still be under way in PostgreSQL.
        .with_for_update(of=schema.packs)
    )
    ends_by_site: dict[str, list[_PackEnd]] = {site: [] for site in site_ids}
    for site, *end in connection.execute(query):
        ends_by_site[site].append(_PackEnd(*end))
    return ends_by_site


def _url_ids(
    connection: Connection, site_ids: dict[str, int], items: list[_Incoming]
) -> tuple[dict[bytes, int], set[bytes]]:
    """Return the id of each URL, adding new ones, and the keys of those that existed before."""
    urls = schema.urls.c
    items_by_key = {item.key: item for item in items}
    query = select(urls.key, urls.id).where(urls.key.in_(list(items_by_key)))
    ids = {row[0]: row[1] for row in connection.execute(query)}
    known_keys = set(ids)
    new = [
        {"site_id": site_ids[item.site], "key": key, "url": item.document.url}
        for key, item in items_by_key.items()
        if key not in ids
    ]
    if new:
        added = connection.execute(insert(schema.urls).returning(urls.key, urls.id), new)
        ids.update((row[0], row[1]) for row in added)
    return ids, known_keys
