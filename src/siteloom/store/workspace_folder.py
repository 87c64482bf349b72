"""Opening a workspace: the folder, its tables, and that the two belong together."""

from __future__ import annotations

import json
import os
import uuid
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, select

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.database import SQLITE_FILE, connect, postgres_url, sqlite_url
from siteloom.core.errors import NoWorkspace, StoreError
from siteloom.core.file_lock import claim_lock, write_lock
from siteloom.store import schema
from siteloom.store.migrate import has_tables, is_up_to_date, upgrade
from siteloom.store.store import PACKS_FOLDER, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

    from siteloom.core.settings import StoreSettings

MARKER_FILE = "workspace.json"
PACKS_OWNER_FILE = ".workspace-id"
"""A file in the folder of packs that says whose they are: the id of their workspace, and where its folder is.

Copies and backups of a workspace have its id, and only one of them may write to packs that are elsewhere.
"""

_LONGEST_OWNER = 10_000  # bytes; no path is longer


class _Marker(NamedTuple):
    """What a workspace's folder says of itself."""

    id: str
    database: str  # sqlite or postgresql


def _now() -> datetime:
    return datetime.now(UTC)


def workspace_exists(settings: StoreSettings) -> bool:
    """Whether there is a workspace in the folder that the settings name."""
    marker = Path(settings.workspace) / MARKER_FILE
    try:
        return marker.exists()
    except OSError as error:
        raise StoreError(f"The workspace {marker.parent} cannot be opened: {error.strerror}.") from error


def open_store(
    settings: StoreSettings,
    *,
    create: bool = False,
    clock: Callable[[], datetime] = _now,
    on_busy: Callable[[], object] | None = None,
) -> Store:
    """The store of a workspace, its tables brought up to date; with `create`, made if it is not there.

    Who writes to it while another process does is refused, unless `on_busy` says whom to tell of the waiting.
    """
    folder = Path(settings.workspace).absolute()  # the process may change its own folder later
    url = postgres_url(settings.url) if settings.url else sqlite_url(folder)
    if not create and not workspace_exists(settings):
        raise NoWorkspace(
            f"There is no workspace at {folder}: make one with siteloom init, or with siteloom ingest."
        )
    engine = connect(url)
    with ExitStack() as on_failure:
        on_failure.callback(engine.dispose)
        try:
            backup = _make_ready(folder, engine, clock(), on_busy)
        except OSError as error:
            raise StoreError(
                f"The workspace {folder} cannot be opened: {error.strerror or error}."
            ) from error
        on_failure.pop_all()
    return Store(engine, clock, folder, backup, on_busy)


def _make_ready(
    folder: Path, engine: Engine, now: datetime, on_busy: Callable[[], object] | None
) -> str | None:
    """Make what is missing of a workspace or bring it up to date; returns where a backup is, if any was made.

    A writer cuts off what a pack holds beyond what the tables know, so tables
    must never meet the packs of another workspace.
    """
    _check_for_links(folder)
    marker = _read_marker(folder, engine.dialect.name)
    _check_packs(folder, marker)
    if marker is not None and is_up_to_date(engine) and _owner(engine) == marker.id:
        _say_whose_packs(folder, marker)
        return None  # without the lock, so that one can read while another writes
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with write_lock(folder, on_busy), claim_lock(engine):
        marker = _read_marker(folder, engine.dialect.name)  # another process may just have made it
        if marker is None and engine.dialect.name == "sqlite":
            ConfinedFolder(folder).open(SQLITE_FILE, "ab").close()  # or SQLite would let others read it
        owner = _owner(engine)
        if owner is None and any((folder / PACKS_FOLDER).glob("*/*")):
            raise StoreError(
                f"The workspace {folder} has pages that this database knows nothing of: "
                "use the workspace's own database, or restore that from a backup."
            )
        if owner is not None and (marker is None or marker.id != owner):
            raise StoreError(
                "These tables belong to another workspace: use that workspace's folder, or another database."
            )
        backup = upgrade(engine)
        if marker is None:
            marker = _write_marker(folder, engine.dialect.name)
        if owner is None:
            with engine.begin() as connection:
                connection.execute(insert(schema.workspace).values(id=marker.id, created_at=now))
    _say_whose_packs(folder, marker)
    return backup


def _read_marker(folder: Path, database: str) -> _Marker | None:
    file = folder / MARKER_FILE
    try:
        found = json.loads(ConfinedFolder(folder).read(MARKER_FILE))
        marker = _Marker(found["id"], found["database"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} is damaged: restore it from a backup.") from error
    if marker.database != database:
        hint = "give its address with --store" if marker.database == "postgresql" else "leave --store out"
        raise StoreError(f"The workspace {folder} keeps its tables in {marker.database}: {hint}.")
    return marker


def _write_marker(folder: Path, database: str) -> _Marker:
    marker = _Marker(str(uuid.uuid4()), database)
    workspace = ConfinedFolder(folder)
    workspace.make_folder(PACKS_FOLDER)
    workspace.write(f"{PACKS_FOLDER}/{PACKS_OWNER_FILE}", _owner_line(folder, marker))
    workspace.write(MARKER_FILE, f"{json.dumps(marker._asdict())}\n".encode())
    return marker


def _check_for_links(folder: Path) -> None:
    """Raise StoreError if there is a link where Siteloom's own files belong: it would lead to other files."""
    if not folder.is_dir():
        return
    may_write = os.access(folder, os.W_OK)
    with os.scandir(folder) as entries:
        for entry in entries:
            is_file = entry.is_file(follow_symlinks=False)
            if not is_file and not entry.is_dir(follow_symlinks=False) and entry.name != PACKS_FOLDER:
                what = "a symbolic link" if entry.is_symlink() else "neither a file nor a folder"
                raise StoreError(f"{entry.path} is {what}, which no workspace may contain: remove it.")
            # SQLite writes to its own files, wherever else they are.
            if is_file and may_write and _has_another_name(entry):
                raise StoreError(
                    f"{entry.path} has another name, too (a hard link), so writing to it would change that "
                    "as well: put a copy of it in its place."
                )


def _has_another_name(file: os.DirEntry[str]) -> bool:
    try:
        return file.stat(follow_symlinks=False).st_nlink > 1
    except FileNotFoundError:  # another process has just removed it
        return False


def _check_packs(folder: Path, marker: _Marker | None) -> None:
    """Raise StoreError if the folder of packs is a link to packs that are not those of this workspace."""
    packs = folder / PACKS_FOLDER
    if not packs.is_symlink():
        return
    if marker is None:
        raise StoreError(f"{packs} is a symbolic link, so no workspace can be made here: remove it.")
    said = _said_owner(packs)
    if said == _owner_line(folder, marker) or (said == _old_owner_line(marker) and not _are_in_place(packs)):
        return
    line = os.fsdecode(_owner_line(folder, marker)).rstrip("\n")
    raise StoreError(
        f"{packs} is a link to a folder that does not belong to this workspace: remove the link or, if the "
        f"packs of this workspace are there, write this line into {packs / PACKS_OWNER_FILE}: {line}"
    )


def _are_in_place(packs: Path) -> bool:
    """Whether packs that are reached by a link stand in a workspace, which then is another."""
    return os.path.lexists(packs.resolve().parent / MARKER_FILE)


def _say_whose_packs(folder: Path, marker: _Marker) -> None:
    """Write down whose packs these are, if that is not said yet, or the workspace has moved.

    Of packs that are elsewhere, `_check_packs` has seen that no other workspace is named. Where nothing can
    be written now, it is done some other time.
    """
    packs, line = folder / PACKS_FOLDER, _owner_line(folder, marker)
    if _said_owner(packs) == line or not packs.is_dir():
        return
    with suppress(OSError, StoreError), write_lock(folder):
        ConfinedFolder(packs).write(PACKS_OWNER_FILE, line)


def _said_owner(packs: Path) -> bytes:
    """What the folder of packs says of whose they are."""
    with suppress(OSError), ConfinedFolder(packs).open(PACKS_OWNER_FILE, "rb") as file:
        return file.read(_LONGEST_OWNER).strip(b"\n") + b"\n"
    return b""


def _owner_line(folder: Path, marker: _Marker) -> bytes:
    return f"{marker.id} ".encode() + os.fsencode(folder.resolve()) + b"\n"


def _old_owner_line(marker: _Marker) -> bytes:
    """What version 1.0 wrote."""
    return f"{marker.id}\n".encode()


def _owner(engine: Engine) -> str | None:
    """The workspace that the tables belong to."""
    if not has_tables(engine):
        return None
    with engine.connect() as connection:
        owner: str | None = connection.execute(select(schema.workspace.c.id)).scalar()
    return owner
