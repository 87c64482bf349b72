"""The health of sites: what is wrong now, what was, and charts over time; and the same as JSON."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from siteloom.apps.server.html_rendering import link_maker, number, render, share
from siteloom.apps.server.request_types import not_found
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.svg_charts import health_line
from siteloom.apps.server.views.monitoring import (
    Alarms,
    Monitoring,
    OverTime,
    SiteHealth,
    alarm_history,
    monitoring,
    site_health,
)
from siteloom.apps.server.views.run_charts import Chart, Moment, Series, lines, stacked
from siteloom.apps.server.views.runs import PERIODS, Period, RunPoint, is_cut
from siteloom.apps.server.views.sites import HealthPoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

router = APIRouter()

_ALARMS_ON_A_PAGE = 20
_MOST_ALARMS = 100
# More colours cannot be told apart.
_REASONS_DRAWN = 6
_OTHER_REASONS = "other reasons"
# Of all sites together only those attributes are drawn that lost this much of their best share.
_WORTH_DRAWING = 0.05
_ATTRIBUTES_DRAWN = 8

ChartPeriod = Annotated[Period, Query(description="How far back in time.")]
OfSite = Annotated[str | None, Query(description="Only those of this site.")]
OfWrapper = Annotated[str | None, Query(description="Only those of this wrapper.")]
OnlyOpen = Annotated[bool, Query(alias="open", description="Only what is still wrong.")]


@router.get("/api/monitoring", tags=["health"], summary="How all sites do")
def api_monitoring(request: Request, _: Viewer, period: ChartPeriod = "all") -> Monitoring:
    """All sites at a glance, the worst first; what is wrong now; and what runs counted over time."""
    return monitoring(services_of(request).store, period)


@router.get(
    "/api/sites/{site:path}/health", tags=["health"], summary="How a site does", responses=not_found()
)
def api_site_health(request: Request, _: Viewer, site: str, period: ChartPeriod = "all") -> SiteHealth:
    """What is wrong with a site now, with evidence, and what runs counted on it over time."""
    return site_health(services_of(request).store, site, period)


@router.get("/api/alarms", tags=["health"], summary="What checks found wrong")
def api_alarms(
    request: Request,
    _: Viewer,
    site: OfSite = None,
    wrapper: OfWrapper = None,
    only_open: OnlyOpen = False,
    offset: Annotated[int, Query(ge=0, description="How many to pass over.")] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ALARMS, description="How many to give.")] = _ALARMS_ON_A_PAGE,
) -> Alarms:
    """The alarms there were, the newest first, each with what was seen and what became of it."""
    return alarm_history(
        services_of(request).store,
        site or None,
        wrapper or None,
        only_open=only_open,
        offset=offset,
        limit=limit,
    )


@router.get("/monitoring", include_in_schema=False)
def monitoring_page(request: Request, visitor: Viewer, period: Period = "all") -> HTMLResponse:
    """The health of all sites."""
    found = api_monitoring(request, visitor, period)
    return render(
        request,
        "monitoring.html",
        visitor,
        monitoring=found,
        sites=[(one, health_line(one.checks)) for one in found.sites],
        broken=sum(one.health == "broken" for one in found.sites),
        over_time=_over_time(request, found.over_time, period, _fallen(found.over_time.runs)),
    )


@router.get("/monitoring/alarms", include_in_schema=False)
def alarms_page(
    request: Request,
    visitor: Viewer,
    site: str = "",
    wrapper: str = "",
    only_open: OnlyOpen = False,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> HTMLResponse:
    """The alarms there were."""
    store = services_of(request).store
    found = api_alarms(request, visitor, site, wrapper, only_open, offset)
    wrappers = store.wrappers()
    return render(
        request,
        "alarms.html",
        visitor,
        found=found,
        site=site,
        wrapper=wrapper,
        only_open=only_open,
        offset=offset,
        most=_ALARMS_ON_A_PAGE,
        page=-(-offset // _ALARMS_ON_A_PAGE) + 1,
        pages=-(-found.count // _ALARMS_ON_A_PAGE),
        sites=sorted({one.site for one in wrappers}),
        names=[one.name for one in wrappers if site in ("", one.site)],
        link=link_maker(request),
    )


@router.get("/sites/{site:path}/health", include_in_schema=False)
def site_health_page(request: Request, visitor: Viewer, site: str, period: Period = "all") -> HTMLResponse:
    """The health of a site."""
    found = api_site_health(request, visitor, site, period)
    return render(
        request,
        "site_health.html",
        visitor,
        health=found,
        health_line=health_line(found.checks),
        over_time=_over_time(request, found.over_time, period, _filled(found.over_time.runs)),
    )


class _OverTime(NamedTuple):
    """What the section of a page about a period is made of."""

    numbers: OverTime
    charts: list[Chart]
    checks: list[Chart]
    filled: list[tuple[str, list[Chart]]]
    period: Period
    link: Callable[..., str]
    periods: tuple[Period, ...] = tuple(PERIODS)


def _over_time(
    request: Request, found: OverTime, period: Period, filled: list[tuple[str, list[Chart]]]
) -> _OverTime:
    return _OverTime(
        found, _charts(found.runs), _check_charts(found.checks), filled, period, link_maker(request)
    )


def moment_of(run: int, at: datetime, status: str) -> Moment:
    """A run in a chart, which leads to its own page."""
    return Moment(at, f"Run {run}, {at:%d %b %Y, %H:%M}", f"/runs/{run}", is_cut(status))


def _moments(runs: Sequence[RunPoint]) -> list[Moment]:
    return [moment_of(one.run, one.at, one.status) for one in runs]


def _charts(runs: Sequence[RunPoint]) -> list[Chart]:
    """What runs of extract counted."""
    if not runs:
        return []
    moments = _moments(runs)
    return [
        lines(
            "Pages read by each extraction", moments, [Series("pages", [one.pages for one in runs])], number
        ),
        lines("Records", moments, [Series("records", [one.records for one in runs])], number),
        lines(
            "Pages that no wrapper is for",
            moments,
            [Series("without a wrapper", [one.unmatched for one in runs])],
            share,
            top=1,
        ),
        lines(
            "Wrappers per page",
            moments,
            [
                Series("left by the URL", [one.passed_url for one in runs]),
                Series("left by URL and layout", [one.passed_signature for one in runs]),
            ],
            lambda value: number(value, 2 if value else 0),
            note="How many wrappers could be for a page: by its URL, then also by how it is built. "
            "Best is one; less than one means that some pages are like none.",
        ),
        stacked("Pages that gave no record", moments, _reasons(runs), number),
    ]


def _check_charts(checks: Sequence[HealthPoint]) -> list[Chart]:
    """What checks found."""
    if not checks:
        return []
    moments = [Moment(one.at, f"{one.at:%d %b %Y, %H:%M}") for one in checks]
    return [
        lines("Healthy checks", moments, [Series("healthy", [one.healthy for one in checks])], share, top=1)
    ]


def _reasons(runs: Sequence[RunPoint]) -> list[Series]:
    """Failures by reason, the most frequent first; those of rare reasons together."""
    total: Counter[str] = Counter()
    for one in runs:
        total.update(one.failures)
    names = [name for name, _ in total.most_common(_REASONS_DRAWN)]
    found = [Series(name, [one.failures.get(name, 0) for one in runs]) for name in names]
    if len(total) > len(names):
        others = [sum(count for name, count in one.failures.items() if name not in names) for one in runs]
        found.append(Series(_OTHER_REASONS, others))
    return found


def _filled(runs: Sequence[RunPoint]) -> list[tuple[str, list[Chart]]]:
    """For each wrapper a small chart for each attribute."""
    wrappers = sorted({name for one in runs for name in one.filled})
    return [
        (wrapper, [_attribute_chart(runs, wrapper, attribute, attribute) for attribute in names])
        for wrapper in wrappers
        if (names := sorted({name for one in runs for name in one.filled.get(wrapper, ())}))
    ]


def _fallen(runs: Sequence[RunPoint]) -> list[tuple[str, list[Chart]]]:
    """Of all wrappers the attributes whose share has fallen most."""
    fallen: list[tuple[float, str, str]] = []
    for wrapper in sorted({name for one in runs for name in one.filled}):
        for attribute in sorted({name for one in runs for name in one.filled.get(wrapper, ())}):
            shares = [value for value in _shares(runs, wrapper, attribute) if value is not None]
            if (loss := max(shares) - shares[-1]) >= _WORTH_DRAWING:
                fallen.append((loss, wrapper, attribute))
    fallen.sort(key=lambda one: -one[0])
    drawn = [
        _attribute_chart(runs, wrapper, attribute, f"{attribute} of {wrapper}")
        for _, wrapper, attribute in fallen[:_ATTRIBUTES_DRAWN]
    ]
    return [("", drawn)] if drawn else []


def _attribute_chart(runs: Sequence[RunPoint], wrapper: str, attribute: str, title: str) -> Chart:
    series = Series(attribute, _shares(runs, wrapper, attribute))
    return lines(title, _moments(runs), [series], share, top=1)


def _shares(runs: Sequence[RunPoint], wrapper: str, attribute: str) -> list[float | None]:
    """The share of records with a value in each run; none where the wrapper gave no record."""
    return [one.filled[wrapper].get(attribute, 0.0) if wrapper in one.filled else None for one in runs]
