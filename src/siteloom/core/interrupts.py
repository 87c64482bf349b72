"""Ctrl-C that waits for a good moment."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def held_back_interrupt() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done.

    Pressed once more it ends the process on the spot, should a database never
    answer; the store is made to survive that.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield  # there is no Ctrl-C here that could be held back
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held:  # after an error it is dropped: the work ends anyway, and the error says why
        handler(*held[0])
