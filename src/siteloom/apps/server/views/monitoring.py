"""How sites do, as values: what is wrong now and since when, what was wrong, and how that went over time."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, Field

from siteloom.apps.server.html_rendering import ago
from siteloom.apps.server.views.review import ChangeView, change_views, repair_key
from siteloom.apps.server.views.runs import Period, RunPoint, extraction_points, since, thinned
from siteloom.apps.server.views.sites import (
    Health,
    HealthPoint,
    SiteSummary,
    check_points,
    site_summaries,
)
from siteloom.core.errors import NotFound
from siteloom.operations.status import wrappers_by_site

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.store.queries.watches_and_repairs import PastCheck, StoredRepair
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store

StepKind = Literal["review", "annotate", "relearn", "watch", "monitor", "none"]
"""To look at a repair, to give examples, to repair, to choose pages to watch, to look at them; nothing."""

_CHECKS_READ = 20_000  # two years of daily checks of both kinds of a dozen wrappers
_ALARMS_SHOWN = 10  # the list of alarms has all
_WORST_FIRST: tuple[Health, ...] = ("broken", "unchecked", "healthy")


class Repaired(BaseModel):
    """What became of a wrapper after an alarm."""

    repair: int
    outcome: str = Field(description="`reused`, `repaired` or `needs-annotation`.")
    state: str = Field(description="`applied`, `review`, `annotation`, `rejected` or `superseded`.")
    version_after: int | None
    confidence: float
    at: datetime


class Alarm(BaseModel):
    """What checks found wrong with a wrapper, one after the other without a healthy one in between."""

    check: int = Field(description="The newest of these checks, of pages if any of them was.")
    run: int
    wrapper: str
    wrapper_version: int | None
    site: str | None
    kind: str = Field(description="`bellwethers` if pages were compared, `output` if records only counted.")
    output_run: int | None = Field(description="The run whose records show it, if one does.")
    began_at: datetime
    at: datetime
    times: int = Field(description="How many checks found it.")
    is_open: bool
    ended: str = Field(description="How it ended, in words.")
    ended_at: datetime | None
    compared: int | None = Field(description="How many pages were compared.")
    gone: int = Field(description="How many of the watched pages are no more.")
    changes: list[ChangeView]
    repair: Repaired | None


class Alarms(BaseModel):
    """Some of many alarms, the newest first."""

    alarms: list[Alarm]
    count: int = Field(description="How many there are in all.")
    is_complete: bool = Field(description="Whether all checks were looked through, or only the newest.")


class HealthStep(BaseModel):
    """What is best done about the health of a site."""

    kind: StepKind
    text: str
    key: str | None = Field(default=None, description="By which the review is asked for what waits there.")


class SiteGlance(BaseModel):
    """A site at a glance."""

    site: str
    health: Health
    sentence: str = Field(description="What is wrong, or that nothing is.")
    checked_at: datetime | None
    wrappers: int
    watched: int = Field(description="How many of its wrappers have pages that are watched.")
    open_alarms: int
    checks: list[HealthPoint] = Field(description="The latest runs that looked after it, the oldest first.")
    next_step: HealthStep


class OverTime(BaseModel):
    """What runs counted and checks found over time."""

    runs: list[RunPoint] = Field(description="Runs of extract, the oldest first.")
    all_runs: int = Field(description="How many there were; if these are too many, some are left out.")
    checks: list[HealthPoint] = Field(description="Runs that looked after wrappers, the oldest first.")


class SiteHealth(SiteGlance):
    """How a site does, and did."""

    alarms: list[Alarm] = Field(description="What is wrong now, what was seen on pages first.")
    over_time: OverTime


class Monitoring(BaseModel):
    """How all sites do."""

    sites: list[SiteGlance] = Field(description="The worst first.")
    open_alarms: int
    alarms: list[Alarm] = Field(description="What is wrong now, what was seen on pages first; of many, some.")
    over_time: OverTime


def monitoring(store: Store, period: Period) -> Monitoring:
    """How all sites do."""
    seen = _Seen.of(store)
    summaries = site_summaries(store)
    told = _told(store, seen, [one.site for one in summaries])
    glances = [_glance(seen, one, told) for one in summaries]
    glances.sort(key=lambda one: (_WORST_FIRST.index(one.health), not one.wrappers, one.site))
    return Monitoring(
        sites=glances,
        open_alarms=sum(one.is_open for one in seen.streaks),
        alarms=_alarms(store, seen, seen.open_of(seen.wrappers)[:_ALARMS_SHOWN]),
        over_time=_over_time(store, period, seen.checks, None, ()),
    )


def site_health(store: Store, site: str, period: Period) -> SiteHealth:
    """How a site does."""
    summary = next((one for one in site_summaries(store) if one.site == site), None)
    if summary is None:
        raise NotFound(f"There is no site {site}: the list of sites has all there are.")
    seen = _Seen.of(store)
    wrappers = seen.of_site(site)
    of_site = [one for one in seen.checks if one.wrapper in wrappers]
    return SiteHealth(
        **_glance(seen, summary, _told(store, seen, [site])).model_dump(),
        alarms=_alarms(store, seen, seen.open_of(wrappers)),
        over_time=_over_time(store, period, of_site, site, wrappers),
    )


def alarm_history(
    store: Store,
    site: str | None = None,
    wrapper: str | None = None,
    *,
    only_open: bool = False,
    offset: int = 0,
    limit: int = 20,
) -> Alarms:
    """The alarms there were, of a site or a wrapper or all, the newest first."""
    seen = _Seen.of(store)
    found = [
        one
        for one in seen.streaks
        if site in (None, seen.site(one.wrapper))
        and wrapper in (None, one.wrapper)
        and (one.is_open or not only_open)
    ]
    return Alarms(
        alarms=_alarms(store, seen, found[offset : offset + limit]),
        count=len(found),
        is_complete=len(seen.checks) < _CHECKS_READ,
    )


class _Streak(NamedTuple):
    """Unhealthy checks of one version of a wrapper, until all kinds of checks were healthy that were not.

    `last` are the newest unhealthy ones, one of each kind that still was when this was over, what was seen
    on pages before what was only counted.
    """

    first: PastCheck
    last: tuple[PastCheck, ...]
    times: int = 1
    ended: str = ""
    ended_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return not self.ended

    @property
    def wrapper(self) -> str:
        return self.first.wrapper

    @property
    def version(self) -> int | None:
        return self.first.version

    @property
    def newest(self) -> int:
        """The number of its newest check."""
        return max(one.id for one in self.last)

    def with_check(self, one: PastCheck) -> _Streak:
        return self._replace(last=_most_telling_first((one, *self._others(one))), times=self.times + 1)

    def after_healthy(self, one: PastCheck) -> _Streak:
        left = self._others(one)
        if left:
            return self._replace(last=left)
        return self._replace(ended="a check found it healthy", ended_at=one.at)

    def _others(self, one: PastCheck) -> tuple[PastCheck, ...]:
        return tuple(other for other in self.last if other.kind != one.kind)


class _Seen(NamedTuple):
    """What checks have found, the wrappers that are in force, and the repairs that wait for a person."""

    checks: Sequence[PastCheck]
    checked: Mapping[str, AbstractSet[int | None]]
    streaks: Sequence[_Streak]
    open: Mapping[str, Sequence[_Streak]]
    wrappers: Mapping[str, StoredWrapper]
    at_home: Mapping[str, AbstractSet[str]]
    watched: Collection[str]
    waiting: Mapping[str, StoredRepair]

    @classmethod
    def of(cls, store: Store) -> _Seen:
        checks = store.run_history.checks(_CHECKS_READ)
        wrappers = {one.name: one for one in store.wrappers()}
        versions = {name: one.version for name, one in wrappers.items()}
        checked: dict[str, set[int | None]] = defaultdict(set)
        for check in checks:
            checked[check.wrapper].add(check.version)
        streaks = streaks_of(checks, versions)
        open_streaks: dict[str, list[_Streak]] = defaultdict(list)
        for streak in streaks:
            if streak.is_open:
                open_streaks[streak.wrapper].append(streak)
        return cls(
            checks,
            checked,
            streaks,
            open_streaks,
            wrappers,
            wrappers_by_site(wrappers.values()),
            store.watched().keys(),
            {one.wrapper: one for one in store.reviewing.repairs()},
        )

    def site(self, wrapper: str) -> str | None:
        return self.wrappers[wrapper].site if wrapper in self.wrappers else None

    def of_site(self, site: str) -> set[str]:
        return set(self.at_home.get(site, ()))

    def open_of(self, wrappers: Collection[str]) -> list[_Streak]:
        """What is wrong now, what was seen on pages first."""
        found = [one for name in wrappers for one in self.open.get(name, ())]
        return sorted(found, key=lambda one: (one.last[0].kind != "bellwethers", -one.newest))

    def unchecked(self, wrappers: Collection[str]) -> list[str]:
        """Those of some wrappers whose version in force was not checked, each with since when, in words."""
        versions = {name: self.wrappers[name].version for name in sorted(wrappers)}
        return [
            f"{name} was not checked {f'since version {version}' if name in self.checked else 'yet'}"
            for name, version in versions.items()
            if self.checked.get(name, set()).isdisjoint({None, version})
        ]


def streaks_of(checks: Iterable[PastCheck], versions: Mapping[str, int]) -> list[_Streak]:
    """Unhealthy checks that belong together, the newest first; `versions` are those that are in force.

    What was found of an earlier version is over: the wrapper was repaired or learned anew since.
    """
    running: dict[str, _Streak] = {}
    found: list[_Streak] = []
    for one in checks:
        streak = running.get(one.wrapper)
        if streak is not None and streak.version != one.version:
            found.append(running.pop(one.wrapper)._replace(ended=_replaced(one.version), ended_at=one.at))
            streak = None
        if not one.is_healthy:
            running[one.wrapper] = _Streak(one, (one,)) if streak is None else streak.with_check(one)
        elif streak is not None:
            running[one.wrapper] = streak.after_healthy(one)
            if not running[one.wrapper].is_open:
                found.append(running.pop(one.wrapper))
    for streak in running.values():
        in_force = versions.get(streak.wrapper)
        ended = ""
        if in_force is None or streak.version not in (None, in_force):
            ended = "the wrapper is out of force" if in_force is None else _replaced(in_force)
        found.append(streak._replace(ended=ended))
    return sorted(found, key=lambda one: one.newest, reverse=True)


def _most_telling_first(checks: Iterable[PastCheck]) -> tuple[PastCheck, ...]:
    """What was seen on pages before what was only counted."""
    return tuple(sorted(checks, key=lambda one: one.kind != "bellwethers"))


def _replaced(version: int | None) -> str:
    return "another wrapper took its place" if version is None else f"version {version} took its place"


def _alarms(store: Store, seen: _Seen, streaks: Sequence[_Streak]) -> list[Alarm]:
    checks = store.run_history.checks_seen([one.id for streak in streaks for one in streak.last])
    repairs = {name: store.repairs(name) for name in {one.wrapper for one in streaks}}
    alarms = []
    for streak in streaks:
        last = streak.last[0]
        content = checks[last.id].content
        site = seen.site(last.wrapper)
        alarms.append(
            Alarm(
                check=last.id,
                run=last.run_id,
                wrapper=last.wrapper,
                wrapper_version=last.version,
                site=site,
                kind=last.kind,
                output_run=next((one.run_id for one in streak.last if one.kind == "output"), None),
                began_at=streak.first.at,
                at=max(one.at for one in streak.last),
                times=streak.times,
                is_open=streak.is_open,
                ended=streak.ended,
                ended_at=streak.ended_at,
                compared=content.get("compared"),
                gone=len(content.get("gone", ())),
                changes=change_views(store, site, [checks[one.id].content for one in streak.last]),
                repair=_repair_after(streak, repairs[last.wrapper]),
            )
        )
    return alarms


def _repair_after(streak: _Streak, repairs: Sequence[StoredRepair]) -> Repaired | None:
    """The newest repair of the version that an alarm was about: one that still waits, or was tried since.

    One that waits is about the rest, if it was put in force in part.
    """
    for one in repairs:
        is_waiting = one.state in ("review", "annotation")
        is_of_rest = is_waiting and one.version_after is not None and one.version_after == streak.version
        is_of_version = one.version_before == streak.version and (is_waiting or one.at >= streak.first.at)
        if is_of_rest or is_of_version:
            return Repaired(
                repair=one.id,
                outcome=one.outcome,
                state=one.state,
                version_after=one.version_after,
                confidence=one.confidence,
                at=one.at,
            )
    return None


def _told(store: Store, seen: _Seen, sites: Iterable[str]) -> dict[str, str]:
    """What is wrong with each of some sites in a sentence, the first thing of each that has any."""
    first = {site: streaks[0] for site in sites if (streaks := seen.open_of(seen.of_site(site)))}
    checks = store.run_history.checks_seen([one.id for streak in first.values() for one in streak.last])
    told = {}
    for site, streak in first.items():
        # Where the pages are is of no interest here, and takes a look at each.
        changes = change_views(store, None, [checks[one.id].content for one in streak.last])
        told[site] = f"{streak.wrapper}: {changes[0].sentence}" if changes else ""
    return told


def _glance(seen: _Seen, summary: SiteSummary, told: Mapping[str, str]) -> SiteGlance:
    wrappers = seen.of_site(summary.site)
    streaks = seen.open_of(wrappers)
    waiting = [seen.waiting[name] for name in sorted(wrappers) if name in seen.waiting]
    watched = [name for name in wrappers if name in seen.watched]
    return SiteGlance(
        site=summary.site,
        health=summary.health,
        sentence=told.get(summary.site)
        or _sentence(summary, len(wrappers), seen.unchecked(wrappers), streaks, waiting),
        checked_at=summary.checked_at,
        wrappers=len(wrappers),
        watched=len(watched),
        open_alarms=len(streaks),
        checks=summary.checks,
        next_step=_next_step(wrappers, watched, waiting, has_alarms=bool(streaks)),
    )


def _sentence(
    summary: SiteSummary,
    wrappers: int,
    unchecked: Sequence[str],
    streaks: Sequence[_Streak],
    waiting: Sequence[StoredRepair],
) -> str:
    if not wrappers:
        return "It has no wrapper yet, so there is nothing to check."
    if waiting:
        return f"A repair of {waiting[0].wrapper} waits for a person."
    if streaks:
        return f"{streaks[0].wrapper} has changed."
    if not summary.checks or (summary.checked_at is None and not unchecked):
        return "Nothing was checked yet."
    others = f", nor were {len(unchecked) - 1} more" if unchecked[1:] else ""
    if summary.checked_at is None:
        return f"{unchecked[0]}{others}."
    when = f"healthy when last checked, {ago(summary.checked_at)}"
    if unchecked:
        count = wrappers - len(unchecked)
        was = "was" if count == 1 else "were"
        return f"{count} of its {wrappers} wrappers {was} {when}; {unchecked[0]}{others}."
    return f"Its wrapper was {when}." if wrappers == 1 else f"Its {wrappers} wrappers were {when}."


def _next_step(
    wrappers: Collection[str],
    watched: Collection[str],
    waiting: Sequence[StoredRepair],
    *,
    has_alarms: bool,
) -> HealthStep:
    if waiting:
        one = waiting[0]
        if one.state == "annotation":
            return HealthStep(kind="annotate", text="Give it examples", key=repair_key(one.id))
        return HealthStep(kind="review", text="Review the repair", key=repair_key(one.id))
    if has_alarms:
        return HealthStep(kind="relearn", text="Repair what broke")
    if not wrappers:
        return HealthStep(kind="none", text="Look at its templates")
    if not watched:
        return HealthStep(kind="watch", text="Watch its pages")
    return HealthStep(kind="monitor", text="Look for changes")


def _over_time(
    store: Store, period: Period, checks: Iterable[PastCheck], site: str | None, wrappers: Collection[str]
) -> OverTime:
    """What runs counted and checks found in a period, in all or on a site with its wrappers."""
    begin = since(store, period)
    points, all_runs = extraction_points(store, period, site, wrappers)
    return OverTime(
        runs=points,
        all_runs=all_runs,
        checks=thinned(check_points(one for one in checks if begin is None or one.at >= begin)),
    )
