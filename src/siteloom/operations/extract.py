"""extract: records of stored pages or sources, health check, alarm. finish: learn, then extract the site."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from siteloom.core.errors import UsageError, WrapperError
from siteloom.core.model import Change, Failure
from siteloom.core.table_files import RowWriter
from siteloom.extraction.extraction_counts import ExtractionCounts, most_first, sum_of
from siteloom.extraction.extractor import LACKING, NO_VALUES
from siteloom.extraction.output_health import output_changes
from siteloom.extraction.record_formats import RecordLayout
from siteloom.extraction.record_joining import JoinKey, join_rows
from siteloom.extraction.record_rows import FirstUrls, common_schema, flag_duplicates
from siteloom.maintenance.alarms import raise_alarm
from siteloom.operations.context import Context
from siteloom.operations.extraction_shards import (
    FolderJournal,
    Plan,
    StoreJournal,
    in_order,
    run_extraction,
    shards_of,
    source_files,
)
from siteloom.operations.learn import LearnRequest, LearnResult, learn
from siteloom.operations.request_fields import NOT_STORED, ClusterName, Site
from siteloom.operations.stored_wrappers import wrappers_of_store
from siteloom.operations.watch import change_row
from siteloom.wrappers.matching import (
    NO_TAGS,
    NO_WRAPPER_FOR_SITE,
    NO_WRAPPER_FOR_URL,
    UNLIKE,
    NamedWrapper,
)
from siteloom.wrappers.named_wrappers import untyped_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.extraction.record_rows import Row
    from siteloom.extraction.shard_extraction import ShardResult
    from siteloom.operations.extraction_shards import Journal, Stream
    from siteloom.sources.page_source import PageSource
    from siteloom.store.queries.watches_and_repairs import StoredCheck
    from siteloom.store.store import Store

# So many checks are looked through for runs in which all was well.
_MOST_CHECKS = 10_000

# These reasons say that a page has no record; all others that it could not be read.
_WITHOUT_RECORD = (NO_WRAPPER_FOR_SITE, NO_WRAPPER_FOR_URL, NO_TAGS, UNLIKE, NO_VALUES, LACKING)
_LOST_SHOWN = 20
UNREAD_SHOWN = 5
"""As many pages that could not be read show what is wrong."""


class RowSink(Protocol):
    """Where records go, such as `siteloom.extraction.record_formats.RecordFile`."""

    @property
    def file(self) -> Path | None:
        """The file that is written, if one is: the results of a run with SOURCE are kept beside it."""
        ...

    @property
    def is_new(self) -> bool:
        """Whether nothing is replaced if a run that was stopped writes the records that it has."""
        ...

    def open(self, layout: RecordLayout) -> AbstractContextManager[RowWriter]:
        """A writer of record rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractRequest:
    """What to extract, by which wrappers, and where to write it.

    Without `wrappers`, those of the workspace are used. `failures_output` opens a writer of pages without a
    record, with the columns `url`, `reason` and `detail`. With `join_key` the records of one entity become
    one. Records are written in the order of pages unless `is_ordered` is false.
    """

    site: Site | None = None
    wrappers: tuple[NamedWrapper, ...] = ()
    output: RowSink | None = None
    failures_output: Callable[[], AbstractContextManager[RowWriter]] | None = None
    join_key: JoinKey | None = None
    is_ordered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperOutput:
    """The records of one wrapper: how many have a value of each attribute, how many had it withheld."""

    name: str
    version: int | None
    records: int
    filled: Mapping[str, int]
    withheld: Mapping[str, int]

    @property
    def shares(self) -> dict[str, float]:
        """The share of records with a value of each attribute."""
        return {attribute: count / self.records for attribute, count in self.filled.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractResult:
    """The records and failures of a run in numbers.

    `records` counts them before they were joined, `joined` after that, if they were. `previous_run` is the
    run whose records these replace, and `changes` is what is unusual about the output. `alarm_problems` says
    who could not be told of it. `unread` are the first pages that could not be read.
    """

    run: int | None
    site: str | None
    pages: int
    records: int
    joined: int | None
    duplicates: int
    wrappers: tuple[WrapperOutput, ...]
    failures: Mapping[str, int]
    skipped: Mapping[str, int]
    changes: tuple[Change, ...]
    previous_run: int | None
    alarm_problems: tuple[str, ...]
    counts: ExtractionCounts = field(default_factory=ExtractionCounts, metadata=NOT_STORED)
    unread: tuple[Failure, ...] = field(default=(), metadata=NOT_STORED)

    @property
    def failed(self) -> int:
        """How many pages gave no record."""
        return sum(self.failures.values())


def extract(context: Context, request: ExtractRequest) -> ExtractResult:
    """Extract the records of the sources, or of stored pages, and compare the output with the usual one.

    Records and failures of stored pages are kept in the store. A run that was stopped goes on if it is
    requested again and nothing has changed since. It raises an alarm if the output is unusual.
    """
    store, settings = context.store, context.settings
    plan = _plan(context, request)
    output = _Output(request, plan.wrappers)
    usual = output_before(store)
    in_force = store.extractions()
    with _opened_journal(context, request, plan) as journal:
        if journal is None:
            counts = output.stream(context, plan)
        else:
            output.run(context, plan, journal, _page_count(context, request))
            counts = journal.counts
        run_id = journal.run_id if isinstance(journal, StoreJournal) else None
        changes = output_changes(
            counts,
            {named.name: named.wrapper for named in _wrappers_of(request.site, plan.wrappers)},
            usual,
            settings.change.threshold / 100,
        )
        if run_id is not None:
            keep_output_checks(store, run_id, _seen(counts, request.site, plan.wrappers), changes)
    problems = raise_alarm([change_row(change) for change in changes], settings.alarm)
    versions = {named.name: named.version for named in plan.wrappers}
    return ExtractResult(
        run=run_id,
        site=request.site,
        pages=counts.pages,
        records=counts.records,
        joined=output.written if request.join_key is not None else None,
        duplicates=output.duplicates,
        wrappers=tuple(
            WrapperOutput(
                name=name,
                version=versions.get(name),
                records=of_wrapper.records,
                filled={attribute: of_wrapper.filled[attribute] for attribute in of_wrapper.attributes},
                withheld={attribute: of_wrapper.withheld[attribute] for attribute in of_wrapper.attributes},
            )
            for name, of_wrapper in counts.most_records()
        ),
        failures=dict(most_first(counts.failures)),
        skipped=dict(most_first(counts.skipped)),
        changes=tuple(changes),
        previous_run=None if run_id is None else in_force.get(request.site, in_force.get(None)),
        alarm_problems=tuple(problems),
        counts=counts,
        unread=tuple(output.unread),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRequest:
    """The cluster whose annotations are finished."""

    cluster: ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishResult:
    """What was learned and extracted, and how many pages of the cluster have a record now.

    `lost_records` are the pages of the site that had a record in the run before and have none now, and
    `lost_urls` some of them.
    """

    learned: LearnResult
    extracted: ExtractResult
    cluster_pages: int
    pages_with_record: int
    lost_records: int
    lost_urls: tuple[str, ...]


def finish(context: Context, request: FinishRequest) -> FinishResult:
    """Learn the wrapper of a cluster, and extract its pages with all others of its site.

    A run for a site replaces the records of the runs before it, so one for the cluster alone would drop the
    records of other clusters.
    """
    learned = learn(context, LearnRequest(cluster=request.cluster))
    extracted = extract(context, ExtractRequest(site=learned.site))
    assert extracted.run is not None
    (cluster,), addresses = context.store.clusters(request.cluster)
    urls = {addresses[member].url for member in cluster.members}
    with_record = context.store.urls_with_record(extracted.run)
    lost: list[str] = []
    if extracted.previous_run is not None:
        before = context.store.urls_with_record(extracted.previous_run)
        pages = {page.url for page in context.store.page_urls.of_site(learned.site or "")}
        lost = sorted((before - with_record) & pages)
    return FinishResult(
        learned=learned,
        extracted=extracted,
        cluster_pages=len(urls),
        pages_with_record=len(urls & with_record),
        lost_records=len(lost),
        lost_urls=tuple(lost[:_LOST_SHOWN]),
    )


def is_unread(reason: str) -> bool:
    """Whether a page failed for another reason than that it is for no wrapper, or that one found nothing."""
    return reason not in _WITHOUT_RECORD


def _plan(context: Context, request: ExtractRequest) -> Plan:
    """The wrappers, ready for use, and the pages in shards."""
    tell = context.progress.message
    if request.site is not None:
        context.store.require_sites([request.site])
    wrappers = request.wrappers or wrappers_of_store(context.store, tell=tell)
    if note := untyped_note(wrappers):
        tell(note)
    check_footprints(wrappers, tell)
    shards: Sequence[PageSource | Stream]
    if context.sources:
        shards = [shard for source in context.sources for shard in shards_of(source)]
    else:
        shards = context.store.page_shards(request.site)
    return Plan(wrappers, context.settings.parse, shards)


def check_footprints(wrappers: Iterable[NamedWrapper], tell: Callable[[str], object]) -> None:
    """Say which wrappers are for no page, and raise WrapperError if all are such."""
    is_for_pages = {str(named): named.is_for_pages for named in wrappers}
    useless = [name for name, is_used in is_for_pages.items() if not is_used]
    message = f"No page can find its way to {', '.join(useless)}, for there is no footprint: learn again."
    if len(useless) == len(is_for_pages):
        raise WrapperError(message)
    if useless:
        tell(message)


def _page_count(context: Context, request: ExtractRequest) -> int | None:
    if context.sources:
        return None
    return sum(summary.pages for summary in context.store.sites() if request.site in (None, summary.name))


@contextmanager
def _opened_journal(context: Context, request: ExtractRequest, plan: Plan) -> Iterator[Journal | None]:
    """Where results are kept meanwhile: nowhere if they are only passed on."""
    if not context.sources:
        arguments = {"site": request.site, "wrappers": [named.name for named in plan.wrappers]}
        with context.store.extracting(arguments, plan.fingerprint()) as extraction:
            yield StoreJournal(context.store, extraction)
        return
    file = None if request.output is None else request.output.file
    if file is None:
        yield None
        return
    files = (path for source in context.sources for path in source_files(source))
    with FolderJournal(Path(f"{file}.parts"), plan.fingerprint(files)) as journal:
        yield journal


class _Output:
    """Writes the records and failures of a run, and notes what is to be reported about them."""

    def __init__(self, request: ExtractRequest, wrappers: Sequence[NamedWrapper]) -> None:
        self._request = request
        self._layout = _layout(wrappers, request.join_key)
        self.written = 0
        self.duplicates = 0
        self.unread: list[Failure] = []

    def run(self, context: Context, plan: Plan, journal: Journal, pages: int | None) -> None:
        """Extract all shards into a journal, and write its records in the end."""
        progress = context.progress
        is_resumed = bool(journal.done)
        if is_resumed:
            of_all = f" of {plan.shard_count:,}" if plan.shard_count is not None else ""
            progress.message(
                f"Going on with a run that was stopped: {len(journal.done):,}{of_all} shards are done."
            )
        progress.start("Extracting", pages, done=journal.counts.pages)
        is_written = self._request.output is not None or self._request.join_key is not None
        first = _FirstRows()

        def note(shard: int, result: ShardResult) -> None:
            if not (is_written or is_resumed):
                first.add(shard, result)
            progress.advance(result.counts.pages)

        try:
            run_extraction(plan, journal, context.settings.run.jobs, note)
        except KeyboardInterrupt:
            self._write_unfinished(context, journal)
            raise
        if is_written or is_resumed:
            self._write_journal(journal)
        else:
            self.duplicates = first.duplicates
            self.unread = first.unread
            self._write_failures(journal)

    def stream(self, context: Context, plan: Plan) -> ExtractionCounts:
        """Extract all shards, and write the records of each at once."""
        counts = ExtractionCounts()
        context.progress.start("Extracting")
        with (
            self._writing_failures() as write_failure,
            closing(plan.results(context.settings.run.jobs)) as results,
        ):

            def rows() -> Iterator[Row]:
                unordered = (result for _, result in results)
                for result in in_order(results) if self._request.is_ordered else unordered:
                    counts.add(result.counts)
                    context.progress.advance(result.counts.pages)
                    for failure in result.failures:
                        write_failure(failure)
                    yield from (json.loads(row.content) for row in result.rows)

            self._write_records(rows())
        return counts

    def _write_unfinished(self, context: Context, journal: Journal) -> None:
        """Write the records that there are, but never in the place of others."""
        output = self._request.output
        if not journal.done or output is None or not output.is_new:
            context.progress.message("The same command goes on where this one was stopped.")
            return
        self._write_journal(journal)
        context.progress.message(f"{output.file} has the records found so far; the same command goes on.")

    def _write_journal(self, journal: Journal) -> None:
        self._write_records(map(json.loads, journal.lines()))
        self.unread = list(
            islice((failure for failure in journal.failures() if is_unread(failure.reason)), UNREAD_SHOWN)
        )
        self._write_failures(journal)

    def _write_records(self, rows: Iterable[Row]) -> None:
        if self._request.join_key is not None:
            rows = join_rows(rows, self._request.join_key)
        output = self._request.output
        with nullcontext(_NullWriter()) if output is None else output.open(self._layout) as records:
            for row in flag_duplicates(rows):
                self.written += 1
                self.duplicates += row["duplicate_of"] is not None
                records.write(row)

    def _write_failures(self, journal: Journal) -> None:
        if self._request.failures_output is not None:
            with self._request.failures_output() as writer:
                for failure in journal.failures():
                    writer.write(_failure_row(failure))

    @contextmanager
    def _writing_failures(self) -> Iterator[Callable[[Failure], None]]:
        opening = self._request.failures_output
        with nullcontext(_NullWriter()) if opening is None else opening() as writer:

            def write(failure: Failure) -> None:
                if len(self.unread) < UNREAD_SHOWN and is_unread(failure.reason):
                    self.unread.append(failure)
                writer.write(_failure_row(failure))

            yield write


class _FirstRows:
    """Counts records that repeat another, and keeps the first unread pages, of shards in any order."""

    def __init__(self) -> None:
        self._first_urls = FirstUrls()
        self._early: dict[int, tuple[list[tuple[bytes | None, str]], list[Failure]]] = {}
        self._turn = 0
        self.duplicates = 0
        self.unread: list[Failure] = []

    def add(self, shard: int, result: ShardResult) -> None:
        """Take a shard; only digests are held until it is its turn."""
        digests = [(row.digest, row.url) for row in result.rows]
        unread = (failure for failure in result.failures if is_unread(failure.reason))
        self._early[shard] = digests, list(islice(unread, UNREAD_SHOWN))
        while self._turn in self._early:
            digests, failures = self._early.pop(self._turn)
            self.duplicates += sum(
                self._first_urls.repeated(digest, url) is not None for digest, url in digests
            )
            self.unread += failures[: UNREAD_SHOWN - len(self.unread)]
            self._turn += 1


class _NullWriter:
    """Drops rows."""

    def write(self, row: Mapping[str, object]) -> None:
        """Drop a row."""


def _failure_row(failure: Failure) -> dict[str, object]:
    return {"url": failure.url, "reason": failure.reason, "detail": failure.detail}


def _layout(wrappers: Sequence[NamedWrapper], key: JoinKey | None) -> RecordLayout:
    """The columns of the records of wrappers; UsageError if they cannot be joined by the key."""
    attributes = list(dict.fromkeys(name for named in wrappers for name in named.wrapper.attributes))
    if key is not None and key.attribute is not None and key.attribute not in attributes:
        raise UsageError(
            f"No wrapper has the attribute {key.attribute} to join by: there are {', '.join(attributes)}; "
            "a pattern of URLs needs a group in parentheses."
        )
    if (
        key is not None
        and key.url_pattern is not None
        and any(named.wrapper.record_rule for named in wrappers)
    ):
        raise UsageError(
            "Records of a list have the same URL: join them by an attribute instead of a URL pattern."
        )
    schema = common_schema(
        {name: rules.attribute for name, rules in layout.attributes.items()}
        for named in wrappers
        for layout in named.wrapper.layouts
    )
    lists = frozenset(
        named.name
        for named in wrappers
        if any(layout.record_rule is not None for layout in named.wrapper.layouts)
    )
    return RecordLayout(attributes, schema, lists, with_pages=key is not None)


def output_before(store: Store) -> ExtractionCounts | None:
    """The counts of earlier runs whose output was healthy, to compare the next one with.

    Of each wrapper and of each site the last run counts in whose output nothing was wrong with it: else
    what was lost once would not be missed the next time.
    """
    checks: dict[int, list[StoredCheck]] = defaultdict(list)  # the newest run first
    for check in store.checks(limit=_MOST_CHECKS):
        if check.kind == "output":
            checks[check.run_id].append(check)
    if not checks:
        last = store.last_extract_run()
        return None if last is None else _counts_of_run(store, last)
    total = ExtractionCounts()
    missing = {check.wrapper for of_run in checks.values() for check in of_run}
    for run_id, of_run in checks.items():
        if not missing:
            break
        healthy = {check.wrapper for check in of_run if check.is_healthy} & missing
        ill = {change["wrapper"] for check in of_run for change in check.content["changes"]}
        counts = _counts_of_run(store, run_id)
        for name in healthy & counts.wrappers.keys():
            total.wrappers[name].add(counts.wrappers[name])
        for site in counts.site_pages.keys() - ill - total.site_pages.keys():
            total.site_pages[site] = counts.site_pages[site]
            total.fruitless[site] = counts.fruitless[site]
        missing -= healthy
    return total


def _counts_of_run(store: Store, run_id: int) -> ExtractionCounts:
    return sum_of(ExtractionCounts.from_rows(summary["tally"]) for summary in store.shard_summaries(run_id))


def keep_output_checks(
    store: Store, run_id: int, wrappers: Iterable[NamedWrapper], changes: Sequence[Change]
) -> None:
    """Keep how healthy the output of each wrapper was; changes of a site count for all of its wrappers."""
    for named in wrappers:
        sites = named.wrapper.footprint.sites
        rows = [change_row(change) for change in changes if change.wrapper in (named.name, *sites)]
        store.save_check(run_id, named.name, named.version, "output", not rows, {"changes": rows})


def _wrappers_of(site: str | None, wrappers: Iterable[NamedWrapper]) -> list[NamedWrapper]:
    """The wrappers that a run for a site says something about: those for no other site."""
    return [named for named in wrappers if site is None or {site}.issuperset(named.sites)]


def _seen(counts: ExtractionCounts, site: str | None, wrappers: Iterable[NamedWrapper]) -> list[NamedWrapper]:
    """The wrappers of which a run has read pages: of others it has shown nothing."""
    return [
        named
        for named in _wrappers_of(site, wrappers)
        if any(counts.site_pages[name] for name in named.wrapper.footprint.sites)
    ]
