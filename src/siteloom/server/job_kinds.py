"""What a job may be: each kind is a function that tells how far it is, and gives what came of it as JSON."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from siteloom.alarms import raise_alarm
from siteloom.errors import NotFound, UsageError
from siteloom.extraction import counted_by_name, filled_attributes
from siteloom.extraction_runs import run_extraction, workspace_journal, workspace_plan
from siteloom.pipeline import annotated_templates, cluster_store, learn_template
from siteloom.spacing import evenly_spaced
from siteloom.upkeep import UsualOutput, change_row, watch_again
from siteloom.workbench import rules_to_keep
from siteloom.workbench.sample_pages import SAMPLE_PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from siteloom.config import Settings
    from siteloom.extraction import Tally
    from siteloom.model import Page
    from siteloom.pipeline import NewWrapper
    from siteloom.store import Store

    Report = Callable[[int, int | None, str], None]
    """Tells how much is done, of how much if that is known, of what."""


def cluster(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Find the templates of the pages of a site, or of all."""
    site: str | None = arguments["site"]
    pages = sum(one.pages for one in store.sites() if site in (None, one.name))
    looked_at = 0

    def count(_: Page) -> None:
        nonlocal looked_at
        looked_at += 1
        report(looked_at, pages, "pages looked at")

    report(0, pages, "pages looked at")
    found, addresses = cluster_store(store, "vertex", site=site, limits=settings.parse, on_page=count)
    return {
        "site": site,
        "pages": len(addresses),
        "templates": len(found.clusters),
        "unclustered": len(found.unclustered),
        "coverage": found.coverage,
    }


def learn(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Learn the wrapper of a cluster from all of its annotations, and keep it."""
    report(0, None, "examples read")
    asked_for: str = arguments["cluster"]
    templates = annotated_templates(store, asked_for)
    examples = sum(len(one.examples) for one in templates)
    report(examples, examples, "examples read")
    wrappers = []
    for template in templates:
        # Variants of one template may be described apart: the cluster asked for has the last word.
        clusters = sorted((found.id for found in template.clusters), key=lambda name: name == asked_for)
        described = [store.cluster_schema(name).attributes for name in clusters]
        schema = {name: of for one in described for name, of in one.items()}
        is_list = any(example.records for example in template.examples)
        keeps = rules_to_keep(store, asked_for, _some_urls(store, asked_for), is_list=is_list)
        new = learn_template(store, template, schema, keeps=keeps)
        watch_again(store, new.name)
        wrappers.append(_learned(new))
    return {"cluster": asked_for, "site": templates[0].site, "wrappers": wrappers}


def extract(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Extract the records of a site, or of all, each by the wrapper that it is for."""
    site: str | None = arguments["site"]
    run_id, tally = _extract(store, settings, site, report)
    return {"site": site, **_extracted(run_id, tally)}


def finish(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Learn the wrapper of a cluster and extract its pages, with all others of its site.

    A run for a site takes the place of those before it, so one for the cluster alone would put the records
    of other clusters out of force.
    """
    learned = learn(store, settings, arguments, report)
    run_id, tally = _extract(store, settings, learned["site"], report)
    (found,), addresses = store.clusters(arguments["cluster"])
    urls = {addresses[member].url for member in found.members}
    with_record = urls & {json.loads(line)["url"] for line in store.records(run_id)}
    return {
        **learned,
        **_extracted(run_id, tally),
        "cluster_pages": len(urls),
        "with_record": len(with_record),
    }


def _some_urls(store: Store, cluster: str) -> list[str]:
    (found,), addresses = store.clusters(cluster)
    return [addresses[member].url for member in evenly_spaced(found.members, SAMPLE_PAGES)]


def _learned(new: NewWrapper) -> dict[str, Any]:
    told: dict[str, Any] = {"name": new.name, "version": new.version, "lost": list(new.lost)}
    if new.learned is None:  # all examples are of a layout that the pages had before
        return {**told, "is_learned": False, "attributes": {}, "disagreements": []}
    return {
        **told,
        "is_learned": True,
        "attributes": {name: one.filled for name, one in new.learned.report.attributes.items()},
        "disagreements": [
            {
                "attribute": one.attribute,
                "url": one.url,
                "expected": list(one.expected),
                "found": list(one.found),
            }
            for one in new.learned.report.disagreements
        ],
    }


def _extract(store: Store, settings: Settings, site: str | None, report: Report) -> tuple[int, Tally]:
    """A run of extract as the command line makes it: in the end held against what is usual."""
    plan = workspace_plan(store, settings.parse, site)
    with warnings.catch_warnings(action="ignore"):  # of versions of libraries: the command line tells of them
        usual = UsualOutput(store, [one.loaded() for one in plan.wrappers], site)
    pages = sum(one.pages for one in store.sites() if site in (None, one.name))
    with workspace_journal(store, plan, site) as journal:
        done = journal.tally["pages",]
        report(done, pages, "pages extracted")

        def count(tally: Tally) -> None:
            nonlocal done
            done += tally["pages",]
            report(done, pages, "pages extracted")

        tally = run_extraction(plan, journal, settings.run.jobs, count)
        changes = usual.changes(tally, settings.change.threshold / 100, journal.run_id)
    raise_alarm([change_row(one) for one in changes], settings.alarm)
    return journal.run_id, tally


def _extracted(run_id: int, tally: Tally) -> dict[str, Any]:
    records = dict(counted_by_name(tally, "records of"))
    filled: dict[str, dict[str, float]] = {name: {} for name in records}
    for wrapper, attribute, count, _ in filled_attributes(tally):
        filled.setdefault(wrapper, {})[attribute] = count / records[wrapper]
    return {
        "run": run_id,
        "pages": tally["pages",],
        "records": tally["records",],
        "failed": sum(count for _, count in counted_by_name(tally, "failed")),
        "filled": filled,
    }


class JobKind(NamedTuple):
    """A kind of job: what it does, which argument it has, and whether it can do without."""

    run: Callable[[Store, Settings, Mapping[str, Any], Report], dict[str, Any]]
    argument: Literal["site", "cluster"]
    is_needed: bool
    title: str


KINDS = {
    "cluster": JobKind(cluster, "site", False, "Find templates"),
    "learn": JobKind(learn, "cluster", True, "Learn a wrapper"),
    "extract": JobKind(extract, "site", False, "Extract records"),
    "finish": JobKind(finish, "cluster", True, "Learn and extract"),
}
"""Each kind by name."""


def checked_arguments(
    store: Store, kind: str, arguments: Mapping[str, object], kinds: Mapping[str, JobKind] = KINDS
) -> dict[str, str | None]:
    """The arguments of a job, complete, or one sentence about what is wrong with them."""
    if kind not in kinds:
        raise UsageError(f"There is no kind of job {kind}: there are {', '.join(kinds)}.")
    name = kinds[kind].argument
    if others := sorted(arguments.keys() - {name}):
        raise UsageError(f"A job of the kind {kind} takes {name}, but not {others[0]}.")
    given = arguments.get(name)
    if given is None and kinds[kind].is_needed:
        raise UsageError(f"A job of the kind {kind} needs {name}.")
    if given is not None and not isinstance(given, str):
        raise UsageError(f"The {name} of a job must be a text.")
    is_known = given is None or (
        store.has_cluster(given) if name == "cluster" else given in {one.name for one in store.sites()}
    )
    if not is_known:
        raise NotFound(f"There is no {name} {given}.")
    return {name: given}
