"""Known records: looked at before they are kept; sites are wrapped from them, accepted or refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import render, share
from siteloom.apps.server.request_types import VersionIfAny, not_found
from siteloom.apps.server.security import Editor, Viewer
from siteloom.apps.server.shared_state import Services, services_of
from siteloom.apps.server.views.known_records import (
    AttributeVerdict,
    SeedsView,
    SiteEvidence,
    TablePreview,
    known_columns,
    seeds_view,
    site_evidence,
    sites_to_look_at,
    sites_to_wrap,
    table_preview,
)
from siteloom.apps.server.views.sites import sites_with_records
from siteloom.core.errors import NotFound, SiteloomError
from siteloom.operations.bootstrap import AcceptSiteRequest, accept_site
from siteloom.operations.context import Context

router = APIRouter()

_VERSION = Query(description="The version of its wrapper that you have looked at; refused if it has another.")
_in_api = partial(router.get, tags=["seeds"], responses=not_found())


@router.get("/api/seeds", tags=["seeds"], summary="Known records, and sites tried with them")
def api_seeds(request: Request, _: Viewer) -> SeedsView:
    """All sources of known records in numbers, and what became of each site that was tried with them."""
    return seeds_view(services_of(request).store)


@_in_api("/api/seeds/uploads/{upload}", summary="What is in a table")
def api_table(request: Request, _: Editor, upload: str) -> TablePreview:
    """What is in an uploaded table: its columns, its first rows, by which attributes things are known."""
    return table_preview(services_of(request).store.folder, upload)


@router.post(
    "/api/seeds/sites/{site:path}/accept", tags=["seeds"], summary="Accept a site", responses=not_found()
)
def api_accept(
    request: Request, visitor: Editor, site: str, version: Annotated[VersionIfAny, _VERSION] = None
) -> SiteEvidence:
    """Say that you have looked at a site that was wrapped from known records, and that it is right."""
    services = services_of(request)
    context = Context(store=services.store, settings=services.settings, author=visitor.name)
    accept_site(context, AcceptSiteRequest(site=site, version=version))
    return site_evidence(services.store, site)


@_in_api("/api/seeds/sites/{site:path}", summary="What speaks for the wrapper of a site")
def api_evidence(request: Request, _: Viewer, site: str) -> SiteEvidence:
    """What became of a site that was tried with known records: a verdict on each attribute, with examples."""
    return site_evidence(services_of(request).store, site)


@router.get("/seeds", include_in_schema=False)
def seeds_page(request: Request, visitor: Viewer) -> HTMLResponse:
    """Known records by source, and what became of sites."""
    store = services_of(request).store
    seeds = seeds_view(store)
    known_of = {one.source for one in seeds.sources}
    giving = [one for one in sites_with_records(store) if one.site not in known_of]
    return render(
        request,
        "seeds.html",
        visitor,
        seeds=seeds,
        waiting=[one for one in seeds.sites if one.waits],
        untried=sum(not one.has_wrapper and one.state is None for one in sites_to_wrap(store, known_of)),
        giving=giving,
        has_pages=store.page_urls.has_pages(),
        sources=[
            (
                one,
                [
                    (
                        name,
                        svg_charts.share_bar(
                            count / one.records, f"{share(count / one.records)} have {name}"
                        ),
                    )
                    for name, count in one.attributes.items()
                ],
            )
            for one in seeds.sources
        ],
    )


@router.get("/seeds/uploads/{upload}", include_in_schema=False)
def table_page(request: Request, visitor: Editor, upload: str) -> HTMLResponse:
    """What is in an uploaded table, before anything is kept."""
    try:
        table = table_preview(services_of(request).store.folder, upload)
    except NotFound:
        raise
    except SiteloomError as error:
        return render(request, "seeds_unreadable.html", visitor, status=400, problem=str(error))
    return render(
        request,
        "seeds_table.html",
        visitor,
        table=table,
        columns=[
            (
                column,
                svg_charts.share_bar(
                    column.filled / table.records, f"{share(column.filled / table.records)} filled"
                ),
            )
            for column in table.columns
        ],
    )


@router.post("/seeds/uploads/{upload}", include_in_schema=False)
async def take_in_from_form(request: Request, visitor: Editor, upload: str) -> RedirectResponse:
    """Have the records of a table taken in, with its columns renamed."""
    form = await request.form()
    fields = {name: str(form[name]).strip() for name in form}
    core = [text for text in form.getlist("core") if isinstance(text, str)]
    return await run_in_threadpool(_take_in, services_of(request), upload, fields, core, visitor.name)


def _take_in(
    services: Services, upload: str, fields: Mapping[str, str], core: list[str], author: str
) -> RedirectResponse:
    """Start the job. Each column has three fields, called by its number: its name, a new one, a separator."""
    renamed: dict[str, str] = {}
    several: dict[str, str] = {}
    for field, name in fields.items():
        kind, _, number = field.partition("-")
        if kind != "column":
            continue
        if (new := fields.get(f"name-{number}", "")) and new != name:
            renamed[name] = new
        if separator := fields.get(f"separator-{number}", ""):
            several[name] = separator
    arguments = {
        "upload": upload,
        "source": fields.get("source", ""),
        "renamed": renamed,
        "several": several,
        "core": [renamed.get(name, name) for name in core],
    }
    return RedirectResponse(f"/jobs/{services.jobs.submit('seeds', arguments, author).id}", 303)


@router.get("/seeds/wrap", include_in_schema=False)
def wrap_page(
    request: Request,
    visitor: Viewer,
    core: Annotated[list[str], Query()] = [],  # noqa: B006 - FastAPI makes a new one each time
    site: Annotated[list[str], Query()] = [],  # noqa: B006
) -> HTMLResponse:
    """By which attributes, and on which sites, to look for what is known."""
    store = services_of(request).store
    columns, proposed = known_columns(store)
    names = {column.name for column in columns}
    return render(
        request,
        "seeds_wrap.html",
        visitor,
        columns=columns,
        core=[name for name in core if name in names] or list(proposed),
        sites=sites_to_wrap(store, {one.source for one in store.seed_sources()}),
        chosen=site,
    )


@router.get("/seeds/sites/{site:path}", include_in_schema=False)
def evidence_page(request: Request, visitor: Viewer, site: str) -> HTMLResponse:
    """What became of a site, and why."""
    store = services_of(request).store
    evidence = site_evidence(store, site)
    clusters = sorted(store.cluster_summaries(site), key=lambda one: -one.importance)
    unfound: dict[str, list[str]] = {}
    for one in filter(_is_unfound, evidence.verdicts):
        unfound.setdefault(one.reason, []).append(one.name)
    return render(
        request,
        "seeds_site.html",
        visitor,
        evidence=evidence,
        rows=[(one, _agreement_bar(one)) for one in evidence.verdicts if not _is_unfound(one)],
        unfound=unfound,
        cluster=clusters[0].name if clusters else None,
        is_extracted=any(one.site == site for one in sites_with_records(store)),
        others=[one for one in sites_to_look_at(store) if one.site != site],
    )


@router.post("/seeds/sites/{site:path}/accept", include_in_schema=False)
def accept_from_form(
    request: Request, visitor: Editor, site: str, version: Annotated[VersionIfAny, _VERSION] = None
) -> RedirectResponse:
    """Accept a site, and show what is next."""
    api_accept(request, visitor, site, version)
    return RedirectResponse(f"/seeds/sites/{quote(site)}", 303)


def _is_unfound(one: AttributeVerdict) -> bool:
    """Whether there is nothing to see of an attribute."""
    return one.verdict == "refused" and not one.examples


def _agreement_bar(one: AttributeVerdict) -> Markup:
    told = f"{share(one.agreement)} agree, {share(one.shuffled)} by chance"
    parts = [
        svg_charts.Part(0, one.agreement, f"Agree: {share(one.agreement)}"),
        svg_charts.Part(
            0, min(one.shuffled, one.agreement), f"By chance: {share(one.shuffled)}", "part shared"
        ),
    ]
    return svg_charts.bar(parts, told)
