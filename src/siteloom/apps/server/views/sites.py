"""Values shown: sites and clusters in numbers, one template, two side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, Field

from siteloom.apps.server.request_types import site_of_cluster
from siteloom.core.errors import NotFound
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.operations.annotation.sample_pages import SAMPLE_PAGES
from siteloom.operations.cluster import cluster_pages, sample_cluster
from siteloom.operations.status import (
    StepKind,
    TemplateState,
    WrapperStates,
    current_records,
    site_status,
    template_status,
)
from siteloom.store.queries.clusters import PageAddress
from siteloom.templates.essential_paths import tag_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.core.model import Template, TemplatePath
    from siteloom.core.settings import ParseSettings
    from siteloom.operations.status import SiteStatus, TemplateStatus
    from siteloom.store.queries.cluster_summaries import ClusterSummary
    from siteloom.store.queries.watches_and_repairs import PastCheck
    from siteloom.store.store import Store


Health = Literal["unchecked", "healthy", "broken"]

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
    for cluster in store.cluster_summaries():
        clusters[cluster.site].append(cluster)
    states = WrapperStates.of(store, [cluster for group in clusters.values() for cluster in group])
    checks = _checks_by_site(store, states)
    return [
        _summary(site_status(site, clusters[site.name], states), states, checks.get(site.name, ()))
        for site in store.sites()
    ]


def site_detail(store: Store, name: str) -> SiteDetail:
    """A site and its templates."""
    site = next((site for site in store.sites() if site.name == name), None)
    if site is None:
        raise NotFound(f"There is no site {name}: the list of sites has all there are.")
    clusters = store.cluster_summaries(name)
    states = WrapperStates.of(store, clusters)
    status = site_status(site, clusters, states)
    summary = _summary(status, states, _checks_by_site(store, states).get(name, ()))
    return SiteDetail(
        **summary.model_dump(),
        unclustered=site.pages - sum(cluster.pages for cluster in clusters),
        template_list=sorted(map(_template, status.templates), key=lambda template: -template.pages),
    )


def template_summary(store: Store, cluster: str) -> TemplateSummary:
    """A template in numbers."""
    site = site_of_cluster(cluster)
    summary = next((one for one in store.cluster_summaries(site) if one.name == cluster), None)
    if summary is None:
        raise no_template(store, cluster)
    return _template(template_status(summary, store.page_count(site), WrapperStates.of(store, [summary])))


def template_summaries(store: Store) -> list[TemplateSummary]:
    """All templates of all sites in numbers."""
    clusters = store.cluster_summaries()
    states = WrapperStates.of(store, clusters)
    pages = {site.name: site.pages for site in store.sites()}
    return [_template(template_status(cluster, pages.get(cluster.site, 0), states)) for cluster in clusters]


def no_template(store: Store, cluster: str) -> NotFound:
    """What is said of a template that there is not."""
    site = site_of_cluster(cluster)
    count = len(store.cluster_summaries(site))
    if not count:
        return NotFound(f"There is no template {cluster}: no site of that name was clustered.")
    return NotFound(f"There is no template {cluster}: {site} has {count}, and its page lists them.")


class SiteRecords(NamedTuple):
    """How many records of a site hold now."""

    site: str
    records: int


def sites_with_records(store: Store) -> list[SiteRecords]:
    """The sites of which records hold now, by name; no page is counted for it."""
    found: Counter[str] = Counter()
    for (site, _), count in current_records(store, {one.name: one.site for one in store.wrappers()}).items():
        found[site] += count
    return [SiteRecords(site, count) for site, count in sorted(found.items()) if count]


def _template(status: TemplateStatus) -> TemplateSummary:
    return TemplateSummary(**(asdict(status) | {"url_patterns": list(status.url_patterns)}))


def _summary(status: SiteStatus, states: WrapperStates, checks: Sequence[PastCheck]) -> SiteSummary:
    wrappers = states.by_site.get(status.site, set())
    checked = [states.checked_at[name] for name in wrappers if name in states.checked_at]
    health: Health = "healthy" if checked else "unchecked"
    if wrappers & states.broken:
        health = "broken"
    return SiteSummary(
        site=status.site,
        pages=status.pages,
        templates=len(status.templates),
        templated=sum(template.share for template in status.templates),
        wrapped=sum(template.share for template in status.templates if template.wrapper is not None),
        annotated=status.annotated,
        wrappers=status.wrappers,
        records=status.records,
        health=health,
        checked_at=max(checked, default=None),
        checks=check_points(checks)[-_POINTS_DRAWN:],
        next_step=NextStep(**asdict(status.next_step)),
    )


def _checks_by_site(store: Store, states: WrapperStates) -> dict[str, list[PastCheck]]:
    """The latest checks of the wrappers of each site."""
    sites = {name: site for site, names in states.by_site.items() for name in names}
    checks: dict[str, list[PastCheck]] = defaultdict(list)
    for check in store.run_history.checks(_CHECKS_READ):
        if check.wrapper in sites:
            checks[sites[check.wrapper]].append(check)
    return checks


def check_points(checks: Iterable[PastCheck]) -> list[HealthPoint]:
    """Checks run by run."""
    runs: dict[int, list[PastCheck]] = defaultdict(list)
    for found in checks:
        runs[found.run_id].append(found)
    return [
        HealthPoint(at=some[-1].at, healthy=sum(found.is_healthy for found in some) / len(some))
        for some in runs.values()
    ]


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
