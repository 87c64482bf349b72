"""Values shown: sites and clusters in numbers, one template, two side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, Field

from siteloom.apps.server.request_types import site_of_cluster
from siteloom.core.errors import NotFound
from siteloom.core.model import Failure
from siteloom.extraction.extraction_counts import ExtractionCounts
from siteloom.html.parser import parse
from siteloom.operations.annotation.sample_pages import SAMPLE_PAGES
from siteloom.operations.cluster import cluster_pages, sample_cluster
from siteloom.store.queries.clusters import PageAddress
from siteloom.templates.essential_paths import tag_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.core.model import Template, TemplatePath
    from siteloom.core.settings import ParseSettings
    from siteloom.store.queries.cluster_summaries import ClusterSummary
    from siteloom.store.queries.sites import Site
    from siteloom.store.queries.watches_and_repairs import PastCheck
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store


TemplateState = Literal["new", "learning", "live", "broken"]
"""Nothing is annotated; something is, but there is no wrapper; there is one; its pages have changed."""

Health = Literal["unchecked", "healthy", "broken"]

StepKind = Literal["cluster", "annotate", "extract", "repair", "look"]

_CHECKS_READ = 8_000  # those of a year of daily ones of a dozen wrappers
_POINTS_DRAWN = 24  # no more can be told apart in a small chart


class TemplateSummary(BaseModel):
    """A template of a site in numbers."""

    cluster: str = Field(description="The id of the cluster that the template was found in.")
    site: str
    pages: int
    share: float = Field(description="Share of the site's pages that are made from it.")
    importance: float = Field(description="Grows with the number of pages and with how much they tell.")
    url_patterns: list[str] = Field(description="Regular expressions that the URLs of its pages match.")
    annotated: int = Field(description="How many of its pages are annotated.")
    state: TemplateState
    wrapper: str | None = Field(description="The name of the wrapper that its pages are extracted by.")
    wrapper_version: int | None


class HealthPoint(BaseModel):
    """What a run found when it looked after the wrappers of a site."""

    at: datetime
    healthy: float = Field(description="Share of the checks that found nothing wrong.")


class NextStep(BaseModel):
    """What is best done next about a site."""

    kind: StepKind
    text: str
    cluster: str | None = Field(default=None, description="The template it is about.")
    key: str | None = Field(default=None, description="By which the review is asked for what waits there.")


class SiteSummary(BaseModel):
    """A site in numbers."""

    site: str
    pages: int
    templates: int
    templated: float = Field(description="Share of the pages that were made from one of the templates.")
    wrapped: float = Field(description="Share of the pages whose template has a wrapper.")
    annotated: int = Field(description="How many pages are annotated.")
    wrappers: int
    records: int
    health: Health
    checked_at: datetime | None = Field(description="When a version that is in force was checked last.")
    checks: list[HealthPoint] = Field(description="The latest runs that looked after it, the oldest first.")
    next_step: NextStep


class SiteDetail(SiteSummary):
    """A site and its templates."""

    unclustered: int = Field(description="How many pages are made from none of the templates.")
    template_list: list[TemplateSummary] = Field(description="The largest first.")


def site_summaries(store: Store) -> list[SiteSummary]:
    """All sites by name."""
    clusters: dict[str, list[ClusterSummary]] = defaultdict(list)
    for found in store.cluster_summaries():
        clusters[found.site].append(found)
    known = _Known.of(store, [found for some in clusters.values() for found in some])
    return [_summary(site, clusters[site.name], known) for site in store.sites()]


def site_detail(store: Store, name: str) -> SiteDetail:
    """A site and its templates."""
    site = next((found for found in store.sites() if found.name == name), None)
    if site is None:
        raise NotFound(f"There is no site {name}: the list of sites has all there are.")
    clusters = store.cluster_summaries(name)
    known = _Known.of(store, clusters)
    templates = [_template(found, site.pages, known) for found in clusters]
    summary = _summary(site, clusters, known)
    return SiteDetail(
        **summary.model_dump(),
        unclustered=site.pages - sum(found.pages for found in clusters),
        template_list=sorted(templates, key=lambda template: -template.pages),
    )


def template_summary(store: Store, cluster: str) -> TemplateSummary:
    """A template in numbers."""
    site = site_of_cluster(cluster)
    found = next((one for one in store.cluster_summaries(site) if one.name == cluster), None)
    if found is None:
        raise no_template(store, cluster)
    return _template(found, store.page_count(site), _Known.of(store, [found]))


def template_summaries(store: Store) -> list[TemplateSummary]:
    """All templates of all sites in numbers."""
    clusters = store.cluster_summaries()
    known = _Known.of(store, clusters)
    pages = {site.name: site.pages for site in store.sites()}
    return [_template(found, pages.get(found.site, 0), known) for found in clusters]


def no_template(store: Store, cluster: str) -> NotFound:
    """What is said of a template that there is not."""
    site = site_of_cluster(cluster)
    count = len(store.cluster_summaries(site))
    if not count:
        return NotFound(f"There is no template {cluster}: no site of that name was clustered.")
    return NotFound(f"There is no template {cluster}: {site} has {count}, and its page lists them.")


class _Known(NamedTuple):
    """What is known of all wrappers: of what version they are, and how they do.

    `of_clusters` has the wrapper of each cluster, `at_home` the wrappers of each site, `outcomes` what checks
    of these came to, and `records` counts those of each site.
    """

    versions: Mapping[str, int]
    at_home: Mapping[str, AbstractSet[str]]
    of_clusters: Mapping[str, str]
    broken: frozenset[str]
    checked: Mapping[str, datetime]
    outcomes: Mapping[str, Sequence[PastCheck]]
    records: Mapping[str, int]

    @classmethod
    def of(cls, store: Store, clusters: Sequence[ClusterSummary]) -> _Known:
        wrappers = store.wrappers()
        versions = {wrapper.name: wrapper.version for wrapper in wrappers}
        sites = {wrapper.name: wrapper.site for wrapper in wrappers}
        # What was found of an earlier version is outdated: the wrapper was repaired or learned anew since.
        newest = [
            found for found in store.newest_outcomes() if found.version in (None, versions.get(found.wrapper))
        ]
        broken = {found.wrapper for found in newest if not found.is_healthy}
        outcomes: dict[str, list[PastCheck]] = defaultdict(list)
        for found in store.run_history.checks(_CHECKS_READ):
            if found.wrapper in sites:
                outcomes[sites[found.wrapper]].append(found)
        records: Counter[str] = Counter()
        for (site, _), count in records_held(store, sites).items():
            records[site] += count
        return cls(
            versions,
            wrappers_by_site(wrappers),
            _wrappers_of(store, clusters, versions),
            frozenset(broken | store.wrappers_in_repair()),
            {found.wrapper: found.at for found in sorted(newest, key=lambda found: found.at)},
            outcomes,
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
    """The wrapper of each cluster that has one: called as it, or the one that gave records of its pages."""
    others = [found for found in clusters if found.name not in versions]
    gave = store.wrappers_of([url for found in others for url in found.ends])
    named = {found.name: found.name for found in clusters if found.name in versions}
    return named | {
        found.name: gave[url] for found in others for url in found.ends if gave.get(url) in versions
    }


def records_held(store: Store, sites: Mapping[str, str]) -> Counter[tuple[str, str]]:
    """How many records hold now, by site and wrapper; no record is read for it.

    `sites` has the site of each wrapper that is in force.
    """
    in_force = store.extractions()
    asked_for = {run_id: site for site, run_id in in_force.items()}
    records: Counter[tuple[str, str]] = Counter()
    for run_id, rows in store.run_history.tallies(list(asked_for)):
        for wrapper, counts in ExtractionCounts.from_rows(rows).wrappers.items():
            site = asked_for[run_id] or sites.get(wrapper)
            if site is not None and wrapper in sites and in_force.get(site, run_id) == run_id:
                records[site, wrapper] += counts.records
    return records


class SiteRecords(NamedTuple):
    """How many records of a site hold now."""

    site: str
    records: int


def sites_with_records(store: Store) -> list[SiteRecords]:
    """The sites of which records hold now, by name; no page is counted for it."""
    found: Counter[str] = Counter()
    for (site, _), count in records_held(store, {one.name: one.site for one in store.wrappers()}).items():
        found[site] += count
    return [SiteRecords(site, count) for site, count in sorted(found.items()) if count]


def _template(found: ClusterSummary, site_pages: int, known: _Known) -> TemplateSummary:
    wrapper = known.of_clusters.get(found.name)
    state: TemplateState = "learning" if found.annotated else "new"
    if wrapper is not None:
        state = "broken" if wrapper in known.broken else "live"
    return TemplateSummary(
        cluster=found.name,
        site=found.site,
        pages=found.pages,
        share=found.pages / max(1, site_pages),
        importance=found.importance,
        url_patterns=list(found.url_patterns),
        annotated=found.annotated,
        state=state,
        wrapper=wrapper,
        wrapper_version=None if wrapper is None else known.versions[wrapper],
    )


def _summary(site: Site, clusters: Sequence[ClusterSummary], known: _Known) -> SiteSummary:
    wrappers = known.at_home.get(site.name, set())
    templates = [_template(found, site.pages, known) for found in clusters]
    checked = [known.checked[name] for name in wrappers if name in known.checked]
    health: Health = "healthy" if checked else "unchecked"
    if wrappers & known.broken:
        health = "broken"
    return SiteSummary(
        site=site.name,
        pages=site.pages,
        templates=len(templates),
        templated=sum(one.share for one in templates),
        wrapped=sum(one.share for one in templates if one.wrapper is not None),
        annotated=site.annotated,
        wrappers=site.wrappers,
        records=known.records.get(site.name, 0),
        health=health,
        checked_at=max(checked, default=None),
        checks=check_points(known.outcomes.get(site.name, ()))[-_POINTS_DRAWN:],
        next_step=_next_step(templates, known.records.get(site.name, 0)),
    )


def check_points(checks: Iterable[PastCheck]) -> list[HealthPoint]:
    """Checks run by run."""
    runs: dict[int, list[PastCheck]] = defaultdict(list)
    for found in checks:
        runs[found.run_id].append(found)
    return [
        HealthPoint(at=some[-1].at, healthy=sum(found.is_healthy for found in some) / len(some))
        for some in runs.values()
    ]


def _next_step(templates: Sequence[TemplateSummary], records: int) -> NextStep:
    by_importance = sorted(templates, key=lambda one: -one.importance)
    first: dict[TemplateState, TemplateSummary] = {}
    for one in by_importance:
        first.setdefault(one.state, one)
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
    left = next((one for one in by_importance if one.wrapper is None), None)
    # What is left may be worth a person's time if it is more than a few pages.
    if left is not None and left.share >= WORTH_ANNOTATING:
        return NextStep(kind="annotate", text="Annotate another one", cluster=left.cluster)
    return NextStep(kind="look", text="See its records")


WORTH_ANNOTATING = 0.05
"""Share of a site's pages from which on a template without a wrapper is suggested to be annotated."""


class PathSupport(BaseModel):
    """A path that most pages of a template have."""

    path: str = Field(description="Tags from the root to the element, with slashes between them.")
    text: str | None = Field(description="Template text that stands there, if this is about one.")
    support: int = Field(description="How many of the pages looked at have it.")
    share: float


class TemplateDetail(TemplateSummary):
    """A template with what its pages share."""

    pages_seen: int = Field(description="How many of its pages were looked at to find what they share.")
    essential: int = Field(description="How many paths and texts most of its pages have.")
    template_text: list[str] = Field(description="The texts that most pages have at the same path.")


class TagCount(BaseModel):
    """How often a tag stands on the pages of a template."""

    tag: str
    per_page: float = Field(description="How often it stands on a page, on average.")
    share: float = Field(description="Share of the pages looked at that have it.")
    essential: bool = Field(description="Whether most pages have it.")


class SamplePage(BaseModel):
    """A page that is worth a person's time."""

    url: str
    page: int = Field(description="The number of the page in the workspace.")
    annotated: bool
    gain: float = Field(description="How much it shows that the pages before it do not.")
    covered: float = Field(description="Share of what varies that is seen once it is annotated.")


class ComparedPath(BaseModel):
    """A path of one or both of two templates, with the share of pages that have it in each."""

    path: str
    text: str | None
    a: float
    b: float


class ComparedTag(BaseModel):
    """How often a tag stands on a page of each of two templates, on average."""

    tag: str
    a: float
    b: float


class Comparison(BaseModel):
    """Two templates beside each other."""

    a: TemplateSummary
    b: TemplateSummary
    layout_similarity: float = Field(
        description="Of the paths of elements that are essential in either, the share that are in both."
    )
    text_similarity: float = Field(
        description="Of the template texts that either has, wherever they stand, the share that both have."
    )
    only_a: list[ComparedPath]
    both: list[ComparedPath]
    only_b: list[ComparedPath]


def stored_template(store: Store, cluster: str) -> Template:
    """What the pages of a cluster share."""
    template = store.templates(site_of_cluster(cluster), cluster).get(cluster)
    if template is None:
        raise no_template(store, cluster)
    return template


def template_detail(store: Store, cluster: str) -> TemplateDetail:
    """A template with what its pages share."""
    summary, template = template_summary(store, cluster), stored_template(store, cluster)
    return TemplateDetail(
        **summary.model_dump(),
        pages_seen=template.pages,
        essential=len(template.essential),
        template_text=list(template.text),
    )


def path_supports(template: Template) -> list[PathSupport]:
    """The essential paths of a template, in the order in which they stand on its pages."""
    return [
        PathSupport(path=one.tags, text=one.text, support=one.support, share=_share(one, template))
        for one in template.essential
    ]


def tag_counts(store: Store, cluster: str, limits: ParseSettings) -> list[TagCount]:
    """The tags of a template's pages, the most frequent first; up to a hundred pages are read for it."""
    clusters, addresses = store.clusters(cluster)
    if not clusters:
        raise no_template(store, cluster)
    parsed = (parse(page, limits) for page in cluster_pages(store, clusters[0], addresses))
    roots = [root for root in parsed if not isinstance(root, Failure)]
    pages = max(1, len(roots))
    counts = [
        TagCount(
            tag=row.tag,
            per_page=row.occurrences / pages,
            share=row.support / pages,
            essential=row.essential,
        )
        for row in tag_rows(roots)
        if row.page is None
    ]
    return sorted(counts, key=lambda count: (-count.per_page, count.tag))


def sample_pages(store: Store, cluster: str, limits: ParseSettings) -> list[SamplePage]:
    """The pages of a template that are worth a person's time, in the order in which they are."""
    clusters, addresses = store.clusters(cluster)
    if not clusters:
        raise no_template(store, cluster)
    sample = sample_cluster(store, clusters[0], addresses, SAMPLE_PAGES, limits=limits)
    site = clusters[0].site
    chosen = [PageAddress(site, sample.urls[one.page]) for one in sample.order]
    annotated = set(store.annotated_pages())
    return [
        SamplePage(
            url=address.url, page=page, annotated=address in annotated, gain=one.gain, covered=one.covered
        )
        for one, address, page in zip(sample.order, chosen, store.page_ids(chosen), strict=True)
    ]


def compared(store: Store, a: str, b: str) -> Comparison:
    """Two templates beside each other."""
    templates = stored_template(store, a), stored_template(store, b)
    shares = [
        {(one.tags, one.text): _share(one, template) for one in template.essential} for template in templates
    ]
    rows = [
        ComparedPath(path=key[0], text=key[1], a=shares[0].get(key, 0.0), b=shares[1].get(key, 0.0))
        for key in dict.fromkeys([*shares[0], *shares[1]])
    ]
    return Comparison(
        a=template_summary(store, a),
        b=template_summary(store, b),
        layout_similarity=_similarity(
            *({one.tags for one in template.essential if one.text is None} for template in templates)
        ),
        text_similarity=_similarity(*(set(template.text) for template in templates)),
        only_a=[row for row in rows if not row.b],
        both=[row for row in rows if row.a and row.b],
        only_b=[row for row in rows if not row.a],
    )


def compared_tags(store: Store, a: str, b: str, limits: ParseSettings) -> list[ComparedTag]:
    """The tags of two templates' pages, those that differ most in number first."""
    of_a, of_b = ({count.tag: count.per_page for count in tag_counts(store, name, limits)} for name in (a, b))
    rows = [
        ComparedTag(tag=tag, a=of_a.get(tag, 0.0), b=of_b.get(tag, 0.0)) for tag in of_a.keys() | of_b.keys()
    ]
    return sorted(rows, key=lambda row: (-abs(row.a - row.b), row.tag))


def _similarity(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def _share(path: TemplatePath, template: Template) -> float:
    return path.support / max(1, template.pages)
