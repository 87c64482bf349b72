"""Jobs that take known records in, wrap sites from them, and take both back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.apps.server.operation_jobs import job_context
from siteloom.apps.server.upload_folder import find_upload
from siteloom.apps.server.views.known_records import said_of, uploaded_table
from siteloom.core.errors import NotFound, SourceError, UsageError
from siteloom.operations.bootstrap import DEFAULT_ROUNDS, grow, withdraw
from siteloom.operations.extract import ExtractRequest, extract
from siteloom.operations.seeds import Imported, SeedOrder, import_seeds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.core.settings import Settings
    from siteloom.operations.bootstrap import Attempt, Grown
    from siteloom.store.store import Store

# What came of more is on the page of seeds.
_SITES_TOLD = 200


def take_in(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Keep the records of an uploaded table, or those of a site, as known ones."""
    upload, site = arguments["upload"], arguments["site"]
    if (upload is None) == (site is None):
        raise UsageError("Known records are those of an upload or of a site: name one of them.")
    several, renamed = arguments["several"] or {}, arguments["renamed"] or {}
    source = (arguments["source"] or "").strip()
    order = SeedOrder((), site, None, source, several, renamed)
    if upload is None:
        found = _imported(store, settings, order, report)
    else:
        table = uploaded_table(store.folder, upload)
        with said_of(table):
            found = _imported(store, settings, order._replace(locations=(str(table),)), report)
        source = source or table.stem
        find_upload(store.folder, upload).remove()
    return {
        "source": source or site,
        **found.counts._asdict(),
        "left_out": {**found.failed, **found.skipped},
        "core": arguments["core"] or [],
    }


def _imported(store: Store, settings: Settings, order: SeedOrder, report: Report) -> Imported:
    count = 0

    def read() -> None:
        nonlocal count
        count += 1
        report(count, None, f"{count:,} records read")

    report(0, None, "Reading")
    found = import_seeds(store, order, settings.pages, read)
    if found.why_none:
        raise SourceError(found.why_none)
    return found


def bootstrap(
    store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Wrap sites from what is known, and extract those; what is done when it is stopped is kept."""
    core: list[str] = arguments["core"]
    if not core:
        raise UsageError("Choose the attributes by which things are known: one at least.")

    def tell(attempt: Attempt) -> None:
        done = f"sites of round {attempt.round} tried, now {attempt.site}"
        report(attempt.number - 1, attempt.of, done)

    report(0, None, "Reading what is known")
    grown = grow(
        store,
        core,
        rounds=DEFAULT_ROUNDS if arguments["rounds"] is None else arguments["rounds"],
        sites=arguments["sites"] or (),
        limits=settings.parse,
        jobs=settings.run.jobs,
        on_attempt=tell,
    )
    came = _last_of_each(grown)
    for one in came:
        if one.state == "wrapped":
            extract(job_context(store, settings, report), ExtractRequest(site=one.site))
    return {"core": core, "sites": [_row(one) for one in came[:_SITES_TOLD]]}


def _last_of_each(grown: list[Grown]) -> list[Grown]:
    """What became of each site in the end; it may have been tried in several rounds."""
    return list({one.site: one for one in grown}.values())


def _row(grown: Grown) -> dict[str, Any]:
    return {
        "site": grown.site,
        "round": grown.round,
        "state": grown.state,
        "records": grown.records,
        "attributes": list(grown.attributes),
        "reason": grown.reason,
    }


def refuse(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Take a site back that was wrapped wrongly, with all that came of it."""
    report(0, None, "Taking it back")
    taken = withdraw(store, arguments["site"])
    return {
        "site": arguments["site"],
        "seeds": taken.seeds,
        "withdrawn": list(taken.wrappers),
        "retried": list(taken.retried),
    }


def remove(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Remove the records that were given of a source."""
    report(0, None, "Removing")
    source = arguments["source"]
    with store.recording("seeds", {"withdraw": source}) as run:
        count = run.counts["removed"] = store.withdraw_seeds(source)
    if not count:
        raise NotFound(f"There are no known records of {source}.")
    return {"source": source, "removed": count}


KINDS = {
    "seeds": JobKind(
        take_in,
        "Take in known records",
        {
            "upload": Argument("text"),
            "site": Argument("site"),
            "source": Argument("text"),
            "renamed": Argument("texts by name"),
            "several": Argument("texts by name"),
            "core": Argument("texts"),
        },
    ),
    "bootstrap": JobKind(
        bootstrap,
        "Wrap sites from known records",
        {
            "core": Argument("texts", is_needed=True),
            "sites": Argument("sites"),
            "rounds": Argument("number"),
        },
    ),
    "withdraw": JobKind(refuse, "Refuse a site", {"site": Argument("site", is_needed=True)}),
    "remove_seeds": JobKind(remove, "Remove known records", {"source": Argument("text", is_needed=True)}),
}
