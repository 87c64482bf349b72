"""Python programs as processes of their own that need not import Siteloom's libraries first.

Importing numba, lxml and SQLAlchemy takes longer than most commands take to run. So a process that has
imported them waits, and forks for each program: the program still has its own memory, session, folder,
environment, standard streams and exit status. Start this file with Python; it reads one order a line.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import siteloom

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_OF_EVERY_PROGRAM = ("siteloom.__main__", "siteloom.apps.server", "siteloom.store.migrations")
_SECONDS_BETWEEN_LOOKS = 0.001
_SECONDS = 900


def run_warm(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` does, where the arguments are `-m MODULE ...` or `-c CODE ...`."""
    if any(name.startswith("PYTHON") and os.environ.get(name) != environment[name] for name in environment):
        return run_fresh(arguments, folder, environment, stdin)  # Python itself is to start otherwise
    with TemporaryDirectory(prefix="siteloom-warm-") as place:
        streams = [Path(place, name) for name in ("in", "out", "err")]
        streams[0].write_text(stdin, encoding="utf-8")
        process = start_warm(arguments, folder, environment, streams)
        status = process.wait(_SECONDS)
        out, err = (file.read_text(encoding="utf-8") for file in streams[1:])
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
        timeout=_SECONDS,
    )


def start_warm(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    streams: Sequence[Path],
    *,
    largest_file: int | None = None,
) -> WarmProcess:
    """Start what `python ARGUMENTS` does; streams are those in, out and errors.

    No file can grow beyond so many bytes, if a number is given.
    """
    order = {
        "arguments": list(arguments),
        "folder": str(folder.absolute()),
        "environment": dict(environment),
        "streams": [str(file) for file in streams],
        "largest_file": largest_file,
    }
    return WarmProcess(_waiting_process().obey(order))


class WarmProcess:
    """A program that was started so, the first of its own session."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its status if it has ended, as `subprocess` tells it."""
        if self.returncode is None and state_of(self.pid)[0] == "Z":
            self.returncode = _waiting_process().obey({"bury": self.pid})
        return self.returncode

    def wait(self, seconds: float) -> int:
        """Its status when it has ended; one that takes longer is killed."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        assert self.returncode is not None
        return self.returncode


def state_of(pid: int) -> tuple[str, int]:
    """The letter by which Linux tells the state of a process, and its session; X if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X", 0
    # Behind the name, which may hold anything: state, parent, group, session.
    state, _, _, session = text.rpartition(")")[2].split()[:4]
    return state, int(session)


class _WaitingProcess:
    """The process that forks."""

    def __init__(self) -> None:
        # OpenBLAS would start threads, which do not outlive a fork.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def obey(self, order: Mapping[str, Any]) -> int:
        """Give it an order; returns the number of a process that was started, or the status of one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def end(self) -> None:
        """Let it end."""
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
        order = json.loads(line)
        if "bury" in order:
            _, status = os.waitpid(order["bury"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        child = os.fork()
        if child == 0:
            atexit._clear()  # noqa: SLF001 - what the waiting process is to do at its end
            status = _obey(order)
            # Python would take all that was imported apart, which takes longer than most commands.
            atexit._run_exitfuncs()  # noqa: SLF001
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        print(child, flush=True)


def _obey(order: Mapping[str, Any]) -> int:
    os.setsid()
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (name, mode) in enumerate(zip(order["streams"], modes, strict=True)):
        opened = os.open(name, mode | (os.O_APPEND if number else 0))
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a number, and for good
    if order["largest_file"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as on a full disk, writing fails and no one is killed
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest_file"], order["largest_file"]))
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
