"""Waiting for jobs of the web application."""

from __future__ import annotations

from collections.abc import Callable

from siteloom.store.queries.jobs import Job
from siteloom.store.store import Store
from tests.patience import wait_until


def wait_for(store: Store, job_id: int, is_so: Callable[[Job], bool] = lambda job: job.has_ended) -> Job:
    def job() -> Job:
        stored = store.jobs.get(job_id)
        assert stored is not None
        return stored

    wait_until(lambda: is_so(job()))
    return job()
