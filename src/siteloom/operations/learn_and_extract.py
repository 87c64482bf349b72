"""Learning the wrapper of a cluster and extracting a site, as follow-ups of other operations.

To be replaced by the operations `learn` and `extract`, which take a context as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from siteloom.core.sequences import evenly_spaced
from siteloom.learning.induction.wrapper_assembly import Learned
from siteloom.maintenance.alarms import raise_alarm
from siteloom.operations.annotate import annotated_templates
from siteloom.operations.annotation.sample_pages import SAMPLE_PAGES
from siteloom.operations.annotation.suggested_values import rules_to_keep
from siteloom.operations.extract import UsualOutput
from siteloom.operations.extraction_shards import run_extraction, workspace_journal, workspace_plan
from siteloom.operations.learn import learn_template
from siteloom.operations.request_fields import NOT_STORED
from siteloom.operations.watch import change_row, watch_again, watch_wrappers

if TYPE_CHECKING:
    from siteloom.extraction.extractor import Tally
    from siteloom.operations.annotate import AnnotatedTemplate
    from siteloom.operations.context import Context
    from siteloom.operations.watch import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """An annotated value that a wrapper does not reproduce."""

    attribute: str
    url: str
    expected: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedWrapper:
    """A wrapper that was learned, with the share of pages on which each attribute is filled.

    `lost` are the attributes that only the version before has. `not_watched` says why no pages are watched.
    """

    name: str
    version: int
    is_learned: bool
    attributes: Mapping[str, float] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    not_watched: str = ""
    learned: Learned | None = field(default=None, metadata=NOT_STORED)


def learn_cluster(context: Context, cluster: str) -> tuple[LearnedWrapper, ...]:
    """Learn the wrapper of a cluster from all of its annotations, and watch its pages.

    In a temporary workspace no pages are watched.
    """
    context.progress.start("Learning")
    wrappers = []
    for template in annotated_templates(context.store, cluster):
        wrapper = _learned(context, cluster, template)
        if not context.sources:
            with suppress(KeyboardInterrupt):  # the wrapper is in force; the next check chooses the pages
                watched = _watched(context, wrapper.name)
                if watched is not None and watched.watch is None:
                    wrapper = replace(wrapper, not_watched=watched.reason)
        wrappers.append(wrapper)
    return tuple(wrappers)


def _learned(context: Context, cluster: str, template: AnnotatedTemplate) -> LearnedWrapper:
    store = context.store
    # Variants of one template may be described apart: the cluster asked for has the last word.
    names = sorted((described.id for described in template.clusters), key=lambda name: name == cluster)
    schemas = [store.cluster_schema(name).attributes for name in names]
    schema = {name: attribute for attributes in schemas for name, attribute in attributes.items()}
    is_list = any(example.records for example in template.examples)
    (members,), addresses = store.clusters(cluster)
    urls = [addresses[member].url for member in evenly_spaced(members.members, SAMPLE_PAGES)]
    keeps = rules_to_keep(store, cluster, urls, is_list=is_list)
    new = learn_template(store, template, schema, keeps=keeps, limits=context.settings.parse)
    if new.learned is None:  # all examples are of a layout that the pages had before
        return LearnedWrapper(name=new.name, version=new.version, is_learned=False, lost=new.lost)
    report = new.learned.report
    return LearnedWrapper(
        name=new.name,
        version=new.version,
        is_learned=True,
        attributes={name: attribute.filled for name, attribute in report.attributes.items()},
        lost=new.lost,
        disagreements=tuple(
            Disagreement(
                attribute=conflict.attribute,
                url=conflict.url,
                expected=tuple(conflict.expected),
                found=tuple(conflict.found),
            )
            for conflict in report.disagreements
        ),
        learned=new.learned,
    )


def _watched(context: Context, wrapper: str) -> Watched | None:
    store = context.store
    context.progress.start("Choosing pages to watch")
    if wrapper in store.watched():
        return watch_again(store, wrapper)
    (watched,) = watch_wrappers(store, [wrapper])
    return watched


def extract_site(context: Context, site: str) -> None:
    """Extract the records of a site, compare the output with the usual one, and raise alarms."""
    store, settings, progress = context.store, context.settings, context.progress
    plan = workspace_plan(store, settings.parse, site)
    with warnings.catch_warnings(action="ignore"):  # of versions of libraries
        usual = UsualOutput(store, [wrapper.loaded() for wrapper in plan.wrappers], site)
    with workspace_journal(store, plan, site) as journal:
        pages = sum(summary.pages for summary in store.sites() if summary.name == site)
        progress.start("Extracting", pages, done=journal.tally["pages",])

        def count(tally: Tally) -> None:
            progress.advance(tally["pages",])

        tally = run_extraction(plan, journal, settings.run.jobs, count)
        changes = usual.changes(tally, settings.change.threshold / 100, journal.run_id)
    raise_alarm([change_row(change) for change in changes], settings.alarm)
