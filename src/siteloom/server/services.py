"""What the parts of the server share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from fastapi import Request

    from siteloom.config import Settings
    from siteloom.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """What a request is answered with: the open store, and the settings of the workspace."""

    store: Store
    settings: Settings


def services_of(request: Request) -> Services:
    """The services of the application that a request came to."""
    return cast("Services", request.app.state.services)
