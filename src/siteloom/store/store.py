"""An open store: what is in it, and the pages themselves."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Row, and_, func, or_, select
from sqlalchemy.exc import DBAPIError

from siteloom.errors import PackError, StoreError
from siteloom.model import Failure, Page
from siteloom.store import schema
from siteloom.store.keys import content_hash, url_key
from siteloom.store.lock import write_lock
from siteloom.store.packs import Pack
from siteloom.store.runs import Run, RunRecorder, recorded_run
from siteloom.store.writer import HTML, PageWriter
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import ColumnElement, Engine, Select

PACKS_FOLDER = "packs"
_ROWS_AT_A_TIME = 1_000


class Site(NamedTuple):
    """A site in numbers; `bytes` are those of all versions of its pages, before packing."""

    name: str
    pages: int
    versions: int
    bytes: int
    packed_bytes: int


class Problem(NamedTuple):
    """Something in the store that is not as it should be."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. `backup` says where the state before an upgrade is, if opening needed one."""

    folder: Path
    engine: Engine
    clock: Callable[[], datetime]
    backup: str | None

    @property
    def packs_folder(self) -> Path:
        """The folder of the pack files."""
        return self.folder / PACKS_FOLDER

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()

    @contextmanager
    def ingesting(
        self, arguments: Mapping[str, object], jobs: int
    ) -> Iterator[tuple[RunRecorder, PageWriter]]:
        """A recorded run and a writer of pages; no other process can write meanwhile."""
        try:
            with (
                write_lock(self.folder),
                recorded_run(self.engine, self.clock, "ingest", arguments) as run,
                PageWriter(
                    self.engine, self.packs_folder, now=self.clock(), counts=run.counts, jobs=jobs
                ) as writer,
            ):
                yield run, writer
        except DBAPIError as error:
            reason = str(error.orig).strip().splitlines()[0]
            raise StoreError(f"The database of {self.folder} cannot be written: {reason}.") from error

    def sites(self) -> tuple[Site, ...]:
        """All sites by name."""
        pages = (
            select(
                schema.urls.c.site_id,
                func.count(schema.urls.c.id.distinct()).label("pages"),
                func.count().label("versions"),
                func.sum(schema.versions.c.size).label("bytes"),
            )
            .join(schema.versions)
            .where(schema.versions.c.media_type == HTML)
            .group_by(schema.urls.c.site_id)
            .subquery()
        )
        packed = (
            select(schema.packs.c.site_id, func.sum(schema.packs.c.committed_bytes).label("bytes"))
            .group_by(schema.packs.c.site_id)
            .subquery()
        )
        query = (
            select(schema.sites.c.name, pages.c.pages, pages.c.versions, pages.c.bytes, packed.c.bytes)
            .outerjoin(pages, pages.c.site_id == schema.sites.c.id)
            .outerjoin(packed, packed.c.site_id == schema.sites.c.id)
            .order_by(schema.sites.c.name)
        )
        with self.engine.connect() as connection:
            rows = connection.execute(query).all()
        return tuple(Site(name, *(int(number or 0) for number in numbers)) for name, *numbers in rows)

    def runs(self, limit: int) -> tuple[Run, ...]:
        """The latest runs, newest first."""
        columns = [schema.runs.c[name] for name in Run._fields]
        query = select(*columns).order_by(schema.runs.c.id.desc()).limit(limit)
        with self.engine.connect() as connection:
            return tuple(Run(*row) for row in connection.execute(query))

    def failures(self, run_id: int) -> Iterator[Failure]:
        """The failures of a run, in the order they happened."""
        columns = schema.failures.c
        query = select(columns.url, columns.reason, columns.detail).order_by(columns.id)
        with self.engine.connect() as connection:
            for row in connection.execute(query.where(columns.run_id == run_id)):
                yield Failure(*row)

    def pages(self, site: str | None = None) -> Iterator[Page]:
        """The newest version of every page, or of one site's, in the order of the packs."""
        query = _places().where(_is_newest()).order_by(schema.versions.c.id).limit(_ROWS_AT_A_TIME)
        if site is not None:
            query = query.join(schema.sites).where(schema.sites.c.name == site)
        last_id = 0
        with closing(_OpenPacks(self.packs_folder)) as packs:
            # One query a thousand rows, so that no transaction stays open while pages are worked on.
            while rows := self._rows(query.where(schema.versions.c.id > last_id)):
                yield from map(packs.page, rows)
                last_id = rows[-1].id

    def versions(self, url: str, site: str | None = None) -> tuple[Page, ...]:
        """All versions of a page, the newest last; in the site of its URL unless another is named."""
        query = _places().where(schema.urls.c.key == url_key(site or site_of(url), url))
        rows = self._rows(query.order_by(schema.versions.c.last_seen_at, schema.versions.c.id))
        with closing(_OpenPacks(self.packs_folder)) as packs:
            return tuple(map(packs.page, rows))

    def check(self) -> Iterator[Problem]:
        """Read every pack and compare it with the tables."""
        columns = schema.packs.c
        for pack_id, file, committed in self._rows(select(columns.id, columns.file, columns.committed_bytes)):
            try:
                yield from self._check_pack(pack_id, file, committed)
            except PackError as error:
                yield Problem(file, str(error))

    def _check_pack(self, pack_id: int, file: str, committed: int) -> Iterator[Problem]:
        columns = schema.versions.c
        query = (
            select(columns.block_offset, columns.slot, schema.urls.c.url, columns.content_hash)
            .join(schema.urls)
            .where(columns.pack_id == pack_id)
        )
        expected = {(row[0], row[1]): (row[2], row[3]) for row in self._rows(query)}
        with closing(Pack(self.packs_folder / file)) as pack:
            for offset, documents in pack.blocks(committed):
                for slot, document in enumerate(documents):
                    found = (document.url, content_hash(document.media_type, document.body))
                    if expected.pop((offset, slot), None) != found:
                        yield Problem(file, f"{document.url} is not what the tables say.")
        if expected:
            yield Problem(file, f"{len(expected)} versions of pages are missing.")

    def _rows(self, query: Select[*tuple[Any, ...]]) -> list[Row[*tuple[Any, ...]]]:
        with self.engine.connect() as connection:
            return list(connection.execute(query).all())


@dataclass(frozen=True, slots=True)
class StoredPages:
    """The store as a source of pages, like any file of them."""

    store: Store
    site: str | None = None

    def read(self) -> Iterator[Page]:
        """The newest version of every page."""
        return self.store.pages(self.site)


class _OpenPacks:
    """The pack files of a reader, each opened when first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packs: dict[str, Pack] = {}

    def page(self, row: Row[*tuple[Any, ...]]) -> Page:
        if row.file not in self._packs:
            self.close()  # rows come pack after pack
            self._packs[row.file] = Pack(self._folder / row.file)
        document = self._packs[row.file].document(row.block_offset, row.slot)
        return Page(document.url, document.body, document.fetched_at, document.charset)

    def close(self) -> None:
        for pack in self._packs.values():
            pack.close()
        self._packs.clear()


def _places() -> Select[*tuple[Any, ...]]:
    """Where the versions of pages stand in the packs."""
    return (
        select(
            schema.versions.c.id, schema.packs.c.file, schema.versions.c.block_offset, schema.versions.c.slot
        )
        .join(schema.urls, schema.versions.c.url_id == schema.urls.c.id)
        .join(schema.packs, schema.versions.c.pack_id == schema.packs.c.id)
        .where(schema.versions.c.media_type == HTML)
    )


def _is_newest() -> ColumnElement[bool]:
    """True of a version that no other of its URL was seen after."""
    this = schema.versions.c
    other = schema.versions.alias("other").c
    later = or_(
        other.last_seen_at > this.last_seen_at,
        and_(other.last_seen_at == this.last_seen_at, other.id > this.id),
    )
    return ~select(other.id).where(other.url_id == this.url_id, other.media_type == HTML, later).exists()
