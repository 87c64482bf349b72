"""The command line as others run it, with what it took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_KILOBYTES = 1_024  # Linux counts the memory of processes in these


class Ran(NamedTuple):
    """A command that has ended."""

    status: int
    said: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int  # of the largest of its processes


def run_siteloom(folder: Path, *arguments: str) -> Ran:
    """Run a verb in a folder, and wait for its end."""
    said = folder / "said.txt"
    start = time.monotonic()
    with said.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "siteloom", *arguments], cwd=folder, stdout=file, stderr=file
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ran(
        process.returncode,
        said.read_text(encoding="utf-8"),
        time.monotonic() - start,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * _KILOBYTES,
    )
