"""What programs ask that watch over the server: whether it is well, and what it has done.

No name of a site or of a person is told, and no more labels than there are routes and kinds of jobs.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from sqlalchemy import func, select

import siteloom
from siteloom.apps.server.request_types import path_in_log
from siteloom.apps.server.shared_state import services_of
from siteloom.core.errors import StoreError
from siteloom.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from siteloom.store.queries.jobs import Job
    from siteloom.store.store import Store

_log = logging.getLogger(__name__)

router = APIRouter()

# A person notices a tenth of a second, and leaves after ten.
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_RELEARN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_JOB_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """What one application has done, in numbers."""

    def __init__(self, store: Store) -> None:
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "siteloom_request_seconds",
            "Seconds from a request to the beginning of its answer.",
            ("method", "route", "status"),
            buckets=_REQUEST_SECONDS,
            registry=self._registry,
        )
        self._jobs = Histogram(
            "siteloom_job_seconds",
            "Seconds from the start of a job to its end.",
            ("kind", "state"),
            buckets=_JOB_SECONDS,
            registry=self._registry,
        )
        self._relearning = Histogram(
            "siteloom_relearn_seconds",
            "Seconds that learning anew after a change of annotations took.",
            buckets=_RELEARN_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_Stored(store))

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method if method in _METHODS else "other", route, status).observe(seconds)

    def observe_job(self, job: Job) -> None:
        """Count a job that has ended, unless it never began."""
        if job.started_at is not None and job.ended_at is not None:
            seconds = (job.ended_at - job.started_at).total_seconds()
            self._jobs.labels(job.kind, job.state).observe(seconds)

    def observe_relearning(self, seconds: float) -> None:
        """Count how long a person waited for what was learned."""
        self._relearning.observe(seconds)

    def text(self) -> bytes:
        """All numbers as Prometheus reads them."""
        return generate_latest(self._registry)


class _Stored(Collector):
    """What is in the store, counted when it is asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> Iterable[Metric]:
        """Nothing: the database is not to be asked for it."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Sites, pages and jobs."""
        with self._store.engine.connect() as connection:
            sites = connection.execute(select(func.count()).select_from(schema.sites)).scalar_one()
            pages = connection.execute(select(func.count()).select_from(schema.urls)).scalar_one()
        yield GaugeMetricFamily("siteloom_sites", "Sites in the workspace.", sites)
        yield GaugeMetricFamily(
            "siteloom_addresses", "Addresses of pages, stylesheets and images in the workspace.", pages
        )
        jobs = GaugeMetricFamily("siteloom_jobs", "Jobs by kind and state.", labels=("kind", "state"))
        for (kind, state), count in self._store.jobs.counts().items():
            jobs.add_metric((kind, state), count)
        yield jobs


class Observed:
    """Counts requests, and writes each to the log. Answers pass as they come, part by part."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def send_observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                # A stream of events goes on for as long as someone listens, so it is not its end that counts.
                seconds = time.perf_counter() - began
                status: int = message["status"]
                self._metrics.observe_request(scope["method"], _route(scope), status, seconds)
                _log.info("%s %s: %d in %.3f s", scope["method"], path_in_log(scope), status, seconds)
            await send(message)

        await self._app(scope, receive, send_observed)


def _route(scope: Scope) -> str:
    """The path of the route as it was written, or where its files begin, so that there are only so many."""
    return getattr(scope.get("route"), "path", None) or scope.get("root_path") or "none"


@router.get("/health")
def health(request: Request) -> JSONResponse:
    """Whether the server can do its work."""
    told: dict[str, Any] = {"status": "ok", "version": siteloom.__version__}
    try:
        with services_of(request).store.engine.connect() as connection:
            connection.execute(select(schema.workspace.c.id)).one()
    except StoreError:
        _log.exception("the database does not answer")
        # Not the sentence of the error, which names the database: anyone may ask.
        told |= {"status": "failing", "detail": "The database does not answer: the server's log says why."}
        return JSONResponse(told, 503)
    return JSONResponse(told)


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """What the server has done, for Prometheus."""
    return Response(services_of(request).metrics.text(), media_type=CONTENT_TYPE_LATEST)
