"""Kinds of jobs that behave badly, or as long as wanted; other processes import them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from siteloom.apps.server.job_kinds import Argument, JobKind
from siteloom.apps.server.job_table import KINDS
from siteloom.core.errors import ExampleError
from siteloom.core.settings import Settings
from siteloom.store.store import Store

Report = Callable[[int, int | None, str], None]


def endless(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> NoReturn:
    """Ends when it is interrupted, and is recorded as a run."""
    with store.recording("endless", {}):
        for number in range(10**9):
            report(number, None, "steps")
            time.sleep(0.02)
    raise AssertionError


def stubborn(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> NoReturn:
    """Ends when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report(1, None, "deaf")
    while True:
        time.sleep(1)


def dying(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> NoReturn:
    """Ends as a process does that takes all memory."""
    report(3, 7, "steps")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def mistaken(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> NoReturn:
    raise ExampleError("No page is annotated.")


def broken(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> NoReturn:
    raise ZeroDivisionError("a bug")


def quick(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    for number in range(1_000):
        report(number + 1, 1_000, "steps")
    return {"pages": 1_000, "site": arguments["site"]}


def in_two_steps(
    store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Writes twice; between, it waits until there is a file `go` in the workspace."""
    with store.recording("first", {}):
        pass
    report(1, 2, "between")
    while not (store.folder / "go").exists():
        time.sleep(0.01)
    with store.recording("second", {}):
        return {}


EXAMPLES = KINDS | {
    function.__name__: JobKind(function, function.__name__.capitalize(), {"site": Argument("site")})
    for function in (endless, stubborn, dying, mistaken, broken, quick, in_two_steps)
}
