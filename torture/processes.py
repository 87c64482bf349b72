"""The command line in processes of its own, which can be killed, and what they said."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torture.warm import WarmProcess, start_warm, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Ten times what any verb takes here; one that takes longer hangs.
SECONDS_TO_END = 120
_SECONDS_OF_ORPHANS = 20
_SECONDS_BETWEEN_LOOKS = 0.001
# Runs a verb and counts what it commits; just before the commit of a number it is killed.
_COUNTING_COMMITS = """
import os, pathlib, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine

_, deadly, file, *sys.argv[1:] = sys.argv
commits = 0

def count(connection):
    global commits
    commits += 1
    if commits == int(deadly):
        os.kill(os.getpid(), signal.SIGKILL)

event.listen(Engine, "commit", count)
from siteloom.apps.cli.main import main
try:
    main()
finally:
    pathlib.Path(file).write_text(str(commits))
"""


class Ended(NamedTuple):
    """A command that has come to an end: its status, all that it said, and how long it took."""

    status: int
    said: str
    seconds: float

    @property
    def is_clear(self) -> bool:
        """Whether a command that failed says why in a sentence of its own."""
        last = self.said.strip().rpartition("\n")[2]
        unclear = ("Traceback", "Unexpected error", "database is locked")
        return last.startswith("siteloom: ") and not any(words in self.said for words in unclear)


class Started(NamedTuple):
    """A command that is under way, first of its own session."""

    process: WarmProcess
    said: Path
    at: float

    def end(self, seconds: float = SECONDS_TO_END) -> Ended:
        """Wait for its end; one that hangs is killed, which its status tells."""
        status = self.process.wait(seconds)
        took = time.monotonic() - self.at
        return Ended(status, self.said.read_text(encoding="utf-8", errors="replace"), took)

    @property
    def commits(self) -> int:
        """How often it has committed."""
        return int(_commits_of(self.said).read_text(encoding="utf-8"))

    def kill(self, *, whole_session: bool) -> None:
        """Kill -9 the process, or all of its session."""
        for pid in (self.process.pid, *(session_of(self.process.pid) if whole_session else ())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(SECONDS_TO_END)

    def workers(self) -> list[int]:
        """The processes that it has started."""
        return [pid for pid in session_of(self.process.pid) if pid != self.process.pid]

    def orphans(self) -> list[int]:
        """Those that live on without it, though they were given time."""
        deadline = time.monotonic() + _SECONDS_OF_ORPHANS
        while (left := self.workers()) and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


def start(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    said: Path | None = None,
    stdin: Path = Path(os.devnull),
    largest_file: int | None = None,
    dies_at_commit: int | None = None,
) -> Started:
    """Start a verb in a folder; what it says goes to a file there or elsewhere.

    It may be killed just before it commits for the so-manieth time; if it was not, `commits` says how often
    it did.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("SITELOOM_")}
    said = said or folder / f"said-{time.monotonic_ns()}"
    said.touch()  # whoever waits for a word may look before the process has begun
    streams = (stdin, said, said)
    begun = time.monotonic()
    program = ["-m", "siteloom"]
    if dies_at_commit is not None:
        program = ["-c", _COUNTING_COMMITS, str(dies_at_commit), str(_commits_of(said))]
    process = start_warm(
        [*program, *arguments],
        folder,
        {**own, **(environment or {})},
        streams,
        largest_file=largest_file,
    )
    return Started(process, said, begun)


def run(folder: Path, *arguments: str) -> Ended:
    """Run a verb in a folder to its end."""
    return start(folder, *arguments).end()


def _commits_of(said: Path) -> Path:
    return said.with_name(f"{said.name}-commits")


def session_of(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    found = ((pid, *state_of(pid)) for pid in pids)
    return [pid for pid, state, session in found if session == leader and state not in "ZX"]


def wait_for_change(process: WarmProcess, file: Path, seconds: float) -> bool:
    """Wait until a file is written to or made; False if the process ends first or it takes too long."""
    deadline, before = time.monotonic() + seconds, _written_at(file)
    while process.poll() is None and time.monotonic() < deadline:
        if _written_at(file) != before:
            return True
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return _written_at(file) != before


def _written_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def write_lines(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write JSON Lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
