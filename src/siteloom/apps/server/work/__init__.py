"""The work that jobs do, by kind; each runs in a process of its own."""

from siteloom.apps.server.job_kinds import JobKind, checked_arguments, form_arguments
from siteloom.apps.server.operation_jobs import job_kind
from siteloom.apps.server.work import (
    discovering,
    growing,
    indexing,
    linking,
    mending,
    wrapping,
)
from siteloom.operations.operation_table import OPERATIONS

KINDS: dict[str, JobKind] = {
    **discovering.KINDS,
    **growing.KINDS,
    **indexing.KINDS,
    **linking.KINDS,
    **mending.KINDS,
    **wrapping.KINDS,
    **{operation.name: job_kind(operation) for operation in OPERATIONS.values()},
}
"""Each kind by name."""

__all__ = ["KINDS", "JobKind", "checked_arguments", "form_arguments"]
