"""Other programs to compare with, each in a virtual environment of its own: they need other dependencies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

WORKERS = Path(__file__).parent
ENVIRONMENTS = WORKERS.parent / "build"

_INSTALL_SECONDS = 300
_WORK_SECONDS = 3_600  # far more than any work takes, even on a busy machine: only what hangs is ended


class PeerFailed(Exception):
    """A peer that did not answer, and why."""


class Peer(NamedTuple):
    """A program by its name, what to install for it, and what must then be there to import.

    Its worker, WORKER_worker.py, reads work as JSON from its standard input, and answers so. Versions are
    pinned, so that figures can be had again.
    """

    name: str
    requirements: tuple[str, ...]
    module: str
    worker: str

    @property
    def version(self) -> str:
        """What is installed, as it is written on pages."""
        return " with ".join(requirement.replace("==", " ") for requirement in self.requirements)

    def why_missing(self) -> str | None:
        """Install it where that has not been done; why it cannot be, or None."""
        wanted = " ".join(self.requirements)
        installed = self._environment / ".installed"
        if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
            return None
        try:
            for command in (
                (sys.executable, "-m", "venv", "--clear", str(self._environment)),
                (self._python, "-m", "pip", "install", "--quiet", *self.requirements),
                (self._python, "-c", f"import {self.module}"),
            ):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            return _reason(error)
        installed.write_text(wanted, encoding="utf-8")
        return None

    def answer(self, work: object, seconds: float = _WORK_SECONDS) -> Any:
        """What its worker makes of some work, in an environment that is made if it is not there.

        Raises `PeerFailed` where it cannot be installed, fails, or takes longer than so many seconds.
        """
        if missing := self.why_missing():
            raise PeerFailed(f"it could not be installed: {missing}")
        try:
            done = subprocess.run(
                (self._python, str(WORKERS / f"{self.worker}_worker.py")),
                input=json.dumps(work),
                check=True,
                capture_output=True,
                encoding="utf-8",
                timeout=seconds,
            )
            return json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise PeerFailed(_reason(error)) from error

    @property
    def _environment(self) -> Path:
        return ENVIRONMENTS / f"venv-{self.name}"

    @property
    def _python(self) -> str:
        return str(self._environment / "bin" / "python")


def _reason(error: Exception) -> str:
    """In one line. Where a program told on its standard error what went wrong, its last line says it best."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer in {error.timeout:g} s"
    if isinstance(error, subprocess.CalledProcessError) and error.stderr and error.stderr.strip():
        return str(error.stderr).strip().splitlines()[-1]
    return str(error)
