"""Python programs as processes of their own that need not import Siteloom's libraries first.

Importing numba, lxml and SQLAlchemy takes longer than most commands take to run. So a process that has
imported them waits, and forks for each program: the program still has its own memory, folder, environment,
standard streams and exit status. Start this file with Python; it reads one order a line.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import siteloom

_NOT_OF_EVERY_PROGRAM = ("siteloom.__main__", "siteloom.server", "siteloom.store.migrations")


def run_warm(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` does, where the arguments are `-m MODULE ...` or `-c CODE ...`."""
    if any(name.startswith("PYTHON") and os.environ.get(name) != environment[name] for name in environment):
        return run_fresh(arguments, folder, environment, stdin)  # Python itself is to start otherwise
    with TemporaryDirectory(prefix="siteloom-warm-") as place:
        streams = [str(Path(place, name)) for name in ("in", "out", "err")]
        Path(streams[0]).write_text(stdin, encoding="utf-8")
        status = _waiting_process().run(
            {
                "arguments": list(arguments),
                "folder": str(folder.absolute()),
                "environment": dict(environment),
                "streams": streams,
            }
        )
        out, err = (Path(name).read_text(encoding="utf-8") for name in streams[1:])
    return subprocess.CompletedProcess([sys.executable, *arguments], status, out, err)


def run_fresh(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` does, by a Python that has imported nothing yet."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=dict(environment),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


class _WaitingProcess:
    """The process that forks."""

    def __init__(self) -> None:
        # OpenBLAS would start threads, which do not outlive a fork.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, order: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate(timeout=60)


@cache
def _waiting_process() -> _WaitingProcess:
    process = _WaitingProcess()
    atexit.register(process.end)
    return process


def _wait_for_orders() -> None:
    sys.path[0] = ""  # as `python -m` and `python -c` have it
    for module in pkgutil.walk_packages(siteloom.__path__, "siteloom."):
        if not module.name.startswith(_NOT_OF_EVERY_PROGRAM):
            with suppress(Exception):  # a program that needs it will say what is wrong
                importlib.import_module(module.name)
    gc.freeze()
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            atexit._clear()
            status = _obey(json.loads(line))
            # Python would take all that was imported apart, which takes longer than most commands.
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _obey(order: Mapping[str, Any]) -> int:
    for number, (name, mode) in enumerate(
        zip(order["streams"], (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True)
    ):
        opened = os.open(name, mode)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a number, and for good
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    how, what, *rest = order["arguments"]
    sys.argv = [how, *rest]
    try:
        if how == "-m":
            sys.argv[0] = what
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001 - told as Python itself does
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _wait_for_orders()
