"""The application and what it is made of."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

import siteloom
from siteloom.apps.server import metrics
from siteloom.apps.server.error_pages import handle_errors
from siteloom.apps.server.event_stream import Changes
from siteloom.apps.server.job_runner import JobRunner
from siteloom.apps.server.metrics import Metrics, Observed
from siteloom.apps.server.openapi import describe
from siteloom.apps.server.routes import (
    accounts,
    annotation,
    archived_page_content,
    archived_pages,
    discovery,
    entities,
    forget,
    jobs,
    known_records,
    monitoring,
    page_import,
    records,
    review,
    runs,
    search,
    sites,
    trials,
    wrappers,
)
from siteloom.apps.server.routes.forget import drop_forgotten
from siteloom.apps.server.security import protect
from siteloom.apps.server.shared_state import Services
from siteloom.apps.server.upload_folder import remove_old_uploads
from siteloom.operations.annotation.session_registry import Workbenches

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from os import PathLike, stat_result

    from starlette.responses import Response
    from starlette.types import Scope

    from siteloom.core.settings import Settings
    from siteloom.store.queries.jobs import Job
    from siteloom.store.store import Store


def create_app(store: Store, settings: Settings) -> FastAPI:
    """The application for an open store; whoever makes it closes the store."""
    app = FastAPI(
        title="Siteloom",
        version=siteloom.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # it would be told to anyone: see describing
        lifespan=_with_running_jobs,
    )
    observed = Metrics(store)

    def on_job_end(job: Job) -> None:
        observed.observe_job(job)
        drop_forgotten(app.state.services)

    app.state.services = Services(
        store,
        settings,
        JobRunner(store, settings, Changes(), on_job_end),
        observed,
        Workbenches(store, settings.parse),
        Changes(),
    )
    protect(app, settings.serve.max_upload_bytes)
    app.add_middleware(Observed, metrics=observed)
    handle_errors(app)
    app.mount("/static", _Static(packages=[("siteloom.apps.server", "static")]), name="static")
    describe(app)
    # Sites come last, because the path of a cluster would also match the paths of others.
    for router in (
        accounts.router,
        accounts.api_router,
        archived_page_content.router,
        annotation.api_router,
        annotation.router,
        jobs.router,
        metrics.router,
        page_import.router,
        trials.router,
        archived_pages.router,
        wrappers.router,
        review.router,
        search.router,
        discovery.router,
        known_records.router,
        entities.router,
        forget.router,
        monitoring.router,
        runs.router,
        records.router,
        sites.router,
    ):
        app.include_router(router)
    return app


@asynccontextmanager
async def _with_running_jobs(app: FastAPI) -> AsyncIterator[None]:
    """Run jobs for as long as the application is there."""
    runner: JobRunner = app.state.services.jobs
    await run_in_threadpool(remove_old_uploads, app.state.services.store.folder)
    await run_in_threadpool(runner.start)
    try:
        yield
    finally:
        await run_in_threadpool(runner.stop)


class _Static(StaticFiles):
    """Files that browsers keep, but ask about each time: those of the next version have the same names."""

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        return response
