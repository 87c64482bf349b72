"""The work that jobs do, by kind; each runs in a process of its own."""

from siteloom.apps.server.job_kinds import JobKind, checked_arguments, form_arguments
from siteloom.apps.server.operation_jobs import job_kind
from siteloom.apps.server.uploaded_seeds import seeds_kind
from siteloom.apps.server.work import (
    mending,
)
from siteloom.operations.operation_table import OPERATIONS

KINDS: dict[str, JobKind] = {
    **mending.KINDS,
    **{operation.name: job_kind(operation) for operation in OPERATIONS.values() if operation.is_job},
    "seeds": seeds_kind(OPERATIONS["seeds"]),
}
"""Each kind by name."""

__all__ = ["KINDS", "JobKind", "checked_arguments", "form_arguments"]
