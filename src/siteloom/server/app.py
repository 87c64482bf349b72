"""The application and what it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

import siteloom
from siteloom.server.services import Services

if TYPE_CHECKING:
    from siteloom.config import Settings
    from siteloom.store import Store


def create_app(store: Store, settings: Settings) -> FastAPI:
    """The application for an open store; whoever makes it closes the store."""
    app = FastAPI(title="Siteloom", version=siteloom.__version__, docs_url=None, redoc_url=None)
    app.state.services = Services(store, settings)
    return app
