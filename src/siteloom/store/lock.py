"""One writer at a time: a lock that the system drops when its process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from siteloom.errors import StoreBusy, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_LOCK_FILE = "lock"


@contextmanager
def write_lock(workspace: Path) -> Iterator[None]:
    """Hold the lock of a workspace's folder, or raise StoreBusy at once if another process does."""
    try:
        handle = (workspace / _LOCK_FILE).open("a+")
    except OSError as error:
        raise StoreError(f"The workspace {workspace} cannot be written: {error.strerror}.") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise StoreBusy(
                f"Another process (number {holder}) is writing to this workspace: try again when it ends."
            ) from None
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield
