"""Search over pages and records, for people and for programs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.request_types import not_found
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.search import (
    MOST_PAGES,
    SearchView,
    facets_to_choose,
    marked,
    search_link,
    search_view,
)
from siteloom.core.errors import NotFound, UsageError
from siteloom.operations.context import Context
from siteloom.operations.search import SearchRequest
from siteloom.store.queries.jobs import Job

router = APIRouter()

# Whoever pastes a whole text is served with the beginning of it; links to other hits have it all.
_MOST_CHARACTERS = 1_000
# As a form sends it that has nothing to say about it.
_NOTHING: Literal[""] = ""

Words = Annotated[str, Query(description='Words that must all be there; "side by side", -without.')]
OneSite = Annotated[str, Query(description="Only this site.")]
OneCluster = Annotated[str, Query(description="Only pages and records of this template.")]
OneAttribute = Annotated[str, Query(description="Only records with the words in this attribute.")]
OneKind = Annotated[Literal["", "page", "record"], Query(description="Only pages, or only records.")]
PageNumber = Annotated[int, Query(ge=1, le=MOST_PAGES, description="Which page of the results, from 1.")]


@router.get("/api/search", tags=["search"], summary="Search pages and records", responses=not_found())
def api_search(
    request: Request,
    _: Viewer,
    words: Words,
    site: OneSite = "",
    cluster: OneCluster = "",
    attribute: OneAttribute = "",
    kind: OneKind = _NOTHING,
    page: PageNumber = 1,
) -> SearchView:
    """Pages and records with some words, the best first; what no job `index` has seen is not found."""
    search = _search(words, site, cluster, attribute, kind)
    return search_view(_context(request), search, page)


@router.get("/search", include_in_schema=False)
def search_page(
    request: Request,
    visitor: Viewer,
    words: Words = "",
    site: OneSite = "",
    cluster: OneCluster = "",
    attribute: OneAttribute = "",
    kind: OneKind = _NOTHING,
    page: PageNumber = 1,
) -> HTMLResponse:
    """One box, and what was found."""
    store = services_of(request).store
    search = _search(words, site, cluster, attribute, kind)
    found: SearchView | None = None
    problem, status = "", 200
    if words.strip():
        try:
            found = search_view(_context(request), search, page)
        except UsageError as error:
            problem, status = str(error), 404 if isinstance(error, NotFound) else 400
    is_current = store.search_index.is_current()
    job = None if is_current else store.jobs.newest("index")
    return render(
        request,
        "search.html",
        visitor,
        status=status,
        search=search,
        found=found,
        problem=problem,
        facets=[] if found is None else facets_to_choose(search, found.facets),
        link=search_link,
        marked=marked,
        has_pages=store.page_urls.has_pages(),
        is_current=is_current,
        job=job,
        starts_itself=visitor.role != "viewer" and _may_start_itself(job),
    )


def _search(
    words: str, site: str, cluster: str, attribute: str, kind: Literal["", "page", "record"]
) -> SearchRequest:
    return SearchRequest(
        text=words[:_MOST_CHARACTERS],
        site=site or None,
        cluster=cluster or None,
        attribute=attribute or None,
        kind=kind or None,
    )


def _context(request: Request) -> Context:
    services = services_of(request)
    return Context(store=services.store, settings=services.settings)


def _may_start_itself(job: Job | None) -> bool:
    """Whether indexing is begun without being asked for: not after it has failed or was cancelled."""
    return job is None or job.state in ("done", "lost")
