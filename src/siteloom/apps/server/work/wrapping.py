"""Jobs that make wrappers and use them: find templates, learn, extract."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.core.errors import UsageError
from siteloom.core.sequences import evenly_spaced
from siteloom.extraction.extractor import counted_by_name, filled_attributes
from siteloom.maintenance.alarms import change_row, raise_alarm
from siteloom.operations.annotate import annotated_templates
from siteloom.operations.annotation.sample_pages import SAMPLE_PAGES
from siteloom.operations.annotation.suggested_values import rules_to_keep
from siteloom.operations.cluster import cluster_store
from siteloom.operations.context import Context
from siteloom.operations.extract import UsualOutput
from siteloom.operations.extraction_shards import run_extraction, workspace_journal, workspace_plan
from siteloom.operations.learn import learn_template
from siteloom.operations.watch import watch_new_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.core.model import Clustering, Page
    from siteloom.core.settings import Settings
    from siteloom.extraction.extractor import Tally
    from siteloom.operations.learn import NewWrapper
    from siteloom.store.queries.clusters import PageAddress
    from siteloom.store.store import Store


def find_templates(
    store: Store, settings: Settings, site: str | Sequence[str] | None, pages: int, report: Report
) -> tuple[Clustering, tuple[PageAddress, ...]]:
    """Cluster the pages of a site, of several or of all, and tell how many of them were looked at."""
    looked_at = 0

    def count(_: Page) -> None:
        nonlocal looked_at
        looked_at += 1
        report(looked_at, pages, "pages looked at")

    report(0, pages, "pages looked at")
    return cluster_store(store, "vertex", site=site, limits=settings.parse, on_page=count)


def learn(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Learn the wrapper of a cluster from all of its annotations, and keep it."""
    told = _learn(store, arguments, report)
    for one in told["wrappers"]:
        watch_new_version(Context(store=store, settings=settings), one["name"])
    return told


def _learn(store: Store, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
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
        wrappers.append(_learned(learn_template(store, template, schema, keeps=keeps)))
    return {"cluster": asked_for, "site": templates[0].site, "wrappers": wrappers}


def extract(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Extract the records of a site, or of all, each by the wrapper that it is for."""
    site: str | None = arguments["site"]
    return {"site": site, **_extract(store, settings, site, report)}


def finish(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Learn the wrapper of a cluster and extract its pages, with all others of its site.

    A run for a site takes the place of those before it, so one for the cluster alone would put the records
    of other clusters out of force.
    """
    learned = _learn(store, arguments, report)
    extracted = _extract(store, settings, learned["site"], report)
    (found,), addresses = store.clusters(arguments["cluster"])
    urls = {addresses[member].url for member in found.members}
    with_record = urls & {json.loads(line)["url"] for line in store.records(extracted["run"])}
    for one in learned["wrappers"]:
        watch_new_version(Context(store=store, settings=settings), one["name"])
    return {
        **learned,
        **extracted,
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


def _extract(store: Store, settings: Settings, site: str | None, report: Report) -> dict[str, Any]:
    """A run of extract as the command line makes it: in the end held against what is usual."""
    if not store.wrappers():
        raise UsageError("There is no wrapper yet: annotate some pages of a template first.")
    in_force = store.extractions()
    before = in_force.get(site, in_force.get(None))
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
    return {
        **_extracted(journal.run_id, tally),
        "before": before,
        "changed": sorted({one.wrapper for one in changes}),
    }


def _extracted(run_id: int, tally: Tally) -> dict[str, Any]:
    failed = counted_by_name(tally, "failed")
    records = dict(counted_by_name(tally, "records of"))
    filled: dict[str, dict[str, float]] = {name: {} for name in records}
    for wrapper, attribute, count, _ in filled_attributes(tally):
        filled.setdefault(wrapper, {})[attribute] = count / records[wrapper]
    return {
        "run": run_id,
        "pages": tally["pages",],
        "records": tally["records",],
        "failed": sum(count for _, count in failed),
        "failures": dict(failed[:_REASONS_TOLD]),
        "filled": filled,
    }


_REASONS_TOLD = 5
_SITE = {"site": Argument("site")}
_CLUSTER = {"cluster": Argument("cluster", is_needed=True)}

KINDS = {
    "learn": JobKind(learn, "Learn a wrapper", _CLUSTER),
    "extract": JobKind(extract, "Extract records", _SITE),
    "finish": JobKind(finish, "Learn and extract", _CLUSTER),
}
