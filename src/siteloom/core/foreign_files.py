"""Files that someone else may have made: opened where they seem to be, and read to a limit.

A folder that was unpacked may hold links to any file of this machine, pipes that nobody writes to and devices
without end. A file of some kilobytes may become any number of gigabytes when it is decompressed.
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
    """A file, or a line of one, is larger than any that is read."""

    def __init__(self, what: str, most: int, unit: str) -> None:
        super().__init__(errno.EFBIG, f"{what} has more than {most:,} {unit}")


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a path is that of something outside of a folder once all links are followed."""
    try:
        return not path.resolve().is_relative_to(folder.resolve())
    except RuntimeError as error:  # what Python before 3.13 raises for a circle of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def open_ordinary(path: Path) -> IO[bytes]:
    """Open a file for reading, but no pipe, which may wait, and no device, which may have no end."""
    return open(path, "rb", opener=_open_ordinary)


def open_below(path: Path, folder: Path) -> IO[bytes]:
    """Open a file of a folder for reading, through no link that leads out of it."""
    if leads_out(path, folder):
        raise OutsideError(path, folder)
    return open_ordinary(path.resolve())


def ordinary(handle: int, path: str | Path) -> int:
    """The handle of an open file, if it is neither a pipe nor a device nor a folder."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return handle


def read_at_most(file: IO[bytes], most_bytes: int) -> bytes:
    """All of an open file, which may be decompressed while it is read."""
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise TooLargeError("it", most_bytes, "bytes")
    return content


def lines_at_most(file: IO[AnyStr], longest: int) -> Iterator[AnyStr]:
    """The lines of an open file; one that never ends does not fill the memory."""
    number = 0
    while line := file.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise TooLargeError(f"line {number}", longest, "characters")
        yield line


def _open_ordinary(path: str, flags: int) -> int:
    # O_NONBLOCK: opening a named pipe would wait for its other end.
    return ordinary(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC), path)
