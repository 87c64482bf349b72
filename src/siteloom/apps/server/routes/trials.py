"""Pages and endpoints: try one page without keeping it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field

from siteloom.apps.server.request_types import not_found
from siteloom.apps.server.routes.archived_page_content import Remote, frame_of, tree_of
from siteloom.apps.server.routes.archived_pages import AskedOf, render_reading
from siteloom.apps.server.security import Editor, Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.trial_pages import only_page
from siteloom.apps.server.uploaded_pages import uploaded_pages
from siteloom.apps.server.views.archived_pages import read_trial
from siteloom.core.errors import UsageError
from siteloom.sources.crawling.url_filters import checked_url

router = APIRouter()


class TrialOrder(BaseModel):
    """The page to try: its URL, an upload of its HTML, or both."""

    url: str | None = None
    upload: str | None = Field(default=None, description="The upload of an HTML file; it is removed.")


class Trial(BaseModel):
    """Where to see what is found on a page that is tried."""

    page: str = Field(description="The path of the page that shows it.")


@router.post("/api/trials", tags=["pages"], responses=not_found("There is no such upload."))
def try_page(request: Request, order: TrialOrder, _: Editor) -> Trial:
    """Try the wrappers on one page that is not kept: it is held in memory for at most an hour."""
    services = services_of(request)
    url = checked_url(order.url) if order.url else None
    if order.upload is not None:
        arguments = {"upload": order.upload, "url": url}
        with uploaded_pages(services.store, services.settings, arguments) as upload:
            page = only_page(item for source in upload["sources"] for item in source.read())
    elif url is not None:
        page = services.trials.fetch(url, services.settings)
    else:
        raise UsageError("Give the URL of a page, or a file with its HTML.")
    return Trial(page=f"/pages/trial-{services.trials.add(page)}")


@router.get("/pages/trial-{key}", include_in_schema=False)
def trial_page(request: Request, visitor: Viewer, key: str, asked: AskedOf) -> HTMLResponse:
    """A page that is tried, with what is found on it highlighted."""
    services = services_of(request)
    reading = read_trial(services.store, services.settings.parse, services.trials.page(key), asked)
    return render_reading(request, visitor, reading, asked, trial=f"trial-{key}")


@router.get("/pages/trial-{key}/tree", include_in_schema=False)
def trial_tree(request: Request, _: Viewer, key: str, remote: Remote = False) -> Response:
    """The tree of a page that is tried, without resources: the archive has none of it."""
    page = services_of(request).trials.page(key)
    return tree_of(page, remote=remote)


@router.get("/pages/trial-{key}/frame", include_in_schema=False)
def trial_frame(request: Request, _: Viewer, key: str, remote: Remote = False) -> Response:
    """An empty document to put the tree of a page that is tried into."""
    return frame_of(services_of(request).trials.page(key), remote=remote)
