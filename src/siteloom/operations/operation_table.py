"""The table of operations. Add an operation here, and a parity case in tests/operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.operations.cluster import ClusterRequest, ClusterResult, cluster
from siteloom.operations.crawl import CrawlRequest, CrawlResult, crawl
from siteloom.operations.forget import ForgetRequest, ForgetResult, forget
from siteloom.operations.ingest import IngestRequest, IngestResult, ingest

if TYPE_CHECKING:
    from siteloom.operations.context import Context
    from siteloom.store.queries.accounts import Role


class Operation(NamedTuple):
    """An operation that can run as a job.

    `name` is the kind of the job, `title` what pages call it, and `role` who may start it.
    """

    name: str
    function: Callable[[Context, Any], Any]
    request: type
    result: type
    title: str
    role: Role = "editor"


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("ingest", ingest, IngestRequest, IngestResult, "Import pages"),
        Operation("fetch", crawl, CrawlRequest, CrawlResult, "Fetch pages"),
        Operation("cluster", cluster, ClusterRequest, ClusterResult, "Find templates"),
        Operation("forget", forget, ForgetRequest, ForgetResult, "Forget sites or pages", "admin"),
    )
}
"""Each operation by its name."""
