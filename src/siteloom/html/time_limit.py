"""A limit on the processor time that a page may take.

Time is that of the process, not of the clock: it does not matter how busy the machine is. When it is used up,
the kernel sends a signal, and what is done is stopped from within. That takes effect in the main thread only,
where all work on many pages is done, and between two steps of Python: code in C goes on until it returns,
which for each call of it on a page within the other limits is a matter of seconds. A process that may be
killed for a page, because another takes its place, is killed if even that does not help.
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
"""The reason of pages that were given up."""

LOST = "process lost"
"""The reason of pages whose process died."""

ENDED_BY = signal.SIGVTALRM
"""The signal that ends a process which may be killed for a page, and no other."""

_SECONDS_UNTIL_AGAIN = 1.0  # what is raised while an object is freed, for instance, is swallowed
_TIMES_UNTIL_KILLED = 2  # the limit


class _TimeIsUp(BaseException):
    """Raised in the midst of work; no `except Exception` of a library may take it for a fault of its own."""


class _Work:
    """What this process does."""

    has_signal = False
    is_limited = False
    may_be_killed = False


def killable() -> None:
    """Say that this process may be killed for a page."""
    _Work.may_be_killed = True


def within(seconds: float, url: str, work: Callable[[], _Result]) -> _Result | Failure:
    """What comes of the work on a page, or a failure if it takes more processor time; 0 is no limit.

    Work within work shares the time of the whole. In other threads than the main one nothing is limited, nor
    while someone else has use for the signal, as profilers have.
    """
    if seconds <= 0 or _Work.is_limited or not _listens():
        return work()
    try:
        _Work.is_limited = True
        signal.setitimer(signal.ITIMER_PROF, seconds, _SECONDS_UNTIL_AGAIN)
        if _Work.may_be_killed:
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds * _TIMES_UNTIL_KILLED)
        try:
            return work()
        finally:
            _Work.is_limited = False  # from here on nothing is raised
    except _TimeIsUp:
        return too_long(url, f"at most {seconds:g} seconds of processor time are spent on a page")
    finally:
        _Work.is_limited = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        if _Work.may_be_killed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def too_long(url: str, detail: str) -> Failure:
    """What becomes of a page that was given up."""
    return Failure(url, TOOK_TOO_LONG, detail)


class Lost(NamedTuple):
    """The steps of a shard at which a process died, and how it ended."""

    steps: dict[int, str]

    def failure(self, step: int, url: str) -> Failure:
        """What becomes of the page of a step that is lost."""
        how = f"the process {self.steps[step]}"
        return too_long(url, how) if self.steps[step] == ended_by(ENDED_BY) else Failure(url, LOST, how)


def ended_by(number: int) -> str:
    """How a process ended that a signal ended."""
    return f"was ended by {signal.Signals(number).name}"


def _listens() -> bool:
    """Whether the signal stops the work of this thread."""
    if threading.current_thread() is not threading.main_thread():
        return False
    # To ask for the handler takes as long as all the rest: it is done once, and while a timer runs that is
    # someone else's.
    if not _Work.has_signal or signal.getitimer(signal.ITIMER_PROF)[0]:
        handler = signal.getsignal(signal.SIGPROF)
        if handler is signal.SIG_DFL or handler is signal.SIG_IGN:
            # For good: outside of work it does nothing, but by default a late signal would end the process.
            signal.signal(signal.SIGPROF, _stop)
            handler = _stop
        _Work.has_signal = handler is _stop
    return _Work.has_signal


def _stop(_signal: int, _frame: FrameType | None) -> None:
    if _Work.is_limited:
        raise _TimeIsUp
