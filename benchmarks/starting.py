"""How long a user waits before anything happens, over `python -c pass`."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.measure import Figure

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "Start-up"

_ROUNDS = 11


def figures(data: Path) -> list[Figure]:  # noqa: ARG001 - needs no pages
    nothing = _child_seconds("-c", "pass")
    return [
        Figure(what, f"{_child_seconds(*arguments) / nothing:.1f} times", "at most 10")
        for what, arguments in {
            "`import siteloom`": ("-c", "import siteloom"),
            "`siteloom --help`": ("-m", "siteloom", "--help"),
        }.items()
    ]


def _child_seconds(*arguments: str) -> float:
    """CPU seconds of a Python process, the least of several."""
    times = []
    for _ in range(_ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)
