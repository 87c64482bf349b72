"""What the parts of the server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from siteloom.apps.server.result_cache import FoundRecords
from siteloom.apps.server.trial_pages import TrialPages
from siteloom.store.queries.accounts import Passwords

if TYPE_CHECKING:
    from fastapi import Request

    from siteloom.apps.server.event_stream import Changes
    from siteloom.apps.server.job_runner import JobRunner
    from siteloom.apps.server.metrics import Metrics
    from siteloom.core.settings import Settings
    from siteloom.operations.annotation.session_registry import Workbenches
    from siteloom.store.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """What a request is answered with; `annotated` tells whenever something was said at a workbench."""

    store: Store
    settings: Settings
    jobs: JobRunner
    metrics: Metrics
    benches: Workbenches
    annotated: Changes
    passwords: Passwords = Passwords()
    found_records: FoundRecords = field(default_factory=FoundRecords)
    trials: TrialPages = field(default_factory=TrialPages)


def services_of(request: Request) -> Services:
    """The services of the application that a request came to."""
    return cast("Services", request.app.state.services)
