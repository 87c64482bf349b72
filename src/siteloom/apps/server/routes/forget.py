"""Pages and endpoints: preview and confirm erasure; drop cached pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.request_types import not_found
from siteloom.apps.server.security import Admin, Visitor
from siteloom.apps.server.shared_state import services_of
from siteloom.core.errors import StoreBusy
from siteloom.operations.context import Context
from siteloom.operations.forget import ForgetPreview, ForgetRequest, preview
from siteloom.store.erasure.erasure import ErasureTargets, erasure_targets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.apps.server.shared_state import Services


router = APIRouter()

_NEITHER = not_found("One of the names is no site, and no URL of a page.")


@router.get("/api/forget", tags=["jobs"], summary="What would be forgotten", responses=_NEITHER)
def api_would_forget(
    request: Request,
    _: Admin,
    name: Annotated[list[str], Query(description="Sites, or URLs of pages.", min_length=1)],
) -> ForgetPreview:
    """How much of each kind a job of the kind `forget` would remove; nothing is changed."""
    return _preview(services_of(request), name)


@router.get("/forget", include_in_schema=False)
def forget_page(request: Request, visitor: Admin, name: str) -> HTMLResponse:
    """The question whether it is meant."""
    store = services_of(request).store
    return _question(request, visitor, name, erasure_targets(store, [name]))


@router.post("/forget", include_in_schema=False)
def forget(
    request: Request, visitor: Admin, name: Annotated[str, Form()], typed: Annotated[str, Form()] = ""
) -> Response:
    """Start the job and show its page, or ask again if the name of a site was not typed."""
    services = services_of(request)
    named = erasure_targets(services.store, [name])
    if named.sites and typed.strip() != name:
        return _question(request, visitor, name, named, typed, "This is not the name of the site.")
    job = services.jobs.submit("forget", {"names": [name]}, visitor.name)
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _question(
    request: Request, visitor: Visitor, name: str, named: ErasureTargets, typed: str = "", problem: str = ""
) -> HTMLResponse:
    services = services_of(request)
    try:
        would = _preview(services, [name])
    except StoreBusy:
        would = None  # who writes need not be waited for to have it done later
    return render(
        request,
        "forget.html",
        visitor,
        status=422 if problem else 200,
        name=name,
        is_site=bool(named.sites),
        would=would,
        typed=typed,
        problem=problem,
    )


def _preview(services: Services, names: Iterable[str]) -> ForgetPreview:
    context = Context(store=services.store, settings=services.settings)
    return preview(context, ForgetRequest(names=tuple(names)))


def drop_forgotten(services: Services) -> None:
    """Hold nothing any more that was read before the store has forgotten something, if it has.

    Jobs of other kinds forget as well what the settings of retention say was kept for long enough.
    """
    services.benches.drop_forgotten()
    forgetting = services.store.erasure_mark()
    services.trials.drop_forgotten(forgetting)
    services.found_records.drop_forgotten(forgetting)
    services.annotated.tell()  # whoever listens at a workbench lets go of it
    services.store.engine.dispose()  # connections of SQLite keep pages of the database until they are used
