"""Streams of events: browsers are told of changes as they happen."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import anyio
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from siteloom.server.security import is_still_welcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from fastapi import Request

# So long a stream has to end by itself when the server stops: it needs next to nothing.
_SECONDS_TO_END = 1.0
# So long someone who was shut out may listen on if nothing happens.
_SECONDS_BETWEEN_CHECKS = 60.0


class Changes:
    """Something that changes in any thread, and those who wait for it in event loops."""

    def __init__(self) -> None:
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def tell(self) -> None:
        """Wake all who wait."""
        for loop, event in tuple(self._listeners):
            with suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(event.set)

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that is set at each change; to be asked for in a running event loop."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        self._listeners.add(listener)
        try:
            yield listener[1]
        finally:
            self._listeners.discard(listener)


class StreamEvent(NamedTuple):
    """An event with its name, its JSON, and whether none comes after it."""

    name: str
    data: str
    is_last: bool = False


def event_stream(
    request: Request, changes: Changes, look: Callable[[], StreamEvent | None]
) -> EventSourceResponse:
    """A stream of what there is to see now and after each change that makes a difference.

    It ends after the last event, when there is nothing to see any more, when whoever listens has signed out
    or may not ask any more, and when the server stops.
    """

    def look_again() -> StreamEvent | None:
        return look() if is_still_welcome(request) else None

    stopping = anyio.Event()
    events = _events(changes, look_again, stopping)
    return EventSourceResponse(events, shutdown_event=stopping, shutdown_grace_period=_SECONDS_TO_END)


async def _events(
    changes: Changes, look: Callable[[], StreamEvent | None], stopping: anyio.Event
) -> AsyncIterator[dict[str, str]]:
    told: StreamEvent | None = None
    with changes.listening() as changed:
        while not stopping.is_set():
            changed.clear()
            seen = await run_in_threadpool(look)
            if seen is None:
                return
            if seen != told:
                yield {"event": seen.name, "data": seen.data}
                told = seen
            if seen.is_last:
                return
            await _first_of(changed, stopping)


async def _first_of(*events: asyncio.Event | anyio.Event) -> None:
    """Wait until one of the events is set, or it is time to look whether all is as it was."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=_SECONDS_BETWEEN_CHECKS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
