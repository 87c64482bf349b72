"""Write files as a whole or not at all, so that they survive a power cut."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


class AtomicFile:
    """A file that replaces another one on `commit`, as a whole or not at all.

    It is written to a temporary file in the same folder, which `close` removes if it was not committed.
    Without a `mode`, it gets the permissions of any new file of this process.
    """

    def __init__(self, target: Path, mode: int | None = None) -> None:
        self._target = target
        self._mode = mode
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        self._temporary = Path(temporary)
        self.file = os.fdopen(handle, "wb")

    def commit(self) -> None:
        """Put the file in place once it is on the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self._temporary.chmod(0o666 & ~_umask() if self._mode is None else self._mode)
        self._temporary.replace(self._target)

    def close(self) -> None:
        """Close the file, and remove it unless it was committed."""
        with suppress(OSError):  # the content is either on the disk or discarded
            self.file.close()
        self._temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Return the permissions that new files of this process lack; reading the umask requires setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_to_disk(path: Path | str) -> None:
    """Return when a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
