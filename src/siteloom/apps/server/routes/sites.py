"""Sites and their templates: pages to look at, and the same as JSON under /api.

The names of sites and clusters have slashes in them, so these routes take whatever paths the more special
ones of other routers leave: this router must come last.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import render, share
from siteloom.apps.server.request_types import not_found, site_of_cluster
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.path_tree import tree_rows
from siteloom.apps.server.views.sites import (
    ComparedTag,
    Comparison,
    PathSupport,
    SamplePage,
    SiteDetail,
    SiteSummary,
    TagCount,
    TemplateDetail,
    compared,
    compared_tags,
    path_supports,
    sample_pages,
    site_detail,
    site_summaries,
    stored_template,
    tag_counts,
    template_detail,
)
from siteloom.operations.status import TemplateState

router = APIRouter()

SiteOrder = Literal["name", "pages", "records", "health"]
TemplateOrder = Literal["pages", "importance", "state"]

_STATES: tuple[TemplateState, ...] = ("broken", "learning", "new", "live")
_in_api = partial(router.get, tags=["templates"], responses=not_found())

OneCluster = Annotated[str, Query(description="The id of a cluster.")]
OtherCluster = Annotated[str, Query(description="The id of another cluster, of this site or another.")]


@router.get("/api/sites", tags=["sites"], summary="All sites in numbers")
def api_sites(request: Request, _: Viewer) -> list[SiteSummary]:
    """All sites of the workspace by name, each with what is best done next about it."""
    return site_summaries(services_of(request).store)


@router.get(
    "/api/sites/{site:path}", tags=["sites"], summary="A site and its templates", responses=not_found()
)
def api_site(request: Request, _: Viewer, site: str) -> SiteDetail:
    """A site in numbers, and its templates, the largest first."""
    return site_detail(services_of(request).store, site)


@_in_api("/api/clusters/{cluster:path}/paths", summary="The essential paths of a template")
def api_paths(request: Request, _: Viewer, cluster: str) -> list[PathSupport]:
    """The paths and texts that most pages of a template have, in the order in which they stand there."""
    return path_supports(stored_template(services_of(request).store, cluster))


@_in_api("/api/clusters/{cluster:path}/tags", summary="The tag counts of a template")
def api_tags(request: Request, _: Viewer, cluster: str) -> list[TagCount]:
    """How often each tag stands on the pages of a template; up to a hundred of them are read for it."""
    services = services_of(request)
    return tag_counts(services.store, cluster, services.settings.parse)


@_in_api("/api/clusters/{cluster:path}/sample", summary="The pages of a template to annotate first")
def api_sample(request: Request, _: Viewer, cluster: str) -> list[SamplePage]:
    """The pages that together show most of what differs from page to page, the most useful first."""
    services = services_of(request)
    return sample_pages(services.store, cluster, services.settings.parse)


@_in_api("/api/clusters/{cluster:path}", summary="A template")
def api_cluster(request: Request, _: Viewer, cluster: str) -> TemplateDetail:
    """A template in numbers, with the text that its pages share."""
    return template_detail(services_of(request).store, cluster)


@_in_api("/api/compare", summary="Two templates side by side")
def api_compare(request: Request, _: Viewer, a: OneCluster, b: OtherCluster) -> Comparison:
    """Which paths and texts two templates share, and which only one of them has."""
    return compared(services_of(request).store, a, b)


@_in_api("/api/compare/tags", summary="The tags of two templates")
def api_compare_tags(request: Request, _: Viewer, a: OneCluster, b: OtherCluster) -> list[ComparedTag]:
    """How often each tag stands on a page of either template, the greatest differences first."""
    services = services_of(request)
    return compared_tags(services.store, a, b, services.settings.parse)


@router.get("/", include_in_schema=False)
def home(request: Request, visitor: Viewer, sort: SiteOrder = "name", search: str = "") -> HTMLResponse:
    """All sites."""
    sites = site_summaries(services_of(request).store)
    shown = [site for site in sites if search.casefold() in site.site.casefold()]
    match sort:
        case "pages":
            shown.sort(key=lambda site: -site.pages)
        case "records":
            shown.sort(key=lambda site: -site.records)
        case "health":
            shown.sort(key=lambda site: ("broken", "unchecked", "healthy").index(site.health))
    return render(
        request,
        "sites.html",
        visitor,
        all_sites=len(sites),
        sites=[(site, _coverage_bar(site), svg_charts.health_line(site.checks)) for site in shown],
        sort=sort,
        search=search,
    )


@router.get("/sites/{site:path}", include_in_schema=False)
def site_page(
    request: Request,
    visitor: Viewer,
    site: str,
    sort: TemplateOrder = "pages",
    state: TemplateState | None = None,
) -> HTMLResponse:
    """A site and its templates."""
    store = services_of(request).store
    detail = site_detail(store, site)
    templates = store.templates(site)
    shown = [one for one in detail.template_list if state in (None, one.state)]
    if sort == "importance":
        shown.sort(key=lambda one: -one.importance)
    elif sort == "state":
        shown.sort(key=lambda one: _STATES.index(one.state))
    return render(
        request,
        "site.html",
        visitor,
        site=detail,
        cards=[
            (one, svg_charts.outline(templates[one.cluster].essential, f"Layout of {one.cluster}"))
            for one in shown
        ],
        coverage=svg_charts.coverage_steps(
            [one.pages for one in detail.template_list],
            detail.pages,
            [one.cluster for one in detail.template_list],
        ),
        coverage_bar=_coverage_bar(detail),
        health_line=svg_charts.health_line(detail.checks),
        states=[(name, sum(one.state == name for one in detail.template_list)) for name in _STATES],
        sort=sort,
        state=state,
    )


@router.get("/clusters/{cluster:path}/tags", include_in_schema=False)
def tags_page(request: Request, visitor: Viewer, cluster: str) -> HTMLResponse:
    """The tag counts of a template."""
    counts = api_tags(request, visitor, cluster)
    most = max((count.per_page for count in counts), default=1.0)
    rows = [
        (
            count,
            svg_charts.share_bar(count.per_page / most, f"{count.tag}: {count.per_page:.2f} on a page"),
            svg_charts.share_bar(count.share, f"{count.tag}: on {share(count.share)} of the pages"),
        )
        for count in counts
    ]
    return render(
        request, "template_tags.html", visitor, cluster=cluster, site=site_of_cluster(cluster), rows=rows
    )


@router.get("/clusters/{cluster:path}/sample", include_in_schema=False)
def sample_page(request: Request, visitor: Viewer, cluster: str) -> HTMLResponse:
    """The pages of a template to annotate first."""
    rows = [
        (page, svg_charts.share_bar(page.covered, f"{share(page.covered)} of what varies is seen by then"))
        for page in api_sample(request, visitor, cluster)
    ]
    return render(
        request, "template_sample.html", visitor, cluster=cluster, site=site_of_cluster(cluster), rows=rows
    )


@router.get("/clusters/{cluster:path}", include_in_schema=False)
def cluster_page(request: Request, visitor: Viewer, cluster: str) -> HTMLResponse:
    """A template: what its pages share."""
    store = services_of(request).store
    detail = template_detail(store, cluster)
    template = stored_template(store, cluster)
    others = [one.name for one in store.cluster_summaries(detail.site) if one.name != cluster]
    return render(
        request,
        "template.html",
        visitor,
        template=detail,
        site=detail.site,
        outline=svg_charts.outline(template.essential, f"Layout of {cluster}"),
        rows=[
            (row, svg_charts.share_bar(row.share, f"on {share(row.share)} of the pages"))
            for row in tree_rows(path_supports(template))
        ],
        others=others,
    )


@router.get("/compare", include_in_schema=False)
def compare_page(request: Request, visitor: Viewer, a: str = "", b: str = "") -> Response:
    """Two templates side by side, or which to choose."""
    store = services_of(request).store
    choice = store.cluster_summaries()
    if not a or not b:
        return render(request, "compare_choice.html", visitor, choice=choice, a=a, b=b)
    comparison = compared(store, a, b)
    outlines = [
        svg_charts.outline(stored_template(store, name).essential, f"Layout of {name}") for name in (a, b)
    ]
    parts = [len(comparison.only_a), len(comparison.both), len(comparison.only_b)]
    return render(
        request,
        "compare.html",
        visitor,
        comparison=comparison,
        outlines=outlines,
        bar=_parts_bar(parts, a, b),
        groups=[
            (f"Only in {a}", comparison.only_a),
            ("In both", comparison.both),
            (f"Only in {b}", comparison.only_b),
        ],
        choice=choice,
        query=urlencode({"a": a, "b": b}),
    )


@router.get("/compare/tags", include_in_schema=False)
def compare_tags_page(request: Request, visitor: Viewer, a: str, b: str) -> HTMLResponse:
    """The tags of two templates side by side."""
    counts = api_compare_tags(request, visitor, a, b)
    most = max((max(count.a, count.b) for count in counts), default=1.0)
    rows = [
        (
            count,
            svg_charts.share_bar(count.a / most, f"{count.tag} in {a}: {count.a:.2f} on a page"),
            svg_charts.share_bar(count.b / most, f"{count.tag} in {b}: {count.b:.2f} on a page"),
        )
        for count in counts
    ]
    return render(
        request, "compare_tags.html", visitor, a=a, b=b, rows=rows, query=urlencode({"a": a, "b": b})
    )


def _coverage_bar(site: SiteSummary) -> Markup:
    told = (
        f"{share(site.templated)} of the pages are in templates, {share(site.wrapped)} have a wrapper"
        if site.templates
        else "No templates were found yet"
    )
    parts = [
        svg_charts.Part(0, site.templated, f"In templates: {share(site.templated)}", "part behind"),
        svg_charts.Part(0, site.wrapped, f"With a wrapper: {share(site.wrapped)}"),
    ]
    return svg_charts.bar(parts, told)


def _parts_bar(parts: list[int], a: str, b: str) -> Markup:
    whole = max(1, sum(parts))
    ends = [sum(parts[:number]) / whole for number in range(4)]
    names = (f"Only in {a}", "In both", f"Only in {b}")
    told = [f"{name}: {count}" for name, count in zip(names, parts, strict=True)]
    drawn = [
        svg_charts.Part(ends[number], ends[number + 1], told[number], f"part {colour}")
        for number, colour in enumerate(("first", "shared", "second"))
    ]
    return svg_charts.bar(drawn, "; ".join(told))
