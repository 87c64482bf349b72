"""Other programs to compare with, each in a virtual environment of its own: they need other dependencies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

_INSTALL_SECONDS = 300
_WORK_SECONDS = 900


class Peer(NamedTuple):
    """A program by its name, what to install for it, and what must then be there to import.

    Its worker, NAME_worker.py, reads work as JSON from its standard input, and answers so.
    """

    name: str
    requirements: tuple[str, ...]
    module: str

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
        except subprocess.CalledProcessError as error:
            return (error.stderr.strip() or str(error)).splitlines()[-1]
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        installed.write_text(wanted, encoding="utf-8")
        return None

    def answer(self, work: object) -> Any:
        """What its worker makes of some work; `why_missing` must have said that it is there."""
        done = subprocess.run(
            (self._python, str(Path(__file__).with_name(f"{self.name}_worker.py"))),
            input=json.dumps(work),
            check=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            timeout=_WORK_SECONDS,
        )
        return json.loads(done.stdout)

    @property
    def _environment(self) -> Path:
        return Path(__file__).parents[1] / "build" / f"venv-{self.name}"

    @property
    def _python(self) -> str:
        return str(self._environment / "bin" / "python")
