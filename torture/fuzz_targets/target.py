"""What a target of fuzzing is."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable, Sequence  # noqa: TC003 - the fields of a NamedTuple are read at run time
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Target(NamedTuple):
    """A function that takes any bytes, and raises only if something is wrong with Siteloom.

    `seeds` are what mutations begin with, and `words` what fuzzers should know to write.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]
    words: Sequence[bytes] = ()


@cache
def scratch_folder() -> Path:
    """A folder for the files of this process; it goes when the process ends, or with the folder it is in."""
    folder = tempfile.TemporaryDirectory(prefix="siteloom-fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def written(name: str, content: bytes) -> Path:
    """A file of this name with this content, instead of the one before."""
    path = scratch_folder() / name
    path.write_bytes(content)
    return path


def is_writable(text: str) -> bool:
    """Whether a text can be written as UTF-8, which half characters cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
