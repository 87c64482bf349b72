"""One writer at a time: a lock that the system drops when its process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, TYPE_CHECKING

from sqlalchemy import func, select

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import StoreBusy, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection, Engine

_LOCK_FILE = "lock"
_SERVER_LOCK_FILE = "server-lock"
_PACKS_LOCK_FILE = "packs-lock"
_POSTGRES_LOCK = int.from_bytes(b"siteloom")  # any number that no other program is likely to lock

# Whoever asks whether a workspace is being written holds its lock for a moment, far shorter than this.
_SECONDS_OF_PATIENCE = 0.05
_SECONDS_BETWEEN_TRIES = 0.005
# As often as a person could read that it goes on.
_SECONDS_BETWEEN_TRIES_OF_WHO_WAITS = 0.25

_held: set[IO[bytes]] = set()


def _let_go() -> None:
    # A forked process has the file open too, so it would hold the lock beyond
    # the death of the one that took it.
    for handle in _held:
        handle.close()


os.register_at_fork(after_in_child=_let_go)


def is_locked(workspace: Path) -> bool:
    """Whether a process is writing to a workspace."""
    try:
        with ConfinedFolder(workspace).open(_LOCK_FILE, "rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # never written to, or not ours to see
        return False
    return False


def write_lock(workspace: Path, on_busy: Callable[[], object] | None = None) -> AbstractContextManager[None]:
    """Hold the lock of a workspace's folder, or raise StoreBusy at once if another process does.

    With `on_busy`, wait until that ends, and call it now and then meanwhile.
    """
    return _lock(
        workspace,
        _LOCK_FILE,
        "Another process (number {}) is writing to this workspace: try again when it ends.",
        on_busy,
    )


def server_lock(workspace: Path) -> AbstractContextManager[None]:
    """Be the one server of a workspace, or raise StoreBusy at once: each takes others' jobs for lost."""
    return _lock(
        workspace,
        _SERVER_LOCK_FILE,
        "Another server (process {}) has this workspace already: use that one, or stop it first.",
    )


def verb_lock(workspace: Path, verb: str) -> AbstractContextManager[None]:
    """Be the one run of a verb in a workspace, or raise StoreBusy at once; others may write meanwhile."""
    return _lock(
        workspace,
        f"{verb}-lock",
        f"Another {verb} (process {{}}) into this workspace is under way: try again when it ends.",
    )


def packs_lock(workspace: Path, on_busy: Callable[[], object] | None = None) -> AbstractContextManager[None]:
    """Be the one who copies or replaces packs of a workspace, or raise StoreBusy at once, or wait.

    Packs only grow otherwise, so others may write meanwhile.
    """
    return _lock(
        workspace,
        _PACKS_LOCK_FILE,
        "Another process (number {}) copies or replaces pages of this workspace: try again when it ends.",
        on_busy,
    )


@contextmanager
def _lock(
    workspace: Path, file: str, refusal: str, on_busy: Callable[[], object] | None = None
) -> Iterator[None]:
    try:
        handle = ConfinedFolder(workspace).open(file, "a+b")
    except OSError as error:
        raise StoreError(f"The workspace {workspace} cannot be written: {error.strerror}.") from error
    with handle:
        if not _acquire(handle, on_busy):
            handle.seek(0)
            holder = handle.read().decode(errors="replace").strip() or "unknown"
            raise StoreBusy(refusal.format(holder))
        with suppress(OSError):  # on a full disk it is held all the same, but no one can be told by whom
            os.ftruncate(handle.fileno(), 0)
            os.write(handle.fileno(), str(os.getpid()).encode())
        _held.add(handle)
        try:
            yield
        finally:
            _held.remove(handle)


def _acquire(handle: IO[bytes], on_busy: Callable[[], object] | None) -> bool:
    """Try to take the lock of a file, if need be until it is free; whether it is taken in the end."""
    given_up_at = time.monotonic() + _SECONDS_OF_PATIENCE
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() < given_up_at:
            time.sleep(_SECONDS_BETWEEN_TRIES)
        elif on_busy is None:
            return False
        else:
            on_busy()
            time.sleep(_SECONDS_BETWEEN_TRIES_OF_WHO_WAITS)


@contextmanager
def claim_lock(engine: Engine) -> Iterator[None]:
    """Let no other workspace lay claim to the tables meanwhile; waits if one is about to.

    SQLite's tables stand in the workspace's own folder, which `write_lock` guards.
    """
    if engine.dialect.name == "sqlite":
        yield
        return
    with engine.begin() as connection:
        wait_for_tables(connection)
        yield


def wait_for_tables(connection: Connection) -> None:
    """Let no other transaction come past this point until this one ends; waits for one that has.

    SQLite lets one transaction write at a time anyway.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(select(func.pg_advisory_xact_lock(_POSTGRES_LOCK)))
