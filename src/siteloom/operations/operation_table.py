"""The table of operations. Add an operation here, and a parity case in tests/operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.operations.cluster import ClusterRequest, ClusterResult, cluster

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
    for operation in (Operation("cluster", cluster, ClusterRequest, ClusterResult, "Find templates"),)
}
"""Each operation by its name."""
