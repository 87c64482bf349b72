"""ingest: import pages from sources, and what has to follow every import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import NoPageImported
from siteloom.core.model import Change, Failure, Page
from siteloom.core.urls import site_of
from siteloom.html.visible_text import normalize
from siteloom.maintenance.alarms import raise_alarm
from siteloom.operations.cluster import cluster_store
from siteloom.operations.context import Context
from siteloom.operations.forget import ForgetResult, apply_retention
from siteloom.operations.page_import import import_pages
from siteloom.operations.request_fields import NOT_STORED, Flag, Text
from siteloom.operations.status import NextStep, site_steps, wrappers_by_site
from siteloom.operations.watch import change_row, check_watches
from siteloom.sources.page_source import PageSource

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from siteloom.operations.page_import import ImportReport
    from siteloom.sources.page_source import SourceItem
    from siteloom.store.store import Store

NAMES_RECORDED = 100
"""As many sources are named in the record of a run."""

_FAILURES_LISTED = 5
_SITES_LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """Which pages to import, and into which site.

    Each page goes to the site of its URL unless `site` names one. `names` are the sources as the user wrote
    them, for the record of runs. With `cluster`, the templates of sites without templates are found.
    """

    sources: tuple[PageSource, ...]
    names: tuple[str, ...] = ()
    site: Text | None = None
    cluster: Flag = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSite:
    """A site that pages were imported into: how many were read, and how many of them were new."""

    site: str
    pages: int
    added: int
    templates: int
    next_step: NextStep


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """The outcome of an import.

    `added`, `changed_pages` and `unchanged` count documents; `resources` says how many of them are no pages.
    `pages` counts the pages that were read, and `url` is the address of a single page. `sites` are those
    with the most pages, of `site_count`; `site` is the only one. `changes` are those that were found by
    comparing watched pages, `changed_wrappers` the wrappers that they concern. `forgotten` is what the
    retention settings removed afterwards, and `problems` are sentences about follow-up work that failed.
    """

    run: int
    added: int
    changed_pages: int
    unchanged: int
    resources: int
    failures: Mapping[str, int]
    skipped: Mapping[str, int]
    first_failures: tuple[Failure, ...]
    pages: int = 0
    url: str | None = None
    site: str | None = None
    site_count: int = 0
    sites: tuple[ImportedSite, ...] = ()
    changed_wrappers: tuple[str, ...] = ()
    forgotten: ForgetResult = ForgetResult(counts={}, to_learn_again=())
    problems: tuple[str, ...] = ()
    changes: tuple[Change, ...] = field(default=(), metadata=NOT_STORED)

    @property
    def documents(self) -> int:
        """Documents of the sources that are in the store now, whether or not they were before."""
        return self.added + self.changed_pages + self.unchanged


def ingest(context: Context, request: IngestRequest) -> IngestResult:
    """Import the pages of sources; documents that the store already has are not stored again.

    If no document could be imported, this raises a NoPageImported with the result so far.
    """
    context.progress.start("Reading")
    tally = PageTally(context, request.site)
    report = import_pages(
        context.store,
        request.sources,
        site=request.site,
        jobs=context.settings.run.jobs,
        names=request.names[:NAMES_RECORDED],
        on_item=tally.count,
    )
    return finish_import(context, tally, report, cluster=request.cluster)


class PageTally:
    """Counts the pages that are read, by site, and reports them as progress."""

    def __init__(self, context: Context, site: str | None) -> None:
        self.by_site: Counter[str] = Counter()
        self.first_url: str | None = None
        self._progress = context.progress
        self._site = site

    def count(self, item: SourceItem) -> None:
        """Count an item of a source if it is a page."""
        if isinstance(item, Page):
            self.first_url = self.first_url or item.url
            self.by_site[self._site or site_of(item.url)] += 1
            self._progress.advance()


def finish_import(
    context: Context, tally: PageTally, report: ImportReport, *, cluster: bool, pages_before: int = 0
) -> IngestResult:
    """Do what follows every import, and return its result.

    The retention settings are applied, templates are found if `cluster` says so, and watched pages that have
    changed are compared. `pages_before` were imported by an earlier part of the same work.
    """
    store = context.store
    pages = tally.by_site.total()
    result = IngestResult(
        run=report.run_id,
        added=report.new,
        changed_pages=report.changed,
        unchanged=report.unchanged,
        resources=report.resources,
        failures=report.failures,
        skipped=report.skipped,
        first_failures=tuple(islice(store.failures(report.run_id), _FAILURES_LISTED)),
        pages=pages,
        url=tally.first_url if pages == 1 else None,
    )
    if not report.kept and not pages_before:
        raise NoPageImported(f"No page could be read: {_reason_for_none(result)}.", result)
    forgotten, problem = apply_retention(context)
    stored = set(store.page_urls.sites())
    sites = [site for site, _ in tally.by_site.most_common() if site in stored]
    if cluster:
        _find_missing_templates(context, sites)
    comparison = _compare_watched_pages(context, [site for site in sites if site in report.changed_pages])
    return replace(
        result,
        site=sites[0] if len(sites) == 1 else None,
        site_count=len(sites),
        sites=_imported_sites(store, sites[:_SITES_LISTED], tally.by_site, report),
        changed_wrappers=tuple(dict.fromkeys(change.wrapper for change in comparison.changes)),
        changes=comparison.changes,
        forgotten=forgotten,
        problems=(*filter(None, [problem]), *comparison.problems),
    )


def _reason_for_none(result: IngestResult) -> str:
    if result.first_failures:
        failure = result.first_failures[0]
        detail = normalize(failure.detail)  # messages of libraries may have several lines
        return f"{failure.reason} ({detail})" if detail else failure.reason
    if result.skipped:
        return f"all {sum(result.skipped.values()):,} documents were skipped"
    return "there is nothing in it"


def _find_missing_templates(context: Context, sites: Collection[str]) -> None:
    """Cluster the sites that have no clusters yet, in one run: a crawl may have thousands."""
    store = context.store
    clustered = {summary.site for summary in store.cluster_summaries()}
    missing = [site for site in sites if site not in clustered]
    if not missing:
        return
    pages = sum(site.pages for site in store.sites() if site.name in missing)
    context.progress.start("Looking at", pages)
    cluster_store(
        store,
        "vertex",
        site=missing[0] if len(missing) == 1 else missing,
        limits=context.settings.parse,
        on_page=lambda _: context.progress.advance(),
    )


class _Comparison(NamedTuple):
    """What comparing watched pages has shown, and sentences about alarms that could not be raised."""

    changes: tuple[Change, ...] = ()
    problems: tuple[str, ...] = ()


def _compare_watched_pages(context: Context, sites: Collection[str]) -> _Comparison:
    """Compare the watched pages of some sites with their new versions, and raise alarms."""
    store, settings = context.store, context.settings
    watched = store.watched() if sites else {}
    changes: list[Change] = []
    problems: list[str] = []
    by_site = wrappers_by_site(wrapper for wrapper in store.wrappers() if wrapper.name in watched)
    for site in sites:
        if names := sorted(by_site.get(site, ())):
            context.progress.start("Comparing watched pages", len(names), "wrapper")
            checks = check_watches(
                store,
                names,
                threshold=settings.change.threshold / 100,
                on_wrapper=lambda _: context.progress.advance(),
            )
            found = [change for check in checks for change in check.checkup.changes]
            problems += raise_alarm([change_row(change) for change in found], settings.alarm)
            problems += [check.warning for check in checks if check.warning]
            changes += found
    return _Comparison(tuple(changes), tuple(problems))


def _imported_sites(
    store: Store, sites: Sequence[str], pages: Mapping[str, int], report: ImportReport
) -> tuple[ImportedSite, ...]:
    imported = []
    for site, state in site_steps(store, sites).items():
        step = state.next_step
        if state.wrappers and (report.new or report.changed) and step.kind != "repair":
            step = NextStep(kind="extract", text="Extract its records")
        imported.append(
            ImportedSite(
                site=site,
                pages=pages[site],
                added=report.added_pages.get(site, 0),
                templates=state.templates,
                next_step=step,
            )
        )
    return tuple(imported)
