"""Jobs that look after wrappers: watch, compare, repair, and what a person decides in the review."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report, check_edition
from siteloom.apps.server.operation_jobs import job_context
from siteloom.core.errors import StoreError, UsageError
from siteloom.maintenance.alarms import raise_alarm
from siteloom.operations.relearn import (
    changed_wrappers,
    leave_out,
    mend_wrappers,
    reopen_review,
    roll_back,
    settle_review,
)
from siteloom.operations.watch import change_row, check_watches, watch_new_version, watch_wrappers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from siteloom.core.settings import Settings
    from siteloom.operations.relearn import Mended
    from siteloom.operations.watch import Checked
    from siteloom.store.store import Store


def watch(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Choose the pages by which changes are noticed, of a wrapper, of all those of a site, or of all."""
    names = _chosen(store, arguments)
    count = _counting(report, len(names) or len(store.wrappers()), "wrappers looked at")
    watched = watch_wrappers(store, names, on_wrapper=count)
    if not any(one.watch for one in watched):
        raise UsageError(
            "Nothing is watched: no wrapper finds what it should on any of the pages. Repair it, or put an "
            "earlier version in force, and choose its pages then."
        )
    rows = [
        {
            "wrapper": one.wrapper,
            "version": one.version,
            "bellwethers": len(one.watch.bellwethers) if one.watch else 0,
            "reason": one.reason,
            "pages": one.pages,
            "fruitless": one.fruitless,
            "warning": one.warning,
        }
        for one in watched
    ]
    return {**_about(arguments), "watched": rows}


def monitor(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Hold the pages that are watched against how they are now, and raise the alarm if they have changed."""
    watched = store.watched()
    names = _chosen(store, arguments, watched)
    count = _counting(report, len(names) or len(watched), "wrappers compared")
    checked = check_watches(store, names, threshold=settings.change.threshold / 100, on_wrapper=count)
    changes = [change_row(change) for one in checked for change in one.checkup.changes]
    problems = [*raise_alarm(changes, settings.alarm), *(one.warning for one in checked if one.warning)]
    return {**_about(arguments), "checked": [_checked(one) for one in checked], "problems": problems}


def relearn(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Reuse or repair a wrapper, or all (of a site) that a change was noticed of."""
    names: Collection[str] = ()
    if arguments["wrapper"] is not None:
        names = [arguments["wrapper"]]
    else:
        site = arguments["site"]
        names = [one.name for one in changed_wrappers(store) if site in (None, one.site)]
    count = _counting(report, len(names), "wrappers relearned")
    sure = settings.change.accept / 100
    mended = mend_wrappers(store, names, accept=sure, on_wrapper=count) if names else []
    applied = {store.wrapper(one.wrapper).site for one in mended if one.version_after is not None}
    return {**_about(arguments), "mended": [_mended(one) for one in mended], "to_extract": sorted(applied)}


def accept(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Put the repair in force that a person has looked at."""
    report(0, None, "put in force")
    name: str = arguments["wrapper"]
    before = store.wrapper(name)
    version = settle_review(store, name, accept=True, repair=arguments["repair"])
    watch_new_version(job_context(store, settings, report), name)
    return {"site": before.site, "wrapper": name, "version": version, "version_before": before.version}


def reject(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Drop the repair that a person has looked at."""
    report(0, None, "dropped")
    name: str = arguments["wrapper"]
    settle_review(store, name, accept=False, repair=arguments["repair"])
    return {"wrapper": name, "version": store.wrapper(name).version, "repair": arguments["repair"]}


def leave_out_lost(
    store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Go on without what the repair that a person has looked at could not find again."""
    report(0, None, "left out")
    name: str = arguments["wrapper"]
    before = store.wrapper(name)
    version = leave_out(store, name, arguments["repair"])
    watch_new_version(job_context(store, settings, report), name)
    return {
        "site": before.site,
        "wrapper": name,
        "version": version,
        "version_before": before.version,
        "note": store.wrapper(name, version).note,
    }


def reopen(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Let a repair that was rejected wait again."""
    report(0, None, "put back")
    reopen_review(store, arguments["wrapper"], arguments["repair"])
    return {"wrapper": arguments["wrapper"], "repair": arguments["repair"]}


def rollback(
    store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Put an earlier version of a wrapper in force again."""
    report(0, None, "put back")
    name: str = arguments["wrapper"]
    before = store.wrapper(name)
    old, new = roll_back(store, name, arguments["version"])
    watch_new_version(job_context(store, settings, report), name)
    return {
        "site": before.site,
        "wrapper": name,
        "as_version": old,
        "version": new,
        "version_before": before.version,
    }


def dismiss(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Ask no one any more to annotate a template."""
    report(0, None, "set aside")
    check_edition(store, arguments)
    store.reviewing.dismiss(arguments["cluster"])
    return {"cluster": arguments["cluster"]}


def restore(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Ask again to annotate a template."""
    report(0, None, "put back")
    check_edition(store, arguments)
    store.reviewing.restore(arguments["cluster"])
    return {"cluster": arguments["cluster"]}


def _chosen(
    store: Store, arguments: Mapping[str, Any], among: Collection[str] | None = None
) -> Collection[str]:
    """The names of the wrappers that a job is about; none if it is about all."""
    if arguments["wrapper"] is not None:
        return [arguments["wrapper"]]
    site: str | None = arguments["site"]
    if site is None:
        return ()
    names = [one.name for one in store.wrappers() if one.site == site]
    if not names:
        raise StoreError(f"There is no wrapper for {site} yet: annotate a template of it first.")
    if among is not None and not any(name in among for name in names):
        raise StoreError(f"No page of {site} is watched: watch its wrappers first.")
    return [name for name in names if among is None or name in among]


def _about(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in ("site", "wrapper")}


def _counting(report: Report, total: int, message: str) -> Callable[[int], None]:
    """What is to be called when one more is done."""
    done = 0

    def count(_: int) -> None:
        nonlocal done
        done += 1
        report(done, total, message)

    report(0, total, message)
    return count


def _checked(one: Checked) -> dict[str, Any]:
    return {
        "wrapper": one.wrapper,
        "compared": len(one.checkup.compared),
        "gone": len(one.checkup.gone),
        "drifted": len(one.checkup.drifted),
        "verdict": one.verdict,
        "changes": [
            {"test": change.test, "attributes": list(change.attributes), "share": change.share}
            for change in one.checkup.changes
        ],
    }


def _mended(one: Mended) -> dict[str, Any]:
    states: dict[str, list[str]] = defaultdict(list)
    for name, known in one.relearned.attributes.items():
        if known.state != "kept":
            states[known.state].append(name)
    return {
        "wrapper": one.wrapper,
        "version_before": one.version_before,
        "version_after": one.version_after,
        "state": one.state,
        "outcome": one.relearned.outcome,
        "confidence": one.relearned.confidence,
        "reason": one.relearned.reason,
        "attributes": states,
    }


_WRAPPER = Argument("wrapper", is_needed=True)
_REPAIR = {"wrapper": _WRAPPER, "repair": Argument("number", is_needed=True)}
_VERSION = {"wrapper": _WRAPPER, "version": Argument("number")}
_CLUSTER = {"cluster": Argument("cluster", is_needed=True), "edition": Argument("number")}
_ANY = {"site": Argument("site"), "wrapper": Argument("wrapper")}

KINDS = {
    "watch": JobKind(watch, "Choose pages to watch", _ANY),
    "monitor": JobKind(monitor, "Look for changes", _ANY),
    "relearn": JobKind(relearn, "Repair wrappers", _ANY),
    "accept": JobKind(accept, "Accept a repair", _REPAIR),
    "reject": JobKind(reject, "Reject a repair", _REPAIR),
    "leave_out": JobKind(leave_out_lost, "Go on without what a site has no more", _REPAIR),
    "reopen": JobKind(reopen, "Put a rejected repair back", _REPAIR),
    "rollback": JobKind(rollback, "Roll back a wrapper", _VERSION),
    "dismiss": JobKind(dismiss, "Set a template aside", _CLUSTER),
    "restore": JobKind(restore, "Ask about a template again", _CLUSTER),
}
