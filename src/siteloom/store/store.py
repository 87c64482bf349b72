"""An open store: what is in it, and the pages themselves."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, starmap
from operator import attrgetter
from sys import intern
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from siteloom.core.errors import DamagedBlock
from siteloom.core.file_lock import is_locked, verb_lock, write_lock
from siteloom.core.model import DamagedPage, Example, Failure, Resource
from siteloom.store import schema
from siteloom.store.erasure.disk_erasure import is_unfinished, remove_unknown_packs
from siteloom.store.packs.page_reader import (
    BlockPart,
    PackedPages,
    VersionPlace,
    document_url,
    documents_at,
    integrity_problems,
    links,
    newest_places,
    packed_shards,
    page_address,
    page_ids,
    pages_at,
    places_of_versions,
    select_newest_pages,
    select_places_of,
    stored_resources,
)
from siteloom.store.packs.page_writer import HTML, PageWriter
from siteloom.store.queries.accounts import Accounts
from siteloom.store.queries.annotations import (
    AnnotationQueries,
    OptimisticUpdate,
    apply_updates,
    newest_annotations,
)
from siteloom.store.queries.attribute_schemas import ClusterSchema, carry_over_schemas, cluster_schema
from siteloom.store.queries.cluster_summaries import cluster_summaries
from siteloom.store.queries.clusters import ClusterQueries, PageAddress
from siteloom.store.queries.entities import Entities
from siteloom.store.queries.jobs import Jobs
from siteloom.store.queries.pages import PageIndex, PageUrls, newest_validators
from siteloom.store.queries.record_filters import RecordTable
from siteloom.store.queries.records import RecordQueries, extraction_run
from siteloom.store.queries.review_queue import ReviewQueue, carry_over_dismissals
from siteloom.store.queries.run_history import RunHistory
from siteloom.store.queries.runs import RunRecorder, erasure_mark, recorded_run
from siteloom.store.queries.search_index import SearchIndex
from siteloom.store.queries.seeds import SeedQueries, SiteOutcomeQueries
from siteloom.store.queries.segments import SegmentQueries
from siteloom.store.queries.sites import SiteQueries
from siteloom.store.queries.watches_and_repairs import ChangeQueries
from siteloom.store.queries.wrappers import WrapperQueries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlalchemy import Connection, Select

    from siteloom.core.model import Attribute, Page, Validators
    from siteloom.store.packs.pack_file import Document
    from siteloom.store.packs.page_reader import IntegrityProblem
    from siteloom.store.queries.cluster_summaries import ClusterSummary
    from siteloom.store.queries.records import Extraction
    from siteloom.store.queries.runs import Run

PACKS_FOLDER = "packs"


@dataclass(frozen=True, slots=True)
class Store(
    SiteQueries,
    ClusterQueries,
    AnnotationQueries,
    WrapperQueries,
    RecordQueries,
    ChangeQueries,
    SeedQueries,
    SiteOutcomeQueries,
    SegmentQueries,
):
    """An open store: runs and pages, and what can be done with all else that it keeps.

    `backup` says where the state before an upgrade is, if opening needed one. With `on_busy`, whatever writes
    waits for another process that does, and calls it now and then meanwhile.
    """

    folder: Path
    backup: str | None
    on_busy: Callable[[], object] | None = None

    @property
    def packs_folder(self) -> Path:
        """The folder of the pack files."""
        return self.folder / PACKS_FOLDER

    @property
    def is_being_written(self) -> bool:
        """Whether a process is writing now, so that no other can."""
        return is_locked(self.folder)

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()

    @contextmanager
    def ingesting(
        self, arguments: Mapping[str, object], jobs: int
    ) -> Iterator[tuple[RunRecorder, PageWriter]]:
        """A recorded run and a writer of pages; no other process can write meanwhile."""
        with (
            write_lock(self.folder, self.on_busy),
            recorded_run(self.engine, self.clock, "ingest", arguments) as run,
            PageWriter(
                self.engine, self.packs_folder, now=self.clock(), counts=run.counts, jobs=jobs
            ) as writer,
        ):
            self._clear_up()
            yield run, writer

    @contextmanager
    def collecting(
        self, verb: str, arguments: Mapping[str, object], jobs: int, on_commit: Callable[[], object]
    ) -> Iterator[tuple[RunRecorder, PageWriter]]:
        """Record a run and open a writer for pages that arrive slowly: others can write most of the time.

        There is one run of a verb at a time. `on_commit` is called each time that all which was added, and
        all failures, are in the store for good.
        """

        def commit() -> None:
            run.flush()
            on_commit()

        def lock(waits: bool) -> AbstractContextManager[None]:
            return write_lock(self.folder, self.on_busy or (lambda: None) if waits else None)

        with (
            verb_lock(self.folder, verb),
            recorded_run(self.engine, self.clock, verb, arguments) as run,
            PageWriter(
                self.engine,
                self.packs_folder,
                now=self.clock(),
                counts=run.counts,
                jobs=jobs,
                lock=lock,
                on_commit=commit,
            ) as writer,
        ):
            with lock(True):
                self._clear_up()
            yield run, writer

    def _clear_up(self) -> None:
        """Remove the packs that one has left who was killed while it forgot; call it under the lock."""
        if is_unfinished(self.folder):
            remove_unknown_packs(self.packs_folder, self.engine)

    @contextmanager
    def recording(self, verb: str, arguments: Mapping[str, object]) -> Iterator[RunRecorder]:
        """A recorded run that writes to the tables; no other process can write meanwhile."""
        with (
            write_lock(self.folder, self.on_busy),
            recorded_run(self.engine, self.clock, verb, arguments) as run,
        ):
            yield run

    @contextmanager
    def clustering(self, arguments: Mapping[str, object]) -> Iterator[RunRecorder]:
        """A recorded run that finds clusters; what was said of those before it goes to where their pages are.

        Clusters are known by numbers, and those change.
        """
        with self.recording("cluster", arguments) as run:

            def carry(connection: Connection) -> None:
                carry_over_schemas(connection, run.id, self.clock())
                carry_over_dismissals(connection, run.id, self.clock())

            run.on_good_end = carry
            yield run

    @contextmanager
    def extracting(self, arguments: Mapping[str, object], fingerprint: str) -> Iterator[Extraction]:
        """A run of extract, handed its results shard by shard; no other process can write meanwhile.

        The fingerprint stands for all that the records come of: which pages, in
        which shards, and which wrappers. If the newest run had the same and did
        not come to a good end, that run goes on; else another begins.
        """
        with (
            write_lock(self.folder, self.on_busy),
            extraction_run(self.engine, self.clock, arguments, fingerprint) as extraction,
        ):
            yield extraction

    def runs(self, limit: int) -> tuple[Run, ...]:
        """The latest runs, newest first."""
        return tuple(reversed(self.run_history.runs(limit=limit)))

    def failures(self, run_id: int) -> Iterator[Failure]:
        """The failures of a run, in the order they happened."""
        columns = schema.failures.c
        query = select(columns.url, columns.reason, columns.detail).order_by(columns.id)
        with self.engine.connect() as connection:
            for row in connection.execute(query.where(columns.run_id == run_id)):
                yield Failure(*row)

    def pages(self, site: str | None = None) -> Iterator[Page]:
        """The newest version of every page, or of one site's, in the order of the packs.

        A page whose block is damaged comes as a `DamagedPage`, here and wherever many pages are read. They
        are those that were the newest when the first one was asked for,
        whatever another process writes meanwhile.
        """
        yield from PackedPages(self.packs_folder, tuple(self._newest_pages(site))).pages(self._url_at)

    def page_shards(self, site: str | None = None) -> list[PackedPages]:
        """Split the newest versions of all pages, or of one site's, into shards for other processes."""
        return list(packed_shards(self.packs_folder, self._newest_pages(site)))

    def page(self, address: PageAddress) -> Page:
        """The newest version of one page."""
        (page,) = self.pages_at([address])
        return _undamaged(page)

    def pages_at(self, addresses: Sequence[PageAddress], *, skips_missing: bool = False) -> Iterator[Page]:
        """The newest versions of some pages, in the order of their addresses.

        Pages that stand together in the packs are read together, some hundreds
        at a time, whatever their order here. One that is not stored is an error, or left out.
        """
        places = newest_places(self.engine, addresses, skips_missing=skips_missing)
        return pages_at(self.packs_folder, places, self._url_at)

    def page_ids(self, addresses: Sequence[PageAddress]) -> list[int]:
        """The numbers by which some pages can be asked for, in the order of their addresses."""
        return page_ids(self.engine, addresses)

    def newest_places(self, addresses: Sequence[PageAddress]) -> list[VersionPlace]:
        """Return the locations of the newest versions of pages, which identify the versions."""
        return list(newest_places(self.engine, addresses))

    def page_by_id(self, page_id: int) -> tuple[PageAddress, Page] | None:
        """Return the address and the newest version of the page with an id; None if there is none."""
        site_and_url = page_address(self.engine, page_id)
        if site_and_url is None:
            return None
        address = PageAddress(*site_and_url)
        pages = self.pages_at([address], skips_missing=True)
        return next(((address, _undamaged(page)) for page in pages), None)

    def cluster_summaries(self, site: str | None = None) -> list[ClusterSummary]:
        """The clusters that were found last, or those of a site, in numbers; their pages are not read."""
        return cluster_summaries(self.engine, site)

    def examples(self, site: str | None = None) -> list[Example]:
        """The newest annotation of every page, or of one site's; the page annotated first comes first.

        Their pages are as they were when they were annotated.
        """
        annotations = newest_annotations(self.engine, site)
        pages = self.pages_in(annotation.place for annotation in annotations)
        return [
            Example(
                page,
                annotation.example["values"],
                tuple(annotation.example["records"]),
                annotation.example["nodes"],
                tuple(annotation.example.get("record_nodes", ())),  # older annotations have none
            )
            for annotation, page in zip(annotations, pages, strict=True)
        ]

    def apply_updates(
        self,
        cluster: str,
        updates: Sequence[OptimisticUpdate],
        author: str,
        *,
        schema_follows: int,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> bool:
        """Keep what is said of pages of a cluster, and of its attributes if that changes, all or none.

        Returns False, and keeps nothing, if a page has a newer annotation than the one that is followed, or
        the cluster a newer schema. An empty example takes back what was said of its page.
        """
        now = self.clock()
        return apply_updates(self.engine, cluster, schema_follows, attributes, updates, author, now)

    def cluster_schema(self, cluster: str) -> ClusterSchema:
        """Return the declared schema of a cluster."""
        return cluster_schema(self.engine, cluster)

    def erasure_mark(self) -> tuple[int, str] | None:
        """Return a mark that changes whenever pages are removed, so that cached data can be discarded."""
        with self.engine.connect() as connection:
            return erasure_mark(connection)

    @property
    def search_index(self) -> SearchIndex:
        """The search index of pages and records."""
        return SearchIndex(self.engine)

    @property
    def page_index(self) -> PageIndex:
        """Single pages: where they are found, their versions and clusters."""
        return PageIndex(self.engine)

    @property
    def record_table(self) -> RecordTable:
        """The records that hold now, or those of a run, to be filtered, sorted and paged."""
        return RecordTable(self.engine)

    @property
    def jobs(self) -> Jobs:
        """Long work that was asked for through the server."""
        return Jobs(self.engine, self.clock)

    @property
    def run_history(self) -> RunHistory:
        """Runs and checks over time."""
        return RunHistory(self.engine, self.folder)

    @property
    def reviewing(self) -> ReviewQueue:
        """The decisions that wait for a person."""
        return ReviewQueue(self.engine, self.clock)

    @property
    def entities(self) -> Entities:
        """The things that records tell of, as they were linked last."""
        return Entities(self.engine, self.clock)

    @property
    def page_urls(self) -> PageUrls:
        """The URLs of pages, without the pages."""
        return PageUrls(self.engine)

    @property
    def accounts(self) -> Accounts:
        """The accounts of the server."""
        return Accounts(self.engine, self.clock)

    def pages_in(self, places: Iterable[VersionPlace]) -> Iterator[Page]:
        """The pages at some places, in their order."""
        return pages_at(self.packs_folder, places, self._url_at)

    def newest_blocks(self, site: str) -> list[BlockPart]:
        """Return the locations of the newest version of each page of a site, in the order of the packs."""
        return self._newest_pages(site)

    def pages_of_block(self, block: BlockPart) -> Iterator[Page]:
        """The pages in a part of a block, in its order."""
        return PackedPages(self.packs_folder, (block,)).pages(self._url_at)

    def versions(self, url: str, site: str | None = None) -> tuple[Page, ...]:
        """All versions of a page, the newest last; in the site of its URL unless another is named."""
        query = select_places_of(url, site).where(schema.versions.c.media_type == HTML)
        return tuple(self.pages_in(self._places(query)))

    def versions_at(self, addresses: Sequence[PageAddress]) -> Iterator[Page]:
        """All versions of some pages, in the order of their addresses, the newest of each last."""
        return self.pages_in(places_of_versions(self.engine, addresses))

    def validators(self, addresses: Iterable[PageAddress]) -> dict[str, Validators]:
        """Return the validators of the newest versions of pages, by URL."""
        return newest_validators(self.engine, addresses)

    def resource(self, url: str, site: str | None = None) -> Resource | None:
        """The newest stylesheet or image of a URL; in the site of its URL unless another is named."""
        query = select_places_of(url, site).where(schema.versions.c.media_type != HTML)
        documents = list(documents_at(self.packs_folder, self._places(query)))
        return _resource(documents[-1]) if documents else None

    def known_resources(self, urls: Sequence[str], site: str) -> set[str]:
        """Return the URLs of stored stylesheets or images, in the given site or in the site of the URL."""
        return stored_resources(self.engine, urls, site)

    def check(self) -> Iterator[IntegrityProblem]:
        """Read every pack and compare it with the tables."""
        return integrity_problems(self.engine, self.packs_folder)

    def links(self) -> Iterator[str]:
        """The paths of symbolic links in the folder of the workspace, which are never followed."""
        return links(self.folder, self.packs_folder)

    def _newest_pages(self, site: str | None) -> list[BlockPart]:
        """Return the locations of the newest versions of pages by block, which saves memory."""
        name = schema.sites.c.name.label("site")
        query = select_newest_pages().add_columns(name).join(schema.sites)
        if site is not None:
            query = query.where(name == site)
        query = query.order_by(schema.packs.c.id, schema.versions.c.block_offset, schema.versions.c.slot)
        with self.engine.connect() as connection:
            rows = connection.execution_options(stream_results=True).execute(query)
            return [
                BlockPart(intern(file), offset, tuple(row.slot for row in block), intern(name))
                for (file, offset, name), block in groupby(
                    rows, key=attrgetter("file", "block_offset", "site")
                )
            ]

    def _places(self, query: Select[*tuple[Any, ...]]) -> list[VersionPlace]:
        with self.engine.connect() as connection:
            return list(starmap(VersionPlace, connection.execute(query)))

    def _url_at(self, file: str, offset: int, slot: int) -> str | None:
        return document_url(self.engine, file, offset, slot)


def _undamaged(page: Page) -> Page:
    if isinstance(page, DamagedPage):
        raise DamagedBlock(page.damage)
    return page


def _resource(document: Document) -> Resource:
    return Resource(document.url, document.body, document.media_type, document.fetched_at)
