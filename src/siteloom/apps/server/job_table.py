"""Every kind of job: the operations that can run as one."""

from siteloom.apps.server.job_kinds import JobKind
from siteloom.apps.server.operation_jobs import job_kind
from siteloom.apps.server.uploaded_seeds import seeds_kind
from siteloom.operations.operation_table import OPERATIONS

KINDS: dict[str, JobKind] = {
    **{operation.name: job_kind(operation) for operation in OPERATIONS.values() if operation.is_job},
    "seeds": seeds_kind(OPERATIONS["seeds"]),
}
"""Each kind by name."""
