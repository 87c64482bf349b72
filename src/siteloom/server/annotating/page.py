"""The page on which people annotate; all that happens there is done by its script and the workbench's API."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from siteloom.errors import NotFound
from siteloom.server.addresses import site_of_cluster
from siteloom.server.rendering import render
from siteloom.server.security import Viewer
from siteloom.server.services import services_of

router = APIRouter(include_in_schema=False)


@router.get("/clusters/{cluster:path}/annotate")
def annotate(request: Request, cluster: str, visitor: Viewer) -> HTMLResponse:
    """The annotator of a template; viewers may look, but not change anything."""
    if not services_of(request).store.has_cluster(cluster):
        raise NotFound(f"There is no template {cluster}.")
    site = site_of_cluster(cluster)
    return render(request, "annotate.html", visitor, cluster=cluster, site=site)
