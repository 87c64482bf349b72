"""status: what is in the workspace, and what to do next. doctor: whether everything is in order."""

from __future__ import annotations

import shlex
import stat
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.core.errors import SiteloomError
from siteloom.core.settings import ResolvedSetting
from siteloom.extraction.extraction_counts import ExtractionCounts
from siteloom.operations.context import Context, open_context

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from siteloom.core.settings import Settings
    from siteloom.store.queries.cluster_summaries import ClusterSummary
    from siteloom.store.queries.runs import Run
    from siteloom.store.queries.sites import Site
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store

TemplateState = Literal["new", "learning", "live", "broken"]
"""Nothing is annotated; something is, but there is no wrapper; there is one; its pages have changed."""

StepKind = Literal["cluster", "annotate", "extract", "repair", "look"]

WORTH_ANNOTATING = 0.05
"""Templates without a wrapper are suggested for annotation from this share of a site's pages on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """What to do next with a site; `cluster` is the template it concerns."""

    kind: StepKind
    text: str
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStatus:
    """A template of a site in numbers; `share` is that of the site's pages which are made from it."""

    cluster: str
    site: str
    pages: int
    share: float
    importance: float
    url_patterns: tuple[str, ...]
    annotated: int
    state: TemplateState
    wrapper: str | None
    wrapper_version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStatus:
    """A site in numbers; `bytes` and `packed_bytes` count all versions of its pages and resources."""

    site: str
    pages: int
    versions: int
    bytes: int
    packed_bytes: int
    annotated: int
    wrappers: int
    records: int
    templates: tuple[TemplateStatus, ...]
    next_step: NextStep


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRequest:
    """How many of the latest runs to list."""

    runs: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusResult:
    """The sites of a workspace by name, and its latest runs, the newest first."""

    sites: tuple[SiteStatus, ...]
    runs: tuple[Run, ...]


def status(context: Context, request: StatusRequest = StatusRequest()) -> StatusResult:
    """Count what is in the workspace, site by site."""
    store = context.store
    clusters: dict[str, list[ClusterSummary]] = defaultdict(list)
    for summary in store.cluster_summaries():
        clusters[summary.site].append(summary)
    states = WrapperStates.of(store, [summary for group in clusters.values() for summary in group])
    return StatusResult(
        sites=tuple(site_status(site, clusters[site.name], states) for site in store.sites()),
        runs=store.runs(request.runs),
    )


class SiteStep(NamedTuple):
    """How many templates and wrappers a site has, and what to do next with it."""

    templates: int
    wrappers: int
    next_step: NextStep


def site_steps(store: Store, sites: Iterable[str]) -> dict[str, SiteStep]:
    """What to do next with some sites."""
    clusters = {site: store.cluster_summaries(site) for site in sites}
    states = WrapperStates.of(store, [summary for group in clusters.values() for summary in group])
    steps = {}
    for site, summaries in clusters.items():
        pages = store.page_count(site)
        templates = [template_status(summary, pages, states) for summary in summaries]
        step = _next_step(templates, states.records.get(site, 0))
        steps[site] = SiteStep(len(templates), len(states.by_site.get(site, ())), step)
    return steps


class WrapperStates(NamedTuple):
    """The wrappers of a workspace: their versions, their health and their records.

    `of_clusters` has the wrapper of each cluster, `by_site` the wrappers of each site, `checked_at` the time
    at which the version in use was last checked, and `records` the number of current records of each site.
    """

    versions: Mapping[str, int]
    by_site: Mapping[str, AbstractSet[str]]
    of_clusters: Mapping[str, str]
    broken: frozenset[str]
    checked_at: Mapping[str, datetime]
    records: Mapping[str, int]

    @classmethod
    def of(cls, store: Store, clusters: Sequence[ClusterSummary]) -> WrapperStates:
        """Read the states of all wrappers, and find the wrapper of each cluster."""
        wrappers = store.wrappers()
        versions = {wrapper.name: wrapper.version for wrapper in wrappers}
        # A check of an earlier version is outdated: the wrapper was repaired or learned again since.
        checks = [
            check for check in store.newest_outcomes() if check.version in (None, versions.get(check.wrapper))
        ]
        broken = {check.wrapper for check in checks if not check.is_healthy}
        records: Counter[str] = Counter()
        for (site, _), count in current_records(store, {one.name: one.site for one in wrappers}).items():
            records[site] += count
        return cls(
            versions,
            wrappers_by_site(wrappers),
            _wrappers_of(store, clusters, versions),
            frozenset(broken | store.wrappers_in_repair()),
            {check.wrapper: check.at for check in sorted(checks, key=lambda check: check.at)},
            records,
        )


def wrappers_by_site(wrappers: Iterable[StoredWrapper]) -> dict[str, set[str]]:
    """The names of wrappers by the sites that they were made for."""
    names: dict[str, set[str]] = defaultdict(set)
    for wrapper in wrappers:
        names[wrapper.site].add(wrapper.name)
    return names


def _wrappers_of(
    store: Store, clusters: Sequence[ClusterSummary], versions: Mapping[str, int]
) -> dict[str, str]:
    """The wrapper of each cluster that has one: of the same name, or the one that extracted its pages."""
    unnamed = [cluster for cluster in clusters if cluster.name not in versions]
    extracted_by = store.wrappers_of([url for cluster in unnamed for url in cluster.ends])
    named = {cluster.name: cluster.name for cluster in clusters if cluster.name in versions}
    return named | {
        cluster.name: extracted_by[url]
        for cluster in unnamed
        for url in cluster.ends
        if extracted_by.get(url) in versions
    }


def current_records(store: Store, sites: Mapping[str, str]) -> Counter[tuple[str, str]]:
    """The number of current records by site and wrapper, from the counts of runs; reads no record.

    `sites` has the site of each wrapper that is in use.
    """
    newest_runs = store.extractions()
    site_of_run = {run_id: site for site, run_id in newest_runs.items()}
    records: Counter[tuple[str, str]] = Counter()
    for run_id, rows in store.run_history.tallies(list(site_of_run)):
        for wrapper, counts in ExtractionCounts.from_rows(rows).wrappers.items():
            site = site_of_run[run_id] or sites.get(wrapper)
            if site is not None and wrapper in sites and newest_runs.get(site, run_id) == run_id:
                records[site, wrapper] += counts.records
    return records


def template_status(summary: ClusterSummary, site_pages: int, states: WrapperStates) -> TemplateStatus:
    """A template in numbers; `site_pages` is the number of pages of its site."""
    wrapper = states.of_clusters.get(summary.name)
    state: TemplateState = "learning" if summary.annotated else "new"
    if wrapper is not None:
        state = "broken" if wrapper in states.broken else "live"
    return TemplateStatus(
        cluster=summary.name,
        site=summary.site,
        pages=summary.pages,
        share=summary.pages / max(1, site_pages),
        importance=summary.importance,
        url_patterns=tuple(summary.url_patterns),
        annotated=summary.annotated,
        state=state,
        wrapper=wrapper,
        wrapper_version=None if wrapper is None else states.versions[wrapper],
    )


def site_status(site: Site, clusters: Sequence[ClusterSummary], states: WrapperStates) -> SiteStatus:
    """A site in numbers."""
    templates = [template_status(summary, site.pages, states) for summary in clusters]
    records = states.records.get(site.name, 0)
    return SiteStatus(
        site=site.name,
        pages=site.pages,
        versions=site.versions,
        bytes=site.bytes,
        packed_bytes=site.packed_bytes,
        annotated=site.annotated,
        wrappers=site.wrappers,
        records=records,
        templates=tuple(templates),
        next_step=_next_step(templates, records),
    )


def _next_step(templates: Sequence[TemplateStatus], records: int) -> NextStep:
    by_importance = sorted(templates, key=lambda template: -template.importance)
    first: dict[TemplateState, TemplateStatus] = {}
    for template in by_importance:
        first.setdefault(template.state, template)
    if not templates:
        return NextStep(kind="cluster", text="Find its templates")
    if "broken" in first:
        return NextStep(kind="repair", text="Look at what broke", cluster=first["broken"].cluster)
    if "learning" in first and "live" not in first:
        return NextStep(kind="annotate", text="Go on annotating", cluster=first["learning"].cluster)
    if "live" not in first:
        return NextStep(kind="annotate", text="Annotate a template", cluster=first["new"].cluster)
    if not records:
        return NextStep(kind="extract", text="Extract its records")
    largest = next((template for template in by_importance if template.wrapper is None), None)
    # A template of only a few pages is not worth a person's time.
    if largest is not None and largest.share >= WORTH_ANNOTATING:
        return NextStep(kind="annotate", text="Annotate another one", cluster=largest.cluster)
    return NextStep(kind="look", text="See its records")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """What the caller knows: settings that do not count because nobody has trusted what sets them."""

    untrusted_settings: tuple[ResolvedSetting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One thing that was checked; the finding of a failed check says what to do about it."""

    name: str
    is_ok: bool
    finding: str
    is_damage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorResult:
    """All checks in order."""

    checks: tuple[DoctorCheck, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that failed, each once."""
        return tuple(dict.fromkeys(check.name for check in self.checks if not check.is_ok))

    @property
    def is_damaged(self) -> bool:
        """Whether pages are damaged, which only a backup can bring back."""
        return any(check.is_damage for check in self.checks)


_EXTRAS = {
    "crawl": ("scrapy",),
    "embedded": ("extruct",),
    "parquet": ("pyarrow",),
    "postgres": ("psycopg",),
    "render": ("playwright",),
    "server": ("fastapi",),
    "spark": ("pyspark",),
    "text": ("trafilatura",),
    "values": ("dateparser", "price_parser"),  # others bring the first one along
    "web-poet": ("web_poet",),
}

_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ENTERABLE_BY_OTHERS = stat.S_IXGRP | stat.S_IXOTH


def doctor(settings: Settings, request: DoctorRequest = DoctorRequest()) -> DoctorResult:
    """Check the installation, and every page of the workspace if there is one.

    It takes settings in place of a context, because the workspace may be missing or damaged.
    """
    from siteloom.store.workspace_folder import workspace_exists  # noqa: PLC0415 - databases are slow to load

    checks = [*_installation_checks(), *_settings_checks(request.untrusted_settings)]
    if any(setting.name == "store.workspace" for setting in request.untrusted_settings):
        checks.append(_failed("workspace", "not checked: nobody trusts what names it"))
    elif workspace_exists(settings.store):
        checks += _workspace_checks(settings)
    else:
        checks.append(_passed("workspace", f"none at {settings.store.workspace}"))
    return DoctorResult(checks=tuple(checks))


def _passed(name: str, finding: str) -> DoctorCheck:
    return DoctorCheck(name=name, is_ok=True, finding=finding)


def _failed(name: str, finding: str) -> DoctorCheck:
    return DoctorCheck(name=name, is_ok=False, finding=finding)


def _installation_checks() -> Iterator[DoctorCheck]:
    from siteloom import __version__  # noqa: PLC0415 - the package itself, half loaded while this is imported
    from siteloom.core.model import Failure, Page  # noqa: PLC0415 - only needed here
    from siteloom.html.parser import PARSER, parse  # noqa: PLC0415 - compiled, slow to load
    from siteloom.html.visible_text import visible_text  # noqa: PLC0415

    yield _passed("version", f"Siteloom {__version__} on Python {sys.version.split()[0]}")
    root = parse(Page("about:blank", b"<html></html><head><title>t</title><body><p>after the end"))
    if not isinstance(root, Failure) and "after the end" in visible_text(root):
        yield _passed("parser", PARSER)
    else:
        yield _failed("parser", f"{PARSER} drops what follows </html>")
    for extra, modules in _EXTRAS.items():
        yield _passed(f"extra {extra}", _state_of_extra(extra, modules))


def _state_of_extra(extra: str, modules: Sequence[str]) -> str:
    if any(find_spec(module) is None for module in modules):
        return f"not installed; pip install 'siteloom[{extra}]' if you need it"
    try:
        for module in modules:
            import_module(module)
    except ImportError as error:
        return f"installed, but it cannot be used: {' '.join(str(error).split())}"
    return "installed"


def _settings_checks(untrusted: Sequence[ResolvedSetting]) -> Iterator[DoctorCheck]:
    if links := [setting.value for setting in untrusted if setting.origin == "default"]:
        finding = f"{links[0]} leads out of this folder by a link: name it with --workspace, or remove it"
        yield _failed("settings", finding)
    if from_file := [setting.name for setting in untrusted if setting.origin != "default"]:
        names = " and ".join(from_file)
        finding = f"{names} in siteloom.toml will not count until you trust it: siteloom config --trust"
        yield _failed("settings", finding)


def _workspace_checks(settings: Settings) -> Iterator[DoctorCheck]:
    try:
        with open_context(settings) as context:
            store = context.store
            sites = store.sites()
            problems = list(store.check())
            links = list(store.links())
    except SiteloomError as error:
        yield _failed("workspace", str(error))
        return
    pages = sum(site.pages for site in sites)
    yield _passed("workspace", f"{pages:,} pages, {len(sites):,} sites at {store.folder}")
    for problem in problems:
        yield DoctorCheck(name=f"pack {problem.place}", is_ok=False, finding=problem.text, is_damage=True)
    if not problems:
        yield _passed("packs", "every page reads back as it was stored")
    for link in links:
        yield _failed("links", f"{link} is a symbolic link, which Siteloom never follows: remove it")
    for folder in _folders_open_to_others(store):
        command = f"chmod -R go-rwx {shlex.quote(str(folder))}"
        yield _failed("permissions", f"other users of this machine may read or change it: {command}")


def _folders_open_to_others(store: Store) -> Iterator[Path]:
    """The workspace, and its packs if they are elsewhere, where others than the owner have access."""
    folders = [store.folder]
    if store.packs_folder.is_symlink():
        folders.append(store.packs_folder.resolve())
    for folder in folders:
        mode = folder.stat().st_mode
        is_readable = mode & _ENTERABLE_BY_OTHERS and any(map(_is_open_to_others, folder.rglob("*")))
        if is_readable or mode & _WRITABLE_BY_OTHERS:
            yield folder


def _is_open_to_others(path: Path) -> bool:
    try:
        file_status = path.lstat()
    except FileNotFoundError:  # another process has just removed it
        return False
    return stat.S_ISREG(file_status.st_mode) and bool(file_status.st_mode & _OTHER_USERS)
