"""Limit the processor time that a page may take.

Time is processor time, so it does not matter how busy the machine is. When it is used up, the kernel sends a
signal, and its handler raises an exception. This works only in the main thread, where all work on many pages
is done, and between two Python instructions: code in C continues until it returns, which takes seconds at
most for a page within the other limits. A process that may be killed for a page, because another replaces it,
is killed if that does not help.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from siteloom.core.model import Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_Result = TypeVar("_Result")

TOOK_TOO_LONG = "took too long"
"""The reason of failures of pages that exceeded the time limit."""

LOST = "process lost"
"""The reason of failures of pages whose process died."""

ENDED_BY = signal.SIGVTALRM
"""The signal that is used only to end a process that may be killed for a page."""

_SECONDS_UNTIL_AGAIN = 1.0  # an exception raised while an object is freed, for instance, is swallowed
_TIMES_UNTIL_KILLED = 2  # the limit


class _TimeIsUp(BaseException):
    """Raised to stop work; a BaseException, so that no `except Exception` of a library catches it."""


class _ProcessState:
    """The state of the time limit in this process."""

    has_signal = False
    is_limited = False
    may_be_killed = False


def killable() -> None:
    """Declare that this process may be killed for a page."""
    _ProcessState.may_be_killed = True


def within(seconds: float, url: str, work: Callable[[], _Result]) -> _Result | Failure:
    """Run the work on a page, and return its result or a failure if it exceeds the time; 0 is no limit.

    Nested work shares the time of the outer work. There is no limit in other threads than the main one, nor
    while someone else uses the signal, as profilers do.
    """
    if seconds <= 0 or _ProcessState.is_limited or not _listens():
        return work()
    try:
        _ProcessState.is_limited = True
        signal.setitimer(signal.ITIMER_PROF, seconds, _SECONDS_UNTIL_AGAIN)
        if _ProcessState.may_be_killed:
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds * _TIMES_UNTIL_KILLED)
        try:
            return work()
        finally:
            _ProcessState.is_limited = False  # from here on the handler does not raise
    except _TimeIsUp:
        return too_long(url, f"at most {seconds:g} seconds of processor time are spent on a page")
    finally:
        _ProcessState.is_limited = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        if _ProcessState.may_be_killed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def too_long(url: str, detail: str) -> Failure:
    """Return the failure of a page that exceeded the time limit."""
    return Failure(url, TOOK_TOO_LONG, detail)


class Lost(NamedTuple):
    """The steps of a shard at which a process died, and how it ended."""

    steps: dict[int, str]

    def failure(self, step: int, url: str) -> Failure:
        """Return the failure of the page of a lost step."""
        how = f"the process {self.steps[step]}"
        return too_long(url, how) if self.steps[step] == ended_by(ENDED_BY) else Failure(url, LOST, how)


def ended_by(number: int) -> str:
    """Describe how a process ended by a signal."""
    return f"was ended by {signal.Signals(number).name}"


def _listens() -> bool:
    """Return whether the signal can stop the work of this thread."""
    if threading.current_thread() is not threading.main_thread():
        return False
    # Asking for the handler takes as long as everything else, so it is done once, and whenever someone else's
    # timer runs.
    if not _ProcessState.has_signal or signal.getitimer(signal.ITIMER_PROF)[0]:
        handler = signal.getsignal(signal.SIGPROF)
        if handler is signal.SIG_DFL or handler is signal.SIG_IGN:
            # Permanently: outside of work the handler does nothing, but by default a late signal would end
            # the process.
            signal.signal(signal.SIGPROF, _stop)
            handler = _stop
        _ProcessState.has_signal = handler is _stop
    return _ProcessState.has_signal


def _stop(_signal: int, _frame: FrameType | None) -> None:
    if _ProcessState.is_limited:
        raise _TimeIsUp
