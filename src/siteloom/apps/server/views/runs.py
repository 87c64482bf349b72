"""Values shown: runs, over time."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, Field

from siteloom.apps.server.request_types import LARGEST_ID
from siteloom.core.errors import NotFound
from siteloom.core.sequences import evenly_spaced
from siteloom.extraction.extraction_counts import ExtractionCounts, PageCounts, most_first

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from siteloom.store.queries.runs import Run
    from siteloom.store.store import Store


Period = Literal["week", "month", "year", "all"]
"""How far back charts go."""

PERIODS: Mapping[Period, timedelta | None] = {
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "year": timedelta(days=366),
    "all": None,
}

POINTS_DRAWN = 60
"""Of more runs some are drawn, evenly spaced: on a phone a chart has room for a point each five pixels."""

_RUNS_COUNTED = 5_000
_Run = TypeVar("_Run")


class RunPoint(BaseModel):
    """A run of extract: what it counted."""

    run: int
    at: datetime
    status: str = Field(description="`done`; else it was cut short, and counted part of the pages.")
    pages: int | None = Field(description="Pages read; none if the run does not tell those of the site.")
    records: int
    unmatched: float | None = Field(description="Share of the pages that no wrapper is for.")
    passed_url: float | None = Field(description="How many wrappers the URL of a page leaves on average.")
    passed_signature: float | None = Field(description="How many of these its signature leaves.")
    failures: dict[str, int] = Field(description="Pages that gave no record, by reason.")
    filled: dict[str, dict[str, float]] = Field(
        description="Share of the records with a value, by wrapper and attribute."
    )


def is_cut(run_status: str) -> bool:
    """Whether a run did not come to its end."""
    return run_status not in ("done", "running")


def since(store: Store, period: Period) -> datetime | None:
    """When a period up to now begins."""
    length = PERIODS[period]
    return None if length is None else store.clock() - length


def extraction_counts(store: Store, run_ids: Sequence[int]) -> dict[int, ExtractionCounts]:
    """The counts of runs of extract, of those that counted anything."""
    totals: dict[int, ExtractionCounts] = {}
    for run_id, rows in store.run_history.tallies(run_ids):
        counts = ExtractionCounts.from_rows(rows)
        if run_id in totals:
            totals[run_id].add(counts)
        else:
            totals[run_id] = counts
    return totals


def extraction_points(
    store: Store, period: Period, site: str | None = None, wrappers: Collection[str] = ()
) -> tuple[list[RunPoint], int]:
    """Runs of extract, the oldest first, in all or on a site with its wrappers; and of how many these are."""
    runs = store.run_history.runs(["extract"], site, since(store, period), _RUNS_COUNTED)
    runs = [run for run in runs if run.status != "running"]
    drawn = thinned(runs)
    counts = extraction_counts(store, [run.id for run in drawn])
    points = [run_point(run, counts.get(run.id), site, wrappers) for run in drawn]
    return points, len(runs)


def thinned(runs: Sequence[_Run]) -> list[_Run]:
    """Some of many runs, and always the newest: it tells how things are now."""
    if len(runs) <= POINTS_DRAWN:
        return list(runs)
    return [*evenly_spaced(runs[:-1], POINTS_DRAWN - 1), runs[-1]]


def run_point(
    run: Run,
    counts: ExtractionCounts | None,
    site: str | None = None,
    wrappers: Collection[str] = (),
) -> RunPoint:
    """A run of extract by its counts, in all or on a site with its wrappers."""
    counts = counts or ExtractionCounts()
    giving = {
        name: of_wrapper for name, of_wrapper in counts.most_records() if site is None or name in wrappers
    }
    of_pages = counts.total if site is None or run.site == site else counts.sites.get(site, PageCounts())
    pages = None if of_pages == PageCounts() else of_pages.pages
    return RunPoint(
        run=run.id,
        at=run.started_at,
        status=run.status,
        pages=pages,
        records=sum(of_wrapper.records for of_wrapper in giving.values()),
        unmatched=_per(of_pages.unmatched, pages),
        passed_url=_per(of_pages.passed_url, pages),
        passed_signature=_per(of_pages.passed_signature, pages),
        failures=dict(most_first(of_pages.failures)),
        filled={
            name: {
                attribute: of_wrapper.filled[attribute] / of_wrapper.records
                for attribute in of_wrapper.attributes
            }
            for name, of_wrapper in giving.items()
        },
    )


def _per(count: int, pages: int | None) -> float | None:
    return count / pages if pages else None


Verb = Literal["extract", "cluster", "ingest", "search", "bootstrap"]
"""What takes long enough to be measured."""

RunOrder = Literal["started", "seconds", "pages", "speed", "failed"]

VERBS: tuple[Verb, ...] = ("extract", "cluster", "ingest", "search", "bootstrap")
_RUNS_READ = 2_000
_FAILURES_SHOWN = 50
_SHAPES_SHOWN = 50
# Of each verb, what together are the pages that it has read.
_PAGES: dict[str, tuple[str, ...]] = {
    "extract": ("pages",),
    "cluster": ("pages",),
    "ingest": ("new", "changed", "unchanged"),
    "search": ("added_pages",),
}
# Not for people: it only tells whether a run can be taken up again.
_HIDDEN_ARGUMENTS = frozenset({"fingerprint"})


class RunRow(BaseModel):
    """A run in numbers; those that it does not tell are none."""

    run: int
    verb: str
    site: str | None = Field(description="The only site it was for, if it was for one.")
    started_at: datetime
    ended_at: datetime | None
    status: str = Field(description="`running`, `done`, `failed`, `interrupted` or `killed`.")
    seconds: float | None = Field(
        description="From the start to the end; one that was taken up again counts from its first start."
    )
    pages: int | None
    speed: float | None = Field(description="Pages a second.")
    records: int | None
    clusters: int | None
    coverage: float | None = Field(description="Share of the pages that are in a cluster.")
    failed: int | None


class Performance(BaseModel):
    """Runs of one verb."""

    verb: Verb
    counts: dict[str, int] = Field(
        description="How many runs of each verb there are, of the site if one is named."
    )
    runs: list[RunRow] = Field(description="The oldest first; of very many, the newest.")
    median_speed: float | None = Field(description="Pages a second of those that are done.")
    median_seconds: float | None


class FilledAttribute(BaseModel):
    """How many records of a wrapper have an attribute."""

    wrapper: str
    records: int
    attribute: str
    filled: float
    withheld: int = Field(description="How many records had a text there that is no value.")


class UrlShape(BaseModel):
    """Pages that no wrapper is for, by what their URLs look like."""

    shape: str
    pages: int


class FailedPage(BaseModel):
    """A page that gave nothing, and why."""

    url: str
    reason: str
    detail: str


class CheckResult(BaseModel):
    """What a run found when it looked after a wrapper."""

    check: int
    wrapper: str
    wrapper_version: int | None
    kind: str
    is_healthy: bool
    tests: list[str] = Field(description="The tests that failed.")


class RunDetail(RunRow):
    """A run, with all that is known of it."""

    arguments: dict[str, Any]
    counts: dict[str, int]
    failures_by_reason: dict[str, int]
    failures: list[FailedPage] = Field(description="The first of them.")
    counted: RunPoint | None = Field(description="Of a run of extract, what it counted.")
    filled: list[FilledAttribute]
    unmatched: list[UrlShape] = Field(description="The most frequent shapes of URLs that no wrapper is for.")
    unmatched_shapes: int = Field(description="How many shapes there are.")
    checks: list[CheckResult]


def performance(store: Store, verb: Verb, site: str | None, period: Period) -> Performance:
    """The runs of a verb, or those of one site alone."""
    history = store.run_history
    runs = history.runs([verb], site, since(store, period), _RUNS_READ)
    rows = [_row(run) for run in runs if site is None or run.site == site]
    done = [row for row in rows if row.status == "done"]
    speeds = [row.speed for row in done if row.speed is not None]
    seconds = [row.seconds for row in done if row.seconds is not None]
    return Performance(
        verb=verb,
        counts=history.count(VERBS, site),
        runs=rows,
        median_speed=median(speeds) if speeds else None,
        median_seconds=median(seconds) if seconds else None,
    )


def in_order(rows: list[RunRow], order: RunOrder) -> list[RunRow]:
    """Runs for a table: the newest, longest, largest, slowest, or those that failed most come first."""
    newest_first = sorted(rows, key=lambda row: -row.run)
    match order:
        case "seconds":
            return sorted(newest_first, key=lambda row: -(row.seconds or 0))
        case "pages":
            return sorted(newest_first, key=lambda row: -(row.pages or 0))
        case "speed":
            return sorted(newest_first, key=lambda row: (row.speed is None, row.speed or 0))
        case "failed":
            return sorted(newest_first, key=lambda row: -(row.failed or 0))
    return newest_first


def run_detail(store: Store, run_id: int, reason: str | None = None) -> RunDetail:
    """A run; with a reason, only the failures for this one are listed."""
    history = store.run_history
    run = history.run(run_id) if 0 < run_id <= LARGEST_ID else None
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    counts = extraction_counts(store, [run.id]).get(run.id, ExtractionCounts())
    shapes = most_first(counts.unmatched_shapes)
    reasons = history.failures_by_reason([run.id]).get(run.id, Counter())
    return RunDetail(
        **_row(run).model_dump(),
        arguments={name: value for name, value in run.arguments.items() if name not in _HIDDEN_ARGUMENTS},
        counts=run.counts,
        failures_by_reason=dict(reasons.most_common()),
        failures=[
            FailedPage(url=one.url, reason=one.reason, detail=one.detail)
            for one in history.failures(run.id, _FAILURES_SHOWN, reason)
        ],
        counted=run_point(run, counts) if run.verb == "extract" else None,
        filled=[
            FilledAttribute(
                wrapper=wrapper,
                records=of_wrapper.records,
                attribute=attribute,
                filled=of_wrapper.filled[attribute] / of_wrapper.records,
                withheld=of_wrapper.withheld[attribute],
            )
            for wrapper, of_wrapper in sorted(counts.most_records())
            for attribute in of_wrapper.attributes
        ],
        unmatched=[UrlShape(shape=shape, pages=pages) for shape, pages in shapes[:_SHAPES_SHOWN]],
        unmatched_shapes=len(shapes),
        checks=[
            CheckResult(
                check=one.id,
                wrapper=one.wrapper,
                wrapper_version=one.version,
                kind=one.kind,
                is_healthy=one.is_healthy,
                tests=[change["test"] for change in one.content.get("changes", ())],
            )
            for one in history.checks_of_run(run.id)
        ],
    )


def _row(run: Run) -> RunRow:
    counts = run.counts
    known = [counts[name] for name in _PAGES.get(run.verb, ()) if name in counts]
    pages = sum(known) if known else None
    unclustered = counts.get("unclustered")
    return RunRow(
        run=run.id,
        verb=run.verb,
        site=run.site,
        started_at=run.started_at,
        ended_at=run.ended_at,
        status=run.status,
        seconds=run.seconds,
        pages=pages,
        speed=pages / run.seconds if pages and run.seconds else None,
        records=counts.get("records", counts.get("added_records")),
        clusters=counts.get("clusters"),
        coverage=1 - unclustered / pages if unclustered is not None and pages else None,
        failed=counts.get("failed"),
    )
