"""The application and what it is made of."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

import siteloom
from siteloom.server import observing
from siteloom.server.accounts import api as accounts_api
from siteloom.server.accounts import pages as accounts
from siteloom.server.adding import routes as adding
from siteloom.server.adding import uploads
from siteloom.server.adding.upload_folder import remove_old_uploads
from siteloom.server.annotating import api as workbench_api
from siteloom.server.annotating import page as annotate_page
from siteloom.server.archive import page_routes as page_view
from siteloom.server.archive import routes as archive
from siteloom.server.describing import describe
from siteloom.server.discover import routes as discovering
from siteloom.server.entities import routes as entities
from siteloom.server.errors import handle_errors
from siteloom.server.forgetting import routes as forgetting
from siteloom.server.forgetting.memory import drop_forgotten
from siteloom.server.health import performance_routes as performance
from siteloom.server.health import routes as health
from siteloom.server.jobs import routes as jobs
from siteloom.server.jobs.runner import JobRunner
from siteloom.server.observing import Metrics, Observed
from siteloom.server.records import routes as records
from siteloom.server.review import routes as review
from siteloom.server.search import routes as searching
from siteloom.server.security import protect
from siteloom.server.seeds import routes as seeds
from siteloom.server.services import Services
from siteloom.server.sites import routes as sites
from siteloom.server.streaming import Changes
from siteloom.server.wrappers import routes as wrappers
from siteloom.workbench import Workbenches

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from os import PathLike, stat_result

    from starlette.responses import Response
    from starlette.types import Scope

    from siteloom.config import Settings
    from siteloom.store import Job, Store


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
    metrics = Metrics(store)

    def on_job_end(job: Job) -> None:
        metrics.observe_job(job)
        drop_forgotten(app.state.services)

    app.state.services = Services(
        store,
        settings,
        JobRunner(store, settings, Changes(), on_job_end),
        metrics,
        Workbenches(store),
        Changes(),
    )
    protect(app, settings.serve.max_upload_bytes)
    app.add_middleware(Observed, metrics=metrics)
    handle_errors(app)
    app.mount("/static", _Static(packages=[("siteloom.server", "static")]), name="static")
    describe(app)
    app.include_router(accounts.router)
    app.include_router(accounts_api.router)
    app.include_router(archive.router)
    app.include_router(workbench_api.router)
    app.include_router(annotate_page.router)
    app.include_router(jobs.router)
    app.include_router(observing.router)
    app.include_router(uploads.router)
    app.include_router(adding.router)
    app.include_router(page_view.router)
    app.include_router(wrappers.router)
    app.include_router(review.router)
    app.include_router(searching.router)
    app.include_router(discovering.router)
    app.include_router(seeds.router)
    app.include_router(entities.router)
    app.include_router(forgetting.router)
    app.include_router(health.router)
    app.include_router(performance.router)
    app.include_router(records.router)
    app.include_router(sites.router)  # last: its path of a cluster would take those of others
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
