"""Streams of events: browsers are told of changes as they happen."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import anyio
from fastapi import HTTPException
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from siteloom.apps.server.request_types import too_often
from siteloom.apps.server.security import is_still_welcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from fastapi import Request

# So long a stream has to end by itself when the server stops: it needs next to nothing.
_SECONDS_TO_END = 1.0
# More than anyone has tabs open, of all browsers that are signed in to an account; each has a connection.
_MOST_OF_A_VISITOR = 50
# So long someone who was shut out may listen on if nothing happens.
_SECONDS_BETWEEN_CHECKS = 60.0


_SOON = {"Retry-After": "60"}

TOO_MANY = too_often("Whoever asks listens to too many streams already.")
"""How the description of the API tells of that."""


class _Listener(NamedTuple):
    name: str
    loop: asyncio.AbstractEventLoop
    event: asyncio.Event


class Changes:
    """Something that changes in any thread, and those who wait for it in event loops."""

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()

    def listened_to_by(self, name: str) -> int:
        """How often someone waits for it."""
        return sum(one.name == name for one in tuple(self._listeners))

    def tell(self) -> None:
        """Wake all who wait."""
        for one in tuple(self._listeners):
            with suppress(RuntimeError):  # the loop has just been closed
                one.loop.call_soon_threadsafe(one.event.set)

    @contextmanager
    def listening(self, name: str) -> Iterator[asyncio.Event]:
        """An event that is set at each change, for someone; to be asked for in a running event loop."""
        listener = _Listener(name, asyncio.get_running_loop(), asyncio.Event())
        self._listeners.add(listener)
        try:
            yield listener.event
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
    listener: str = request.state.visitor.name
    if changes.listened_to_by(listener) >= _MOST_OF_A_VISITOR:
        raise HTTPException(
            429, f"{listener} listens to {_MOST_OF_A_VISITOR} streams already: close some pages.", _SOON
        )

    def look_again() -> StreamEvent | None:
        return look() if is_still_welcome(request) else None

    stopping = anyio.Event()
    events = _events(changes, listener, look_again, stopping)
    return EventSourceResponse(events, shutdown_event=stopping, shutdown_grace_period=_SECONDS_TO_END)


async def _events(
    changes: Changes, listener: str, look: Callable[[], StreamEvent | None], stopping: anyio.Event
) -> AsyncIterator[dict[str, str]]:
    told: StreamEvent | None = None
    with changes.listening(listener) as changed:
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
