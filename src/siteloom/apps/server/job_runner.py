"""Runs jobs one after the other, each in a process of its own.

A job that crashes, is killed or takes all memory so never harms the server, and one that is cancelled can be
ended at any moment. There is one at a time because only one process can write to a workspace.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.apps.server.job_kinds import checked_arguments
from siteloom.apps.server.work import KINDS
from siteloom.core.child_processes import safe_path
from siteloom.core.errors import SiteloomError
from siteloom.core.terminal_text import guard_process
from siteloom.operations.operation_table import OPERATIONS
from siteloom.store.workspace_folder import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from siteloom.apps.server.event_stream import Changes
    from siteloom.apps.server.job_kinds import JobKind
    from siteloom.core.settings import Settings
    from siteloom.store.queries.jobs import Job, JobEnd
    from siteloom.store.store import Store

_log = logging.getLogger(__name__)

# Copies of a process that has nothing but the code for all work, which takes a second or two to load. Copies
# of this one would hold its locks and its connections to databases. That process is there from the first job
# on until the server ends, and takes some 230 MB, most of which its copies share.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["siteloom.apps.server.work"])

# From the wish that a process ends until it is made to: most commits take far less.
_SECONDS_TO_END = 5.0
# As often as a person can read a number that changes.
_SECONDS_BETWEEN_REPORTS = 0.25

_CANCELLED = "It was cancelled."
CANCELLING = "It is being cancelled."
"""What is told of a job from the wish that it ends until it does."""

_BUSY = "Another process is writing to the workspace: this goes on when it ends."
_STOPPED = "The server was stopped meanwhile: start it again."


class _Progress(NamedTuple):
    """How far a job is, as its process says."""

    done: int
    total: int | None
    message: str


class _Outcome(NamedTuple):
    """What came of a job, as its process says; `trace` is where in the code an unexpected error happened."""

    state: JobEnd
    result: Mapping[str, Any] | str
    trace: str = ""


class _Command(NamedTuple):
    """What the thread that runs jobs is to do: `run` one, `cancel` one, or `stop`."""

    verb: str
    job_id: int = 0


class JobRunner:
    """The jobs of a server. Whatever becomes of one is written down, then `changes` are told."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        changes: Changes,
        on_end: Callable[[Job], object] = lambda _: None,
        kinds: Mapping[str, JobKind] = KINDS,
    ) -> None:
        self.kinds = kinds
        self.changes = changes
        self._store = store
        self._settings = settings
        self._on_end = on_end
        self._commands, self._to_commands = _PROCESSES.Pipe(duplex=False)
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._run_all, name="jobs", daemon=True)
        # Only the thread looks at these.
        self._waiting: deque[int] = deque()
        self._to_cancel: set[int] = set()
        self._is_stopping = False

    def start(self) -> None:
        """Begin to run jobs; those that a server before this one did not finish are given up."""
        if lost := self._store.jobs.give_up_unfinished():
            _log.warning("%d jobs of a server that is gone are lost", lost)
        self._thread.start()

    def stop(self) -> None:
        """Cancel all jobs, and come back when they have ended; once is enough, twice does no harm."""
        if self._thread.is_alive():
            self._send(_Command("stop"))
            self._thread.join()

    def submit(self, kind: str, arguments: Mapping[str, object], author: str) -> Job:
        """Put a job behind those that wait; a wrong kind or argument is a UsageError."""
        checked = checked_arguments(self._store, kind, arguments, self.kinds)
        job = self._store.jobs.add(kind, checked, author)
        _log.info("job %d waits: %s", job.id, kind)
        self._send(_Command("run", job.id))
        return job

    def cancel(self, job_id: int) -> None:
        """Let a job end soon, or never begin; nothing happens to one that has ended."""
        if self._store.jobs.end(job_id, "cancelled", _CANCELLED, only_waiting=True):
            self._has_ended(job_id)
        else:
            self._send(_Command("cancel", job_id))
            self._tell_progress(job_id, _Progress(0, None, CANCELLING))

    def _tell_progress(self, job_id: int, progress: _Progress) -> None:
        self._store.jobs.progress(job_id, *progress)
        self.changes.tell()

    def _send(self, command: _Command) -> None:
        with self._sending:
            self._to_commands.send(command)

    def _has_ended(self, job_id: int) -> None:
        job = self._store.jobs.get(job_id)
        if job is not None:
            _log.info("job %d ends: %s", job.id, job.state)
            self._on_end(job)
        self.changes.tell()

    def _run_all(self) -> None:
        """The life of the thread."""
        while not self._is_stopping:
            if not self._waiting:
                self._take_command()
                continue
            job_id = self._waiting.popleft()
            with _logged():
                self._run_one(job_id)
            self._to_cancel.discard(job_id)
        for job_id in self._waiting:
            with _logged():
                self._end(job_id, _Outcome("cancelled", _STOPPED))

    def _run_one(self, job_id: int) -> None:
        """Do a job; what it was asked for, which may be forgotten by then, is not held until the next."""
        job = self._store.jobs.get(job_id)
        if job is not None and self._store.jobs.start(job_id):
            self.changes.tell()
            self._end(job_id, self._run(job))

    def _take_command(self) -> None:
        command = self._commands.recv()
        match command.verb:
            case "run":
                self._waiting.append(command.job_id)
            case "cancel":
                self._to_cancel.add(command.job_id)
            case "stop":
                self._is_stopping = True

    def _end(self, job_id: int, outcome: _Outcome) -> None:
        if outcome.trace:
            _log.error("job %d: %s\n%s", job_id, outcome.result, outcome.trace)
        if self._store.jobs.end(job_id, outcome.state, outcome.result):
            self._has_ended(job_id)

    def _run(self, job: Job) -> _Outcome:
        try:
            return self._run_in_process(job)
        except Exception as error:  # noqa: BLE001 - told to the user, and in the log
            return _unexpected(error)

    def _run_in_process(self, job: Job) -> _Outcome:
        """Do a job in a process, and listen to that and to whoever wants it cancelled."""
        pipe, other_end = _PROCESSES.Pipe()
        run: Callable[..., dict[str, Any]] = self.kinds[job.kind].run
        if job.kind in OPERATIONS:
            run = partial(run, author=job.author)
        process = _PROCESSES.Process(target=_work, args=(run, job.arguments, self._settings, other_end))
        _start_deaf(process)
        other_end.close()
        try:
            outcome = self._listen(job, process, pipe)
            process.join(_SECONDS_TO_END)
        finally:
            process.kill()
            process.join()
            pipe.close()
        return outcome

    def _listen(self, job: Job, process: ForkServerProcess, pipe: Connection) -> _Outcome:
        killed_at: float | None = None  # when it is to be, once it was asked to end
        while True:
            seconds = None if killed_at is None else max(0.0, killed_at - time.monotonic())
            ready = wait([pipe, self._commands, process.sentinel], seconds)
            if self._commands in ready:
                self._take_command()
            if pipe in ready:
                try:
                    told = pipe.recv()
                except (EOFError, OSError):
                    return self._outcome_of_death(process, is_wanted=killed_at is not None)
                if isinstance(told, _Outcome):
                    is_stopped = told.state == "cancelled" and self._is_stopping
                    return told._replace(result=_STOPPED) if is_stopped else told
                if killed_at is None:
                    with _logged():
                        self._tell_progress(job.id, told)
            elif process.sentinel in ready:
                return self._outcome_of_death(process, is_wanted=killed_at is not None)
            if killed_at is None and (self._is_stopping or job.id in self._to_cancel):
                killed_at = time.monotonic() + _SECONDS_TO_END
                _interrupt(process)
                with _logged():  # again: the job may have told something meanwhile
                    self._tell_progress(job.id, _Progress(0, None, CANCELLING))
            elif killed_at is not None and time.monotonic() >= killed_at:
                process.kill()

    def _outcome_of_death(self, process: ForkServerProcess, *, is_wanted: bool) -> _Outcome:
        process.join()
        if is_wanted:
            return _Outcome("cancelled", _STOPPED if self._is_stopping else _CANCELLED)
        code = process.exitcode or 0
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        return _Outcome("failed", f"Its process {how}: see whether there is memory enough, and try again.")


def _start_deaf(process: ForkServerProcess) -> None:
    """Start a process that does not hear Ctrl-C until it is ready for it.

    It has that from the process that it is a copy of, which is started with the first one.
    """
    with safe_path():
        resource_tracker.ensure_running()  # or it would be started meanwhile and let interrupts through
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(process: ForkServerProcess) -> None:
    """As Ctrl-C does, so that what is under way is written down as interrupted."""
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, signal.SIGINT)


@contextmanager
def _logged() -> Iterator[None]:
    """What goes wrong must not end the thread: the next job may fare better."""
    try:
        yield
    except Exception:  # noqa: BLE001 - whatever it is
        _log.exception("a job could not be started, or what became of it could not be kept")


def _work(
    run: Callable[..., dict[str, Any]], arguments: Mapping[str, Any], settings: Settings, pipe: Connection
) -> None:
    """The life of a process: one job."""
    guard_process()
    os.setpgrp()  # Ctrl-C in a terminal is for the server, which passes it on
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_end_with_server, daemon=True).start()
    reporter = _Reporter(pipe)
    try:
        outcome = _outcome(run, arguments, settings, reporter)
    except KeyboardInterrupt:
        outcome = _Outcome("cancelled", _CANCELLED)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    reporter.flush()
    with suppress(BrokenPipeError):
        pipe.send(outcome)


def _outcome(
    run: Callable[..., dict[str, Any]], arguments: Mapping[str, Any], settings: Settings, reporter: _Reporter
) -> _Outcome:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        # A command that someone runs on the workspace ends first, whenever in the job it has begun.
        store = open_store(settings.store, on_busy=lambda: reporter(0, None, _BUSY))
        try:
            return _Outcome("done", run(store, settings, arguments, reporter))
        finally:
            store.close()
    except SiteloomError as error:
        return _Outcome("failed", str(error))
    except Exception as error:  # noqa: BLE001 - a bug, told to the user all the same
        return _unexpected(error)


def _unexpected(error: Exception) -> _Outcome:
    return _Outcome("failed", f"Unexpected error: {error!r}.", traceback.format_exc())


class _Reporter:
    """Passes on how far a job is, not more often than anyone could read."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sent_at = float("-inf")
        self._unsent: _Progress | None = None

    def __call__(self, done: int, total: int | None, message: str) -> None:
        self._unsent = _Progress(done, total, message)
        if time.monotonic() - self._sent_at >= _SECONDS_BETWEEN_REPORTS:
            self.flush()

    def flush(self) -> None:
        """Pass on what was held back."""
        if self._unsent is not None:
            with suppress(BrokenPipeError):  # the server is gone: see _end_with_server
                self._pipe.send(self._unsent)
            self._unsent = None
            self._sent_at = time.monotonic()


def _end_with_server() -> None:
    """End this process when the server is gone, even if that was killed."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(_SECONDS_TO_END)
        signal.raise_signal(signal.SIGKILL)
