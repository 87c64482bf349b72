"""What the parts of the server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from siteloom.server.records.found import FoundRecords
from siteloom.store import Passwords

if TYPE_CHECKING:
    from fastapi import Request

    from siteloom.config import Settings
    from siteloom.server.jobs.runner import JobRunner
    from siteloom.server.observing import Metrics
    from siteloom.server.streaming import Changes
    from siteloom.store import Store
    from siteloom.workbench import Workbenches


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


def services_of(request: Request) -> Services:
    """The services of the application that a request came to."""
    return cast("Services", request.app.state.services)
