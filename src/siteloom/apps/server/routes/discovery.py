"""The table of a template, made without examples: looked at, its columns renamed and made attributes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import render, share
from siteloom.apps.server.request_types import LARGEST_ID, not_found, site_of_cluster, whole_number
from siteloom.apps.server.routes.jobs import JobView
from siteloom.apps.server.security import Editor, Viewer, Visitor
from siteloom.apps.server.shared_state import services_of
from siteloom.core.errors import NotFound, StoreError, UsageError
from siteloom.operations.discover import checked_names, state_of_pages
from siteloom.store.queries.jobs import Job
from siteloom.store.store import Store

router = APIRouter()

# A column that fewer rows have is rarely a field of a record.
_OFTEN_FILLED = 0.25


class ColumnView(BaseModel):
    """A column: `name` is what its attribute would be called, `filled` the share of rows with a value."""

    label: str
    name: str
    type: str
    filled: float
    xpath: str
    examples: list[str]


class RowView(BaseModel):
    """A row: the page that it is of, and a text for each column."""

    url: str
    cells: list[str]


class TableView(BaseModel):
    """The columns of a table and its first rows; rows are records of lists if these have an XPath."""

    job: int = Field(description="The job that made it.")
    columns: list[ColumnView]
    rows: list[RowView]
    row_count: int
    pages: int = Field(description="How many pages were read for it.")
    of_pages: int = Field(description="How many pages the template has.")
    failed: int = Field(description="How many of those that were read could not be.")
    record_xpath: str
    edition: int | None = Field(description="Another number when templates were found anew.")
    made_at: datetime
    outdated: str | None = Field(description="A sentence, if pages or template have changed since.")


class DiscoverView(BaseModel):
    """The newest table of a template, if one was made, and the newest job that makes one."""

    cluster: str
    table: TableView | None
    job: JobView | None


@router.get(
    "/api/clusters/{cluster:path}/discover",
    tags=["templates"],
    summary="The table of a template",
    responses=not_found(),
)
def api_discover(request: Request, _: Viewer, cluster: str) -> DiscoverView:
    """What varies between the pages of a template, as the newest job `discover` has found it."""
    return _view(services_of(request).store, cluster)


@router.get("/clusters/{cluster:path}/discover", include_in_schema=False)
def discover_page(request: Request, visitor: Viewer, cluster: str) -> HTMLResponse:
    """The table of a template, with columns to take."""
    return _page(request, visitor, _view(services_of(request).store, cluster), _Said())


@router.post("/clusters/{cluster:path}/discover/start", include_in_schema=False)
def start_discovering(request: Request, visitor: Editor, cluster: str) -> RedirectResponse:
    """Have the table made, and show how far it is."""
    services_of(request).jobs.submit("discover", {"cluster": cluster}, visitor.name)
    return RedirectResponse(f"/clusters/{quote(cluster)}/discover", 303)


@router.post("/clusters/{cluster:path}/discover", include_in_schema=False)
async def accept(request: Request, visitor: Editor, cluster: str) -> Response:
    """Have attributes made of columns; what was typed stays if it cannot be done."""
    form = await request.form()
    taken = {number for text in form.getlist("take") if (number := whole_number(text)) is not None}
    typed = {
        number: text
        for name, text in form.items()
        if isinstance(text, str)
        and name.startswith("name-")
        and (number := whole_number(name.removeprefix("name-"))) is not None
    }
    table = whole_number(form.get("table"))
    return await run_in_threadpool(_accept, request, visitor, cluster, _Said(frozenset(taken), typed, table))


class _Said(NamedTuple):
    """What a person has said about columns, by their numbers: which to take, and what they are called.

    `table` is the job that made the table that was looked at.
    """

    taken: frozenset[int] = frozenset()
    names: Mapping[int, str] = {}
    table: int | None = None
    problem: str = ""


def _accept(request: Request, visitor: Visitor, cluster: str, said: _Said) -> Response:
    services = services_of(request)
    view = _view(services.store, cluster)
    if view.table is not None and view.table.job != said.table:
        said = _said_of(view.table.columns, _table(services.store, cluster, said.table), said)
        return _page(request, visitor, view, said._replace(problem=_OVERTAKEN), status=409)
    columns, edition = ([], None) if view.table is None else (view.table.columns, view.table.edition)
    try:
        wanted = {"cluster": cluster, "names": _labels_by_name(columns, said), "edition": edition}
        job = services.jobs.submit("accept_columns", wanted, visitor.name)
    except UsageError as error:
        return _page(request, visitor, view, said._replace(problem=str(error)), status=400)
    return RedirectResponse(f"/jobs/{job.id}", 303)


_OVERTAKEN = "The table was made anew since you looked at it: see what is ticked now, then send it again."


def _said_of(columns: list[ColumnView], before: TableView | None, said: _Said) -> _Said:
    """What was said about the columns of an earlier table, said of those that are called the same now."""
    numbers = {column.label: number for number, column in enumerate(columns)}
    known = {} if before is None else {n: numbers.get(one.label) for n, one in enumerate(before.columns)}
    return _Said(
        frozenset(now for n in said.taken if (now := known.get(n)) is not None),
        {now: text for n, text in said.names.items() if (now := known.get(n)) is not None},
    )


def _labels_by_name(columns: list[ColumnView], said: _Said) -> dict[str, str]:
    names: dict[str, str] = {}
    for number, column in enumerate(columns):
        if number in said.taken:
            name = " ".join(said.names.get(number, column.name).split())
            if name in names:
                raise UsageError(f"Two columns would both be called {name}: give each its own name.")
            names[name] = column.label
    return checked_names(names)


class _Shown(NamedTuple):
    """A column as the page shows it."""

    number: int
    column: ColumnView
    bar: str
    name: str
    is_taken: bool


def _page(
    request: Request, visitor: Visitor, view: DiscoverView, said: _Said, status: int = 200
) -> HTMLResponse:
    columns = [] if view.table is None else view.table.columns
    shown = [
        _Shown(
            number,
            column,
            svg_charts.share_bar(column.filled, f"{share(column.filled)} of the rows have a value"),
            said.names.get(number, column.name),
            number in said.taken,
        )
        for number, column in enumerate(columns)
    ]
    often = [one for one in shown if one.column.filled >= _OFTEN_FILLED]
    return render(
        request,
        "discover.html",
        visitor,
        status=status,
        cluster=view.cluster,
        site=site_of_cluster(view.cluster),
        table=view.table,
        job=view.job,
        often=often or shown,
        rarely=[one for one in shown if one not in often] if often else [],
        problem=said.problem,
    )


def _view(store: Store, cluster: str) -> DiscoverView:
    if not store.has_cluster(cluster):
        raise NotFound(f"There is no template {cluster}.")
    newest = store.jobs.newest("discover", {"cluster": cluster})
    done = (
        newest
        if newest and newest.state == "done"
        else store.jobs.newest("discover", {"cluster": cluster}, "done")
    )
    return DiscoverView(
        cluster=cluster,
        table=None if done is None else _table_of(store, cluster, done),
        job=None if newest is None else JobView.of(newest),
    )


def _table(store: Store, cluster: str, job_id: int | None) -> TableView | None:
    """The table that a job has made of a cluster, if it did."""
    job = store.jobs.get(job_id) if job_id is not None and job_id <= LARGEST_ID else None
    if job is None or job.kind != "discover" or job.arguments.get("cluster") != cluster:
        return None
    return _table_of(store, cluster, job)


def _table_of(store: Store, cluster: str, job: Job) -> TableView | None:
    """What a job has made; what a server of another version has left may not be readable any more."""
    result = job.result
    if not isinstance(result, dict) or job.ended_at is None:
        return None
    try:
        outdated = _why_outdated(store, cluster, result)
        return TableView(**(result | {"job": job.id, "made_at": job.ended_at, "outdated": outdated}))
    except (KeyError, TypeError, ValidationError):
        return None


def _why_outdated(store: Store, cluster: str, result: Mapping[str, Any]) -> str | None:
    if result["edition"] != store.cluster_edition(cluster):
        return "The templates were found anew since this table was made."
    try:
        state = state_of_pages(store, result["site"], (row["url"] for row in result["rows"]))
    except StoreError:
        return "Pages of this table have gone since it was made."
    return None if state == result["state"] else "Pages have changed since this table was made."
