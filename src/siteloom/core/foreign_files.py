"""Open untrusted files only inside their folder, and read them up to a limit.

An unpacked folder may contain links to any file of this machine, pipes that nobody writes to, and endless
devices. A file of some kilobytes may become many gigabytes when it is decompressed.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING, AnyStr

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class OutsideError(OSError):
    """A link leads out of the folder that it is in."""

    def __init__(self, path: Path, folder: Path) -> None:
        super().__init__(errno.EXDEV, f"it leads out of {folder} by a link", str(path))


class TooLargeError(OSError):
    """A file, or a line of one, exceeds the limit."""

    def __init__(self, subject: str, limit: int, unit: str) -> None:
        super().__init__(errno.EFBIG, f"{subject} has more than {limit:,} {unit}")


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether a path leads out of a folder once all links are followed."""
    try:
        return not path.resolve().is_relative_to(folder.resolve())
    except RuntimeError as error:  # Python before 3.13, for circular links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def open_ordinary(path: Path) -> IO[bytes]:
    """Open a file for reading; rejects pipes, which may block, and devices, which may be endless."""
    return open(path, "rb", opener=_open_ordinary)


def open_below(path: Path, folder: Path) -> IO[bytes]:
    """Open a file of a folder for reading; rejects links that lead out of the folder."""
    if leads_out(path, folder):
        raise OutsideError(path, folder)
    return open_ordinary(path.resolve())


def ordinary(handle: int, path: str | Path) -> int:
    """Return the handle of an open file; raises OSError if it is a pipe, a device or a folder."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return handle


def read_at_most(file: IO[bytes], most_bytes: int) -> bytes:
    """Read all of an open file, which may be decompressed while it is read, up to a limit."""
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise TooLargeError("it", most_bytes, "bytes")
    return content


def lines_at_most(file: IO[AnyStr], longest: int) -> Iterator[AnyStr]:
    """Yield the lines of an open file; raises TooLargeError for an overlong one."""
    number = 0
    while line := file.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise TooLargeError(f"line {number}", longest, "characters")
        yield line


def _open_ordinary(path: str, flags: int) -> int:
    # O_NONBLOCK: opening a named pipe would wait for its other end.
    return ordinary(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC), path)
