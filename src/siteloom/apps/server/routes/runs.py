"""Runs: how fast they are, and what came of each; as pages and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import link_maker, number, render, share
from siteloom.apps.server.request_types import not_found
from siteloom.apps.server.routes.monitoring import ChartPeriod, moment_of
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.run_charts import Chart, Series, lines, scatter
from siteloom.apps.server.views.runs import (
    PERIODS,
    VERBS,
    Performance,
    RunDetail,
    RunOrder,
    RunRow,
    Verb,
    in_order,
    performance,
    run_detail,
    thinned,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

router = APIRouter()

_ROWS_SHOWN = 200
# Up to ten hours.
_ROUND_TIMES = (1, 2, 5, 10, 20, 30, *(60 * one for one in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)))
_TITLES: dict[Verb, str] = {
    "extract": "Extraction",
    "cluster": "Clustering",
    "ingest": "Ingest",
    "search": "Search index",
    "bootstrap": "Bootstrap",
}

OfVerb = Annotated[Verb, Query(description="Which runs.")]


@router.get("/api/performance", tags=["health"], summary="How fast runs were")
def api_performance(
    request: Request,
    _: Viewer,
    verb: OfVerb = "extract",
    site: Annotated[str | None, Query(description="Only runs for this site alone.")] = None,
    period: ChartPeriod = "all",
) -> Performance:
    """The runs of a verb with time, pages, pages a second, and what came of them."""
    return performance(services_of(request).store, verb, site or None, period)


@router.get(
    "/api/runs/{run_id}", tags=["health"], summary="A run", responses=not_found("There is no such run.")
)
def api_run(
    request: Request,
    _: Viewer,
    run_id: int,
    reason: Annotated[str | None, Query(description="Only failures for this reason.")] = None,
) -> RunDetail:
    """What was asked of a run, what it counted, and the first of its failures."""
    return run_detail(services_of(request).store, run_id, reason or None)


@router.get("/performance", include_in_schema=False)
def performance_page(
    request: Request,
    visitor: Viewer,
    verb: Verb = "extract",
    site: str = "",
    period: ChartPeriod = "all",
    sort: RunOrder = "started",
) -> HTMLResponse:
    """How fast runs were."""
    found = api_performance(request, visitor, verb, site, period)
    return render(
        request,
        "performance.html",
        visitor,
        found=found,
        rows=in_order(found.runs, sort)[:_ROWS_SHOWN],
        charts=_charts(found.runs),
        titles=_TITLES,
        verbs=VERBS,
        site=site,
        sites=services_of(request).store.page_urls.sites(),
        period=period,
        periods=tuple(PERIODS),
        sort=sort,
        link=link_maker(request),
        duration=duration,
        has=lambda name: any(getattr(row, name) is not None for row in found.runs),
    )


@router.get("/runs/{run_id:int}", include_in_schema=False)
def run_page(request: Request, visitor: Viewer, run_id: int, reason: str = "") -> HTMLResponse:
    """A run."""
    run = api_run(request, visitor, run_id, reason)
    most = max(run.failures_by_reason.values(), default=1)
    return render(
        request,
        "run.html",
        visitor,
        run=run,
        reason=reason,
        titles=_TITLES,
        duration=duration,
        reasons=[
            (name, count, svg_charts.share_bar(count / most, f"{name}: {number(count)}"))
            for name, count in run.failures_by_reason.items()
        ],
        filled=[
            (one, svg_charts.share_bar(one.filled, f"{one.attribute}: {share(one.filled)} of the records"))
            for one in run.filled
        ],
    )


def _charts(rows: Sequence[RunRow]) -> list[Chart]:
    """Time and speed of runs over time, time against size, and what came of them; of many runs, some."""
    ended = [row for row in rows if row.status != "running"]
    runs = thinned(ended)
    if not runs:
        return []
    moments = [moment_of(row.run, row.started_at, row.status) for row in runs]
    pages = Series("pages", [row.pages for row in runs])
    seconds = Series("seconds", [row.seconds for row in runs])
    drawn = [
        lines("Pages a second", moments, [Series("pages a second", [row.speed for row in runs])], _few),
        lines("Time", moments, [seconds], duration, top=_round_time(seconds.values)),
        scatter("Time against size", moments, pages, seconds, number, lambda value: f"{_few(value)} s"),
        lines("Pages", moments, [pages], number),
    ]
    of_verb = {
        "Number of templates": (Series("templates", [row.clusters for row in runs]), number, None),
        "Pages in templates": (Series("in templates", [row.coverage for row in runs]), share, 1.0),
        "Records": (Series("records", [row.records for row in runs]), number, None),
        "Failures": (Series("failed", [row.failed for row in runs]), number, None),
    }
    drawn += [
        lines(title, moments, [series], words, top=top) for title, (series, words, top) in of_verb.items()
    ]
    return [chart for chart in drawn if any(text for _, texts in chart.rows for text in texts)]


def duration(seconds: float) -> str:
    """A time as people tell it: two units at most."""
    if seconds < 60:
        return f"{number(seconds, 0 if seconds >= 10 or seconds == int(seconds) else 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{number(minutes // 60)} h {minutes % 60} min" if minutes % 60 else f"{number(minutes // 60)} h"


def _round_time(seconds: Sequence[float | None]) -> float | None:
    """A time that people call round, no less than any of these; none if these are too long for that."""
    longest = max((one for one in seconds if one is not None), default=0)
    return next((one for one in _ROUND_TIMES if one >= longest), None)


def _few(value: float) -> str:
    return number(value, 0 if value >= 10 or value == int(value) else 2)
