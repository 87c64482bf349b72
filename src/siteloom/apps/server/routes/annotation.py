"""Pages and endpoints: the annotator and its API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import Field
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from siteloom.apps.server.event_stream import TOO_MANY, StreamEvent, event_stream
from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.request_types import site_of_cluster
from siteloom.apps.server.security import Editor, Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.core.errors import NotFound, Overtaken
from siteloom.core.model import Attribute, ValueType
from siteloom.learning.annotation.annotation_questions import Sheet
from siteloom.learning.annotation.clicked_nodes import Pick
from siteloom.operations.annotation.annotation_session import Workbench

api_router = APIRouter(prefix="/api/clusters", tags=["annotating"])


@dataclass(frozen=True, slots=True)
class Said:
    """What someone says of attributes of a page, or of one of its records.

    A list of picks are the values of an attribute, an empty one says that it is absent, and null takes back
    what was said of it. `version` is that of the page that the picks were made on, and `seen` are the
    revisions of the cells that the person looked at.
    """

    version: str
    values: Mapping[str, Sequence[Pick] | None]
    seen: Mapping[str, int]
    record: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class SaidRecords:
    """What someone says of all records of a list page; version and revision are those that they looked at."""

    version: str
    records: Sequence[Mapping[str, Sequence[Pick]]]
    seen: int


@dataclass(frozen=True, slots=True)
class Described:
    """What someone says of an attribute: null is left to be inferred; another name renames it.

    `seen` is the revision of the schema that they looked at.
    """

    seen: int
    name: str | None = None
    multi: bool | None = None
    mandatory: bool | None = None
    constant: bool | None = None
    type: ValueType | None = None


@dataclass(frozen=True, slots=True)
class OvertakenBy:
    """What another has said meanwhile, and how things are now."""

    detail: str
    state: Sheet


@dataclass(frozen=True, slots=True)
class Started:
    """A job that was started."""

    job: int
    url: str


@api_router.get("/{cluster:path}/workbench/known")
def known(request: Request, cluster: str, _: Editor) -> Sheet:
    """The workbench, with suggestions from seeds, embedded data and earlier records."""
    bench = _bench(request, cluster)
    bench.look_up_known()
    return bench.sheet()


@api_router.get("/{cluster:path}/workbench")
def workbench(request: Request, cluster: str, _: Viewer) -> Sheet:
    """The sample pages of a cluster: what was said of them, what is found there, and what to ask."""
    return _bench(request, cluster).sheet()


_OVERTAKEN: dict[int | str, dict[str, Any]] = {
    409: {"model": OvertakenBy, "description": "Another has changed this meanwhile, so nothing was kept."}
}


@api_router.put("/{cluster:path}/pages/{page_id:int}/values", response_model=Sheet, responses=_OVERTAKEN)
def say(
    request: Request, cluster: str, page_id: int, said: Annotated[Said, Body()], editor: Editor
) -> Sheet | Response:
    """Say what the values of attributes of a page are."""
    return _changed(
        request,
        cluster,
        lambda bench: bench.say(
            page_id, said.values, editor.name, version=said.version, record=said.record, seen=said.seen
        ),
    )


@api_router.put("/{cluster:path}/pages/{page_id:int}/records", response_model=Sheet, responses=_OVERTAKEN)
def say_records(
    request: Request, cluster: str, page_id: int, said: Annotated[SaidRecords, Body()], editor: Editor
) -> Sheet | Response:
    """Say what all records of a list page are."""
    return _changed(
        request,
        cluster,
        lambda bench: bench.say_records(
            page_id, said.records, editor.name, version=said.version, seen=said.seen
        ),
    )


@api_router.put("/{cluster:path}/attributes/{name:path}", response_model=Sheet, responses=_OVERTAKEN)
def describe(
    request: Request, cluster: str, name: str, told: Annotated[Described, Body()], editor: Editor
) -> Sheet | Response:
    """Say what is known of an attribute; it is made if there is none of the name."""
    attribute = Attribute(told.multi, told.mandatory, told.constant, told.type)
    return _changed(
        request,
        cluster,
        lambda bench: bench.describe(name, attribute, editor.name, seen=told.seen, new_name=told.name),
    )


@api_router.delete("/{cluster:path}/attributes/{name:path}", response_model=Sheet, responses=_OVERTAKEN)
def remove(request: Request, cluster: str, name: str, seen: str, editor: Editor) -> Sheet | Response:
    """Take an attribute away, with all that was said of it; `seen` is the revision of the workbench."""
    return _changed(request, cluster, lambda bench: bench.remove(name, editor.name, seen=seen))


@api_router.post("/{cluster:path}/finish", status_code=202)
def finish(request: Request, cluster: str, editor: Editor) -> Started:
    """Learn a wrapper from all that was said of the cluster, keep it, and extract the cluster's pages."""
    _bench(request, cluster)
    job = services_of(request).jobs.submit("finish", {"cluster": cluster}, editor.name)
    return Started(job.id, f"/jobs/{job.id}")


@api_router.get("/{cluster:path}/events", response_class=EventSourceResponse, responses=TOO_MANY)
async def events(request: Request, cluster: str, _: Viewer) -> Response:
    """Tells whenever anyone has changed anything: events named `changed`, with the new revision."""
    bench = await run_in_threadpool(_bench, request, cluster)

    def look() -> StreamEvent | None:
        if bench.is_outdated:
            return None  # who asks again gets the one of now, if there is one
        told = {"revision": bench.revision, "author": bench.last_author()}
        return StreamEvent("changed", json.dumps(told))

    return event_stream(request, services_of(request).annotated, look)


def _bench(request: Request, cluster: str) -> Workbench:
    return services_of(request).benches.bench(cluster)


def _changed(request: Request, cluster: str, change: Callable[[Workbench], None]) -> Sheet | Response:
    """The workbench after a change; or, if another was faster, how it is without."""
    bench = _bench(request, cluster)
    try:
        change(bench)
    except Overtaken as error:
        return JSONResponse(jsonable_encoder(OvertakenBy(str(error), bench.sheet())), status_code=409)
    services = services_of(request)
    services.annotated.tell()
    begin = perf_counter()
    sheet = bench.sheet()
    services.metrics.observe_relearning(perf_counter() - begin)
    return sheet


router = APIRouter(include_in_schema=False)


@router.get("/clusters/{cluster:path}/annotate")
def annotate(request: Request, cluster: str, visitor: Viewer) -> HTMLResponse:
    """The annotator of a template; viewers may look, but not change anything."""
    if not services_of(request).store.has_cluster(cluster):
        raise NotFound(f"There is no template {cluster}.")
    site = site_of_cluster(cluster)
    return render(request, "annotate.html", visitor, cluster=cluster, site=site)
