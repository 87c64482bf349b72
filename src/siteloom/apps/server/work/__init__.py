"""The work that jobs do, by kind; each runs in a process of its own."""

from siteloom.apps.server.work import (
    discovering,
    fetching,
    forgetting,
    growing,
    indexing,
    ingesting,
    linking,
    mending,
    wrapping,
)
from siteloom.apps.server.work.kinds import JobKind, checked_arguments, form_arguments

KINDS: dict[str, JobKind] = {
    **discovering.KINDS,
    **fetching.KINDS,
    **forgetting.KINDS,
    **growing.KINDS,
    **indexing.KINDS,
    **ingesting.KINDS,
    **linking.KINDS,
    **mending.KINDS,
    **wrapping.KINDS,
}
"""Each kind by name."""

__all__ = ["KINDS", "JobKind", "checked_arguments", "form_arguments"]
