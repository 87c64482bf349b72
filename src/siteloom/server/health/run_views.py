"""Runs of extract over time, as values: what each counted, in all or on one site."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import BaseModel, Field

from siteloom.extraction import add_tally, counted_by_name, filled_attributes, tally_from, tally_on
from siteloom.spacing import evenly_spaced

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from siteloom.extraction import Tally
    from siteloom.store import Run, Store

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

_RUNS_READ = 5_000
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


def summed_tallies(store: Store, run_ids: Sequence[int]) -> dict[int, Tally]:
    """What each of some runs of extract counted."""
    found: dict[int, Tally] = {}
    for run_id, rows in store.run_history.tallies(run_ids):
        tally = tally_from(rows)
        if run_id in found:
            add_tally(found[run_id], tally)
        else:
            found[run_id] = tally
    return found


def extraction_points(
    store: Store, period: Period, site: str | None = None, wrappers: Collection[str] = ()
) -> tuple[list[RunPoint], int]:
    """Runs of extract, the oldest first, in all or on a site with its wrappers; and of how many these are."""
    runs = store.run_history.runs(["extract"], site, since(store, period), _RUNS_READ)
    runs = [run for run in runs if run.status != "running"]
    drawn = thinned(runs)
    tallies = summed_tallies(store, [run.id for run in drawn])
    points = [run_point(run, tallies.get(run.id, Counter()), site, wrappers) for run in drawn]
    return points, len(runs)


def thinned(runs: Sequence[_Run]) -> list[_Run]:
    """Some of many runs, and always the newest: it tells how things are now."""
    if len(runs) <= POINTS_DRAWN:
        return list(runs)
    return [*evenly_spaced(runs[:-1], POINTS_DRAWN - 1), runs[-1]]


def run_point(run: Run, tally: Tally, site: str | None = None, wrappers: Collection[str] = ()) -> RunPoint:
    """A run of extract by what it counted, in all or on a site with its wrappers."""
    of_wrappers = dict(counted_by_name(tally, "records of"))
    if site is not None:
        of_wrappers = {name: count for name, count in of_wrappers.items() if name in wrappers}
    filled: dict[str, dict[str, float]] = {name: {} for name, count in of_wrappers.items() if count}
    for wrapper, attribute, count, _ in filled_attributes(tally):
        if wrapper in filled:
            filled[wrapper][attribute] = count / of_wrappers[wrapper]
    counted = tally if site is None or run.site == site else tally_on(tally, site)
    pages = counted["pages",] if counted else None
    return RunPoint(
        run=run.id,
        at=run.started_at,
        status=run.status,
        pages=pages,
        records=sum(of_wrappers.values()),
        unmatched=_per(sum(count for key, count in counted.items() if key[0] == "unmatched"), pages),
        passed_url=_per(counted["passed url",], pages),
        passed_signature=_per(counted["passed signature",], pages),
        failures=dict(counted_by_name(counted, "failed")),
        filled=filled,
    )


def _per(count: int, pages: int | None) -> float | None:
    return count / pages if pages else None
