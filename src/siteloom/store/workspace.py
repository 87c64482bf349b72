"""Opening a workspace: the folder, its tables, and that the two belong together."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.exc import SQLAlchemyError

from siteloom.errors import NoWorkspace, StoreError
from siteloom.store import schema
from siteloom.store.database import connect, postgres_url, sqlite_url
from siteloom.store.migrate import upgrade
from siteloom.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

    from siteloom.config import StoreSettings

_MARKER_FILE = "workspace.json"


class _Marker(NamedTuple):
    """What a workspace's folder says of itself."""

    id: str
    database: str  # sqlite or postgresql


def _now() -> datetime:
    return datetime.now(UTC)


def workspace_exists(settings: StoreSettings) -> bool:
    """Whether there is a workspace in the folder that the settings name."""
    return (Path(settings.workspace) / _MARKER_FILE).exists()


def open_store(
    settings: StoreSettings, *, create: bool = False, clock: Callable[[], datetime] = _now
) -> Store:
    """The store of a workspace, its tables brought up to date; with `create`, made if it is not there."""
    folder = Path(settings.workspace)
    url = postgres_url(settings.url) if settings.url else sqlite_url(folder)
    if not create and not workspace_exists(settings):
        raise NoWorkspace(
            f"There is no workspace at {folder}: make one with siteloom init, or name the pages to read."
        )
    try:
        marker = _marker(folder, url.get_backend_name())
        engine = connect(url)
        backup = upgrade(engine)
        _claim(engine, marker, clock())
    except OSError as error:
        raise StoreError(f"The workspace {folder} cannot be opened: {error.strerror or error}.") from error
    except SQLAlchemyError as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise StoreError(f"The database {url!r} cannot be opened: {reason}.") from error
    return Store(folder, engine, clock, backup)


def _marker(folder: Path, database: str) -> _Marker:
    """The marker of a workspace, written first if there is none."""
    file = folder / _MARKER_FILE
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"id": str(uuid.uuid4()), "database": database}) + "\n", encoding="utf-8")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        marker = _Marker(found["id"], found["database"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} is damaged: restore it from a backup.") from error
    if marker.database != database:
        hint = "give its address with --store" if marker.database == "postgresql" else "leave --store out"
        raise StoreError(f"The workspace {folder} keeps its tables in {marker.database}: {hint}.")
    return marker


def _claim(engine: Engine, marker: _Marker, now: datetime) -> None:
    """Make the tables this workspace's, or make sure that they are.

    A writer cuts off what a pack holds beyond what the tables know, so tables
    must never meet the packs of another workspace.
    """
    with engine.connect() as connection:
        owner = connection.execute(select(schema.workspace.c.id)).scalar()
    if owner is None:
        with engine.begin() as connection:
            connection.execute(insert(schema.workspace).values(id=marker.id, created_at=now))
    elif owner != marker.id:
        raise StoreError(
            "These tables belong to another workspace: use that workspace's folder, or another database."
        )
