"""The table of operations. Add an operation here, and a parity case in tests/operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.operations.cluster import ClusterRequest, ClusterResult, cluster
from siteloom.operations.monitor import MonitorRequest, MonitorResult, monitor
from siteloom.operations.relearn import RelearnRequest, RelearnResult, relearn
from siteloom.operations.review import (
    ClusterReviewRequest,
    ClusterReviewResult,
    ReviewRequest,
    ReviewResult,
    accept_repair,
    dismiss_cluster,
    leave_out_lost,
    reject_repair,
    reopen_repair,
    restore_cluster,
)
from siteloom.operations.watch import WatchRequest, WatchResult, watch
from siteloom.operations.wrapper_versions import (
    HistoryRequest,
    HistoryResult,
    RollbackRequest,
    RollbackResult,
    history,
    rollback,
)

if TYPE_CHECKING:
    from siteloom.operations.context import Context
    from siteloom.store.queries.accounts import Role


class Operation(NamedTuple):
    """An operation, which can run as a job unless `is_job` is false.

    `name` is the kind of the job, `title` what pages call it, and `role` who may start it.
    """

    name: str
    function: Callable[[Context, Any], Any]
    request: type
    result: type
    title: str
    role: Role = "editor"
    is_job: bool = True


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("cluster", cluster, ClusterRequest, ClusterResult, "Find templates"),
        Operation("watch", watch, WatchRequest, WatchResult, "Choose pages to watch"),
        Operation("monitor", monitor, MonitorRequest, MonitorResult, "Look for changes"),
        Operation("relearn", relearn, RelearnRequest, RelearnResult, "Repair wrappers"),
        Operation("accept", accept_repair, ReviewRequest, ReviewResult, "Accept a repair"),
        Operation("reject", reject_repair, ReviewRequest, ReviewResult, "Reject a repair"),
        Operation("leave_out", leave_out_lost, ReviewRequest, ReviewResult, "Leave out lost attributes"),
        Operation("reopen", reopen_repair, ReviewRequest, ReviewResult, "Undo a decision about a repair"),
        Operation(
            "dismiss", dismiss_cluster, ClusterReviewRequest, ClusterReviewResult, "Dismiss a template"
        ),
        Operation(
            "restore", restore_cluster, ClusterReviewRequest, ClusterReviewResult, "Restore a template"
        ),
        Operation(
            "history", history, HistoryRequest, HistoryResult, "Wrapper versions", "viewer", is_job=False
        ),
        Operation("rollback", rollback, RollbackRequest, RollbackResult, "Roll back a wrapper"),
    )
}
"""Each operation by its name."""
