"""An open store: what is in it, and the pages themselves."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby, starmap
from operator import attrgetter
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Row, func, select

from siteloom.errors import PackError
from siteloom.model import Example, Failure, Resource
from siteloom.store import schema
from siteloom.store.accounts import Accounts
from siteloom.store.amendments import Amendment, amend
from siteloom.store.annotations import (
    annotated_pages,
    annotations_of,
    is_annotated,
    newest_annotation_id,
    newest_annotations,
    save_annotation,
    save_annotations,
)
from siteloom.store.carried_schemas import carry_schemas
from siteloom.store.changes import (
    all_watches,
    latest_checks,
    latest_repairs,
    newest_checks,
    newest_outcomes,
    save_check,
    save_repair,
    save_watch,
    settle_repair,
    watch_of,
    watched_versions,
    wrappers_in_repair,
)
from siteloom.store.cluster_schemas import ClusterSchema, cluster_schema
from siteloom.store.cluster_summaries import cluster_summaries
from siteloom.store.clusters import (
    PageAddress,
    clusters_called,
    latest_clusters,
    latest_templates,
    save_clusters,
)
from siteloom.store.entities import Entities
from siteloom.store.growth import GrownSite, accept_grown_site, grown_sites, save_grown_site
from siteloom.store.jobs import Jobs
from siteloom.store.keys import content_hash
from siteloom.store.lock import is_locked, verb_lock, write_lock
from siteloom.store.packs import Document, Pack, pack_path
from siteloom.store.page_index import PageIndex
from siteloom.store.page_urls import PageUrls
from siteloom.store.reading import (
    BlockPart,
    PackedPages,
    Place,
    as_page,
    documents_at,
    is_page,
    known_resources,
    newest_places,
    packed_shards,
    page_address,
    page_ids,
    places_of_versions,
    select_newest_pages,
    select_places_of,
)
from siteloom.store.record_table import RecordTable
from siteloom.store.records import (
    extraction_run,
    extractions_in_force,
    newest_extraction,
    records_as_of,
    records_in_force,
    records_of_run,
    records_of_url,
    shard_summaries,
    wrappers_of_urls,
)
from siteloom.store.reviewing import Reviewing, carry_dismissals
from siteloom.store.run_history import RunHistory
from siteloom.store.runs import RunRecorder, forgetting_mark, recorded_run
from siteloom.store.search_index import SearchIndex
from siteloom.store.seeds import add_seeds, seed_sources, stored_seeds, withdraw_seeds
from siteloom.store.segments import add_segments, counted_segments, uncounted_versions
from siteloom.store.validators import newest_validators
from siteloom.store.wiping import is_unfinished, remove_unknown_packs
from siteloom.store.wrappers import (
    is_in_force,
    newest_wrappers,
    save_wrapper,
    wrapper_version,
    wrapper_versions,
)
from siteloom.store.writer import HTML, PageWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection, Engine, Select

    from siteloom.model import Attribute, Cluster, Page, Seed, Template, Validators
    from siteloom.store.annotations import Annotation
    from siteloom.store.changes import NewVersion, PastCheck, StoredCheck, StoredRepair, StoredWatch
    from siteloom.store.cluster_summaries import ClusterSummary
    from siteloom.store.growth import GrownState
    from siteloom.store.records import Extraction, StoredRecord
    from siteloom.store.runs import Run
    from siteloom.store.seeds import SeedCounts, SeedSource
    from siteloom.store.segments import CountedSegments, UncountedVersion
    from siteloom.store.wrappers import StoredWrapper
    from siteloom.template import SegmentCounts

PACKS_FOLDER = "packs"


class Site(NamedTuple):
    """A site in numbers.

    `pages` and `versions` are those of HTML documents; the bytes, before and
    after packing, are those of all versions of all documents. `annotated` is
    how many of the pages have an annotation.
    """

    name: str
    pages: int
    versions: int
    bytes: int
    packed_bytes: int
    annotated: int
    wrappers: int


class Problem(NamedTuple):
    """Something in the store that is not as it should be."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. `backup` says where the state before an upgrade is, if opening needed one.

    With `on_busy`, whatever writes waits for another process that does, and calls it now and then meanwhile.
    """

    folder: Path
    engine: Engine
    clock: Callable[[], datetime]
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
        """The same for pages that come slowly, from the web: others can write meanwhile, but for moments.

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
                carry_schemas(connection, run.id, self.clock())
                carry_dismissals(connection, run.id, self.clock())

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

    def sites(self) -> tuple[Site, ...]:
        """All sites by name."""
        is_page = schema.versions.c.media_type == HTML
        documents = (
            select(
                schema.urls.c.site_id,
                func.count(schema.urls.c.id.distinct()).filter(is_page).label("pages"),
                func.count().filter(is_page).label("versions"),
                func.sum(schema.versions.c.size).label("bytes"),
            )
            .join(schema.versions)
            .group_by(schema.urls.c.site_id)
            .subquery()
        )
        packed = (
            select(schema.packs.c.site_id, func.sum(schema.packs.c.committed_bytes).label("bytes"))
            .group_by(schema.packs.c.site_id)
            .subquery()
        )
        annotated = (
            select(func.count())
            .select_from(schema.urls)
            .where(schema.urls.c.site_id == schema.sites.c.id, is_annotated())
        )
        wrappers = select(func.count()).where(
            schema.wrappers.c.site == schema.sites.c.name, is_in_force(schema.wrappers)
        )
        query = (
            select(
                schema.sites.c.name,
                documents.c.pages,
                documents.c.versions,
                documents.c.bytes,
                packed.c.bytes,
                annotated.scalar_subquery(),
                wrappers.scalar_subquery(),
            )
            .outerjoin(documents, documents.c.site_id == schema.sites.c.id)
            .outerjoin(packed, packed.c.site_id == schema.sites.c.id)
            .order_by(schema.sites.c.name)
        )
        return tuple(
            Site(name, *(int(number or 0) for number in numbers)) for name, *numbers in self._rows(query)
        )

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

        They are those that were the newest when the first one was asked for,
        whatever another process writes meanwhile.
        """
        yield from PackedPages(self.packs_folder, tuple(self._newest_pages(site))).read()

    def page_shards(self, site: str | None = None) -> list[PackedPages]:
        """The same pages in parts, to be read by other processes."""
        return list(packed_shards(self.packs_folder, self._newest_pages(site)))

    def page(self, address: PageAddress) -> Page:
        """The newest version of one page."""
        (page,) = self.pages_at([address])
        return page

    def pages_at(self, addresses: Sequence[PageAddress], *, skips_missing: bool = False) -> Iterator[Page]:
        """The newest versions of some pages, in the order of their addresses.

        Pages that stand together in the packs are read together, some hundreds
        at a time, whatever their order here. One that is not stored is an error, or left out.
        """
        places = newest_places(self.engine, addresses, skips_missing=skips_missing)
        return map(as_page, documents_at(self.packs_folder, places))

    def page_ids(self, addresses: Sequence[PageAddress]) -> list[int]:
        """The numbers by which some pages can be asked for, in the order of their addresses."""
        return page_ids(self.engine, addresses)

    def newest_places(self, addresses: Sequence[PageAddress]) -> list[Place]:
        """Where the newest versions of pages stand, by which one version is told from another."""
        return list(newest_places(self.engine, addresses))

    def page_by_id(self, page_id: int) -> tuple[PageAddress, Page] | None:
        """Where the page of a number is, and its newest version; None if there is no such page."""
        found = page_address(self.engine, page_id)
        if found is None:
            return None
        address = PageAddress(*found)
        return next(((address, page) for page in self.pages_at([address], skips_missing=True)), None)

    def save_clusters(self, run_id: int, clusters: Sequence[Cluster], pages: Sequence[PageAddress]) -> None:
        """Keep the clusters of a run; their members are indices into `pages`."""
        save_clusters(self.engine, run_id, clusters, pages)

    def clusters(self, name: str | None = None) -> tuple[tuple[Cluster, ...], tuple[PageAddress, ...]]:
        """The clusters that were found last, or one of them, and the pages that members are indices of."""
        return latest_clusters(self.engine, name)

    def cluster_summaries(self, site: str | None = None) -> list[ClusterSummary]:
        """The clusters that were found last, or those of a site, in numbers; their pages are not read."""
        return cluster_summaries(self.engine, site)

    def templates(self, site: str, cluster: str | None = None) -> dict[str, Template]:
        """The templates of the clusters of a site, or that of one of them, by the clusters' names."""
        return latest_templates(self.engine, site, cluster)

    def page_count(self, site: str) -> int:
        """How many pages there are of a site."""
        query = select(func.count()).select_from(schema.urls).join(schema.sites)
        with self.engine.connect() as connection:
            found = connection.execute(query.where(schema.sites.c.name == site, is_page()))
            return int(found.scalar_one())

    def cluster_edition(self, name: str) -> int | None:
        """A number that is another when the cluster of a name was found anew; None if there is none."""
        with self.engine.connect() as connection:
            return max(clusters_called(connection, name), default=None)

    def has_cluster(self, name: str) -> bool:
        """Whether there is a cluster of a name among those that were found last."""
        with self.engine.connect() as connection:
            return bool(clusters_called(connection, name))

    def save_example(
        self, address: PageAddress, example: Example, author: str = "", at: datetime | None = None
    ) -> None:
        """Keep an example as an annotation of its page, made now unless a time is given.

        The page must be in the store with the bytes that it has in the example.
        Older annotations of the page are kept too, but the newest holds.
        """
        save_annotation(self.engine, address, example, author, at or self.clock())

    def save_examples(self, examples: Sequence[tuple[PageAddress, Example]], author: str = "") -> None:
        """Keep examples as annotations of their pages, all or none.

        What was said last of a page, by the same author and of the same version, is not said twice.
        """
        save_annotations(self.engine, examples, author, self.clock())

    def examples(self, site: str | None = None) -> list[Example]:
        """The newest annotation of every page, or of one site's; the page annotated first comes first.

        Their pages are as they were when they were annotated.
        """
        found = newest_annotations(self.engine, site)
        documents = documents_at(self.packs_folder, (annotation.place for annotation in found))
        return [
            Example(
                as_page(document),
                annotation.example["values"],
                tuple(annotation.example["records"]),
                annotation.example["nodes"],
                tuple(annotation.example.get("record_nodes", ())),  # older annotations have none
            )
            for annotation, document in zip(found, documents, strict=True)
        ]

    def amend(
        self,
        cluster: str,
        amendments: Sequence[Amendment],
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
        return amend(self.engine, cluster, schema_follows, attributes, amendments, author, now)

    def annotations(self, page_ids: Sequence[int]) -> list[Annotation]:
        """All annotations of the pages of some numbers, the oldest first."""
        return annotations_of(self.engine, page_ids)

    def newest_annotation(self, page_ids: Sequence[int]) -> int:
        """The id of the newest annotation of the pages of some numbers; 0 if there is none."""
        return newest_annotation_id(self.engine, page_ids)

    def cluster_schema(self, cluster: str) -> ClusterSchema:
        """What people said of the attributes of a cluster's pages."""
        return cluster_schema(self.engine, cluster)

    def annotated_pages(self) -> list[PageAddress]:
        """The addresses of all pages that have an annotation; no page is read for it."""
        return annotated_pages(self.engine)

    def save_wrapper(self, name: str, site: str, text: str, origin: str, note: str = "") -> int:
        """Keep the JSON of a wrapper as the next version under its name; returns that version's number.

        `origin` says what made it: `learn`, or what put it in the place of the version before.
        """
        return save_wrapper(self.engine, name, site, text, at=self.clock(), origin=origin, note=note)

    def wrapper(self, name: str, version: int | None = None) -> StoredWrapper:
        """A version of a wrapper, the newest unless one is named."""
        return wrapper_version(self.engine, name, version)

    def wrappers(self) -> list[StoredWrapper]:
        """The newest version of each wrapper, by site and name."""
        return newest_wrappers(self.engine)

    def wrapper_versions(self, name: str) -> list[StoredWrapper]:
        """All versions of a wrapper, the newest last."""
        return wrapper_versions(self.engine, name)

    def records(self, run_id: int | None = None) -> Iterator[str]:
        """The JSON of all records of a run, by default of the newest run of extract that came to a good end.

        They come in the order of the pages, read from the tables a few at a
        time. A run that is named may be one that has not ended, and gives all that it found;
        else records of wrappers that are out of force by now are left out.
        """
        return records_of_run(self.engine, run_id)

    def records_in_force(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The records that hold now, each with its site: for each site, those of the newest run for it."""
        return records_in_force(self.engine)

    def records_of(self, url: str) -> list[StoredRecord]:
        """What each run of extract found at a URL, the newest run first, even if it was cut short."""
        return records_of_url(self.engine, url)

    def records_as_of(
        self,
        wrapper: str,
        before: datetime,
        versions: Collection[int] | None = None,
        most_pages: int | None = None,
    ) -> Iterator[str]:
        """The JSON of the records of a wrapper, of any of its versions or of some, as they were at a time.

        They are those of the newest run of extract that came to a good end and has any,
        among those begun up to that time; none if there is no such run. If they are of
        more pages than wanted, they are those of some evenly spaced ones.
        """
        return records_as_of(self.engine, wrapper, before, versions, most_pages)

    def shard_summaries(self, run_id: int) -> list[Mapping[str, Any]]:
        """The summaries of all shards that a run of extract is done with."""
        return shard_summaries(self.engine, run_id)

    def extractions(self) -> dict[str | None, int]:
        """The run of extract that holds for each site that has one of its own, under None for all others."""
        with self.engine.connect() as connection:
            return extractions_in_force(connection)

    def wrappers_of(self, urls: Sequence[str]) -> dict[str, str]:
        """The name of the wrapper that gave the newest record of each URL, of those that have one."""
        return wrappers_of_urls(self.engine, urls)

    def forgetting_mark(self) -> tuple[int, str] | None:
        """What is another whenever pages were removed, so that no one goes on with what was read before."""
        with self.engine.connect() as connection:
            return forgetting_mark(connection)

    def last_extract_run(self) -> int | None:
        """The id of the newest run of extract that came to a good end, if there is one."""
        return newest_extraction(self.engine)

    @property
    def search_index(self) -> SearchIndex:
        """What pages and records are searched by."""
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
    def reviewing(self) -> Reviewing:
        """What waits for a person."""
        return Reviewing(self.engine, self.clock)

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
        """Who may sign in to the server."""
        return Accounts(self.engine, self.clock)

    def save_watch(self, wrapper: str, site: str, version: int | None, text: str) -> None:
        """Keep the JSON of what is watched of a wrapper's pages in the place of what was watched before."""
        save_watch(self.engine, wrapper, site, version, text, at=self.clock())

    def watches(self) -> list[StoredWatch]:
        """What is watched, by the names of the wrappers."""
        return all_watches(self.engine)

    def watched(self) -> dict[str, int | None]:
        """The wrappers that are watched, by name, each with the version that it is watched with."""
        return watched_versions(self.engine)

    def watch(self, wrapper: str) -> StoredWatch | None:
        """What is watched of a wrapper's pages, if anything is."""
        return watch_of(self.engine, wrapper)

    def save_check(
        self,
        run_id: int,
        wrapper: str,
        version: int | None,
        kind: str,
        is_healthy: bool,
        content: Mapping[str, object],
    ) -> None:
        """Keep what a run found when it looked after a wrapper, at its `bellwethers` or at its `output`."""
        now = self.clock()
        save_check(
            self.engine, run_id, wrapper, version, kind, is_healthy=is_healthy, content=content, at=now
        )

    def newest_checks(self, wrapper: str | None = None) -> list[StoredCheck]:
        """The newest check of each kind of each wrapper, or of one."""
        return newest_checks(self.engine, wrapper)

    def checks(self, wrapper: str | None = None, limit: int | None = None) -> list[StoredCheck]:
        """All checks or those of one wrapper, the newest first; no more than the limit, if there is one."""
        return latest_checks(self.engine, wrapper, limit)

    def newest_outcomes(self) -> list[PastCheck]:
        """What came of the newest check of each kind of each wrapper."""
        return newest_outcomes(self.engine)

    def wrappers_in_repair(self) -> set[str]:
        """The names of the wrappers of which a repair waits for a person."""
        return wrappers_in_repair(self.engine)

    def save_repair(
        self,
        run_id: int,
        wrapper: str,
        version_before: int,
        version_after: int | None,
        outcome: str,
        state: str,
        confidence: float,
        text: str | None,
        content: Mapping[str, object],
        new_version: NewVersion | None = None,
    ) -> int:
        """Keep what became of a wrapper whose site had changed; returns the id of the repair.

        Older repairs of the wrapper that still wait for a person are superseded.
        What outcomes and states there are, StoredRepair says. A version that it puts in force is kept with
        it, both or neither.
        """
        return save_repair(
            self.engine,
            run_id,
            wrapper,
            version_before,
            version_after,
            outcome=outcome,
            state=state,
            confidence=confidence,
            text=text,
            content=content,
            at=self.clock(),
            new_version=new_version,
        )

    def repairs(self, wrapper: str | None = None) -> list[StoredRepair]:
        """All repairs or those of one wrapper, the newest first."""
        return latest_repairs(self.engine, wrapper)

    def settle_repair(self, repair_id: int, state: str, version_after: int | None = None) -> None:
        """Put an end to the waiting of a repair: `applied`, with the version it became, or another state."""
        settle_repair(self.engine, repair_id, state, version_after)

    def add_seeds(self, run_id: int, seeds: Iterable[Seed]) -> SeedCounts:
        """Keep seeds that were given beside those that there are.

        One that has source, page and values of another is taken for that one, with the confidence it has now.
        """
        return add_seeds(self.engine, run_id, seeds, at=self.clock(), is_grown=False)

    def replace_seeds(
        self, run_id: int, seeds: Iterable[Seed], sources: Collection[str] = (), *, is_grown: bool = False
    ) -> SeedCounts:
        """Keep seeds in the place of all that their sources, and those that are named, had before.

        Those that were given take the place of such, and those that growth found on a site of theirs. They
        are read as they are written, batch by batch. What is outdated is removed in the end, so that
        an error or a kill half way loses nothing, and doing it all again leaves nothing double.
        """
        now = self.clock()
        return add_seeds(self.engine, run_id, seeds, at=now, is_grown=is_grown, replaced=sources)

    def seeds(
        self, sources: Collection[str] | None = None, *, is_grown: bool | None = None
    ) -> Iterator[Seed]:
        """All seeds or those of some sources, in the order they came, read a few at a time.

        They may be those that were given, or those that growth found, on sites that are wrapped now.
        """
        return stored_seeds(self.engine, sources, is_grown=is_grown)

    def seed_sources(self) -> list[SeedSource]:
        """All sources of seeds by name, in numbers; every seed is read for it."""
        return seed_sources(self.engine)

    def withdraw_seeds(self, source: str) -> int:
        """Remove all seeds that were given of a source; returns how many there were.

        What growth found is taken back with all that came of it, by `siteloom.growing.withdraw`.
        """
        return withdraw_seeds(self.engine, source)

    def save_grown_site(
        self,
        site: str,
        state: GrownState,
        round_number: int,
        tried_seeds: int,
        wrapper: str | None = None,
        version: int | None = None,
        content: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what became of a site that was to be wrapped from seeds, and nothing of earlier rounds."""
        now = self.clock()
        grown = GrownSite(site, state, round_number, tried_seeds, wrapper, version, dict(content or {}), now)
        save_grown_site(self.engine, grown)

    def grown_sites(self) -> list[GrownSite]:
        """What became of each site that was to be wrapped from seeds, by name."""
        return grown_sites(self.engine)

    def accept_grown_site(self, site: str, author: str, version: int | None = None) -> bool:
        """Write down who has looked at a site that was wrapped and found it right; False if there is none.

        If they have looked at a version of its wrapper, only that one is meant.
        """
        return accept_grown_site(self.engine, site, version, author, self.clock())

    def counted_segments(self, site: str) -> CountedSegments:
        """The segment table of a site, and up to which version of any page it has counted."""
        return counted_segments(self.engine, site)

    def uncounted_versions(self, site: str, counted_to: int, limit: int) -> list[UncountedVersion]:
        """The first versions of a site's pages that its segment table has not counted, in their order."""
        return uncounted_versions(self.engine, site, counted_to, limit)

    def add_segments(
        self, site: str, later: SegmentCounts, *, counted: CountedSegments, counted_to: int
    ) -> bool:
        """Add to the segment table of a site the counts of the versions that follow on those counted.

        Returns False, and adds nothing, if another process did meanwhile.
        """
        return add_segments(self.engine, site, later, counted=counted, counted_to=counted_to)

    def pages_in(self, places: Iterable[Place]) -> Iterator[Page]:
        """The pages at some places, in their order."""
        return map(as_page, documents_at(self.packs_folder, places))

    def newest_blocks(self, site: str) -> list[BlockPart]:
        """Where the newest version of each page of a site stands, in the order of the packs."""
        return self._newest_pages(site)

    def pages_of_block(self, block: BlockPart) -> Iterator[Page]:
        """The pages in a part of a block, in its order."""
        return PackedPages(self.packs_folder, (block,)).read()

    def versions(self, url: str, site: str | None = None) -> tuple[Page, ...]:
        """All versions of a page, the newest last; in the site of its URL unless another is named."""
        query = select_places_of(url, site).where(schema.versions.c.media_type == HTML)
        return tuple(map(as_page, self._documents(query)))

    def versions_at(self, addresses: Sequence[PageAddress]) -> Iterator[Page]:
        """All versions of some pages, in the order of their addresses, the newest of each last."""
        return map(as_page, documents_at(self.packs_folder, places_of_versions(self.engine, addresses)))

    def validators(self, addresses: Iterable[PageAddress]) -> dict[str, Validators]:
        """What to ask by whether pages have changed since their newest versions, by URL."""
        return newest_validators(self.engine, addresses)

    def resource(self, url: str, site: str | None = None) -> Resource | None:
        """The newest stylesheet or image of a URL; in the site of its URL unless another is named."""
        query = select_places_of(url, site).where(schema.versions.c.media_type != HTML)
        documents = self._documents(query)
        return _resource(documents[-1]) if documents else None

    def known_resources(self, urls: Sequence[str], site: str) -> set[str]:
        """Those of some URLs that are of stylesheets or images in a site, or in the site of the URL."""
        return known_resources(self.engine, urls, site)

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
            # Others may have been written since the length of the pack was read.
            .where(columns.block_offset < committed)
        )
        expected = {(row[0], row[1]): (row[2], row[3]) for row in self._rows(query)}
        with closing(Pack(pack_path(self.packs_folder, file))) as pack:
            for offset, documents in pack.blocks(committed):
                for slot, document in enumerate(documents):
                    found = (document.url, content_hash(document.media_type, document.body))
                    if expected.pop((offset, slot), None) != found:
                        yield Problem(file, f"{document.url} is not what the tables say.")
        if expected:
            yield Problem(file, f"{len(expected)} versions of pages are missing.")

    def _newest_pages(self, site: str | None) -> list[BlockPart]:
        """Where the newest version of each page stands; by blocks, so that a million take little room."""
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

    def _documents(self, query: Select[*tuple[Any, ...]]) -> list[Document]:
        return list(documents_at(self.packs_folder, starmap(Place, self._rows(query))))

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

    def shards(self) -> Sequence[PackedPages]:
        """The same pages in parts that can be read apart."""
        return self.store.page_shards(self.site)


def _resource(document: Document) -> Resource:
    return Resource(document.url, document.body, document.media_type, document.fetched_at)
