"""Jobs: started, watched and cancelled, on pages and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from siteloom.apps.server.event_stream import TOO_MANY, StreamEvent, event_stream
from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.job_kinds import form_arguments
from siteloom.apps.server.job_runner import CANCELLING, JobRunner
from siteloom.apps.server.operation_jobs import job_result
from siteloom.apps.server.request_types import LARGEST_ID
from siteloom.apps.server.security import Editor, Viewer, Visitor, check_role, has_role
from siteloom.apps.server.shared_state import services_of
from siteloom.store.erasure.row_erasure import FORGOTTEN
from siteloom.store.queries.jobs import Job, JobState

router = APIRouter()

_JOBS_SHOWN = 50
_MOST_JOBS = 1_000


class JobOrder(BaseModel):
    """A job to be done: which kind, and what it is to be done with."""

    kind: str
    arguments: dict[str, Any] = {}


class JobProgress(BaseModel):
    """How a job does: `result` is what came of it, `problem` a sentence why nothing did.

    What it was asked to do it with may be very long, and is told once: see JobView.
    """

    id: int
    kind: str
    author: str
    state: JobState
    done: int
    total: int | None
    message: str
    result: dict[str, Any] | None
    problem: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    url: str

    @classmethod
    def of(cls, job: Job) -> Self:
        """A job that is kept, with where its page is."""
        told = job._asdict()
        result = told.pop("result")
        problem = result if isinstance(result, str) else _LOST if job.state == "lost" else None
        found = result if isinstance(result, dict) else None
        return cls(**told, result=found, problem=problem, url=f"/jobs/{job.id}")


class JobView(JobProgress):
    """A job as programs see it, with what it was asked to do it with."""

    arguments: dict[str, Any]


_LOST = "The server ended before it did: start it again."


@router.get("/api/jobs")
def list_jobs(
    request: Request,
    _: Viewer,
    state: JobState | None = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_JOBS)] = _JOBS_SHOWN,
) -> list[JobProgress]:
    """The newest jobs, the newest first, without what came of those that are done."""
    return [JobProgress.of(job) for job in services_of(request).store.jobs.latest(limit, state)]


@router.post("/api/jobs", status_code=202)
def start_job(request: Request, order: JobOrder, visitor: Editor) -> JobView:
    """Have a job done when it is its turn; what cannot be undone is for admins."""
    _check_role(request, order.kind, visitor)
    return JobView.of(services_of(request).jobs.submit(order.kind, order.arguments, visitor.name))


@router.get("/api/jobs/{job_id:int}")
def show_job(request: Request, job_id: int, _: Viewer) -> JobView:
    """A job as it is now."""
    return JobView.of(_found(request, job_id))


@router.post("/api/jobs/{job_id:int}/cancel", status_code=202)
def cancel_job(request: Request, job_id: int, visitor: Editor) -> JobView:
    """Have a job end soon; one that has ended stays as it is. Who may start it may cancel it."""
    _check_role(request, _found(request, job_id).kind, visitor)
    services_of(request).jobs.cancel(job_id)
    return JobView.of(_found(request, job_id))


@router.get("/api/jobs/{job_id:int}/events", response_class=EventSourceResponse, responses=TOO_MANY)
async def follow_job(request: Request, job_id: int, _: Viewer) -> EventSourceResponse:
    """Events with how the job does now and whenever that has changed: `progress`, and `ended` as the last."""
    await run_in_threadpool(_found, request, job_id)
    services = services_of(request)

    def look() -> StreamEvent | None:
        job = services.store.jobs.get(job_id)
        if job is None:
            return None
        name = "ended" if job.has_ended else "progress"
        return StreamEvent(name, JobProgress.of(job).model_dump_json(), is_last=job.has_ended)

    return event_stream(request, services.jobs.changes, look)


@router.get("/jobs", include_in_schema=False)
def jobs_page(request: Request, visitor: Viewer, state: JobState | None = None) -> HTMLResponse:
    """The newest jobs."""
    services = services_of(request)
    return render(
        request,
        "jobs.html",
        visitor,
        jobs=services.store.jobs.latest(_JOBS_SHOWN, state),
        kinds=services.jobs.kinds,
        state=state,
        is_all=state is None,
    )


@router.post("/jobs", include_in_schema=False)
async def start_from_form(request: Request, visitor: Editor) -> RedirectResponse:
    """Have a job done, and show its page."""
    form = await request.form()
    fields = {name: [text for text in form.getlist(name) if isinstance(text, str)] for name in form}
    kind = "".join(fields.get("kind", ())[:1])
    _check_role(request, kind, visitor)
    return await run_in_threadpool(_start, services_of(request).jobs, kind, fields, visitor.name)


def _start(jobs: JobRunner, kind: str, fields: Mapping[str, list[str]], author: str) -> RedirectResponse:
    arguments = form_arguments(jobs.kinds[kind], fields) if kind in jobs.kinds else {}
    return RedirectResponse(f"/jobs/{jobs.submit(kind, arguments, author).id}", 303)


@router.get("/jobs/{job_id:int}", include_in_schema=False)
def job_page(request: Request, job_id: int, visitor: Viewer) -> HTMLResponse:
    """How far a job is, or what came of it."""
    job = _found(request, job_id)
    kinds = services_of(request).jobs.kinds
    return render(
        request,
        "job.html",
        visitor,
        job=job,
        view=JobView.of(job),
        outcome=job_result(job),
        kinds=kinds,
        may_change=job.kind in kinds and has_role(visitor, kinds[job.kind].role),
        is_nameless=FORGOTTEN in (job.arguments.get("names") or ()),
        is_being_cancelled=job.message == CANCELLING,
    )


@router.post("/jobs/{job_id:int}/cancel", include_in_schema=False)
def cancel_from_form(request: Request, job_id: int, visitor: Editor) -> RedirectResponse:
    """Have a job end soon, and show its page."""
    _check_role(request, _found(request, job_id).kind, visitor)
    services_of(request).jobs.cancel(job_id)
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.post("/jobs/{job_id:int}/again", include_in_schema=False)
def start_again_from_form(request: Request, job_id: int, visitor: Editor) -> RedirectResponse:
    """Have done what a job was to do, and show the page of the new one."""
    job = _found(request, job_id)
    _check_role(request, job.kind, visitor)
    again = services_of(request).jobs.submit(job.kind, job.arguments, visitor.name)
    return RedirectResponse(f"/jobs/{again.id}", 303)


def _found(request: Request, job_id: int) -> Job:
    job = services_of(request).store.jobs.get(job_id) if job_id <= LARGEST_ID else None
    if job is None:
        raise HTTPException(404, f"There is no job {job_id}.")
    return job


def _check_role(request: Request, kind: str, visitor: Visitor) -> None:
    """Refuse those who may not have a kind of job done; of one that is not there, others tell."""
    if known := services_of(request).jobs.kinds.get(kind):
        check_role(visitor, known.role)
