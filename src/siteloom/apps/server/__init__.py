"""The web application: pages for people, an API for programs, on the same functions as the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

    from siteloom.core.settings import Settings
    from siteloom.store.store import Store


def create_app(store: Store, settings: Settings) -> FastAPI:
    """The application for an open store; whoever makes it closes the store."""
    from siteloom.apps.server import app  # noqa: PLC0415 - the processes of jobs need nothing of the web

    return app.create_app(store, settings)


__all__ = ["create_app"]
