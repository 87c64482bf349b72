"""How the server treats its connections: uvicorn alone would wait for the rest of a request for ever.

Each connection is looked at now and then. It is closed if at two looks in a row the server waits for its
client to do the same: to finish the header of a request, to send more of a body, to read more of an answer.
How long the application takes to answer is not limited, so that streams of events stay open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

# A process may have 1,024 files open on most systems, and each connection is one; the database needs some.
MOST_CONNECTIONS = 900
# Before room is made for them: with as many as asyncio takes otherwise, a crowd would take all files.
_TAKEN_AT_ONCE = 16
# As long as nginx keeps them: longer than people look at a page before they ask for the next one, for what is
# asked in the moment in which a connection is closed gets no answer.
_SECONDS_KEPT_OPEN = 75
# When the server is to stop, requests under way have so long to end; a person waits no longer.
_SECONDS_TO_STOP = 5
# As Apache has it (RequestReadTimeout). Lines that people use are faster.
_LEAST_BYTES_A_SECOND = 500


def server_config(app: ASGIApp, timeout: float, **options: Any) -> uvicorn.Config:
    """How uvicorn serves an application.

    A client that the server waits for is disconnected after one to two times `timeout` seconds; `options` are
    those of uvicorn.
    """

    class Protocol(_ImpatientProtocol):
        seconds = timeout

    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,  # requests are in the log of siteloom, as -v shows
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        backlog=_TAKEN_AT_ONCE,
        timeout_keep_alive=_SECONDS_KEPT_OPEN,
        timeout_graceful_shutdown=_SECONDS_TO_STOP,
        **options,
    )


class Look(NamedTuple):
    """What a connection waited for when it was looked at, and how far it had come."""

    awaited: Literal["header", "body", "reading"] | None
    cycle: RequestResponseCycle | None
    received: int = 0
    """Bytes that have come."""
    drained: int = 0
    """How often the client has read most of what waited to be sent."""
    unread: int = 0
    """Bytes that wait to be sent."""


class _ImpatientProtocol(H11Protocol):
    """A connection that is closed when the server waits for its client in vain."""

    seconds: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look at the connection, and make room for it."""
        super().connection_made(transport)
        self._received = 0
        self._drained = 0
        self.heard_at = self.loop.time()
        self._last_look = self._look()
        self._timer = self.loop.call_later(self.seconds, self._look_again)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what has come."""
        self._received += len(data)
        self.heard_at = self.loop.time()
        super().data_received(data)

    def resume_writing(self) -> None:
        """Count how often the client has read most of what waited to be written."""
        self._drained += 1
        super().resume_writing()

    @property
    def is_between_requests(self) -> bool:
        """Whether nothing is asked that is not answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # none before the first request
        return cycle is None or cycle.response_complete

    @property
    def asks_nothing_yet(self) -> bool:
        """Whether there is no whole request to be answered."""
        return self.is_between_requests or self.cycle.more_body

    def _look_again(self) -> None:
        before, self._last_look = self._last_look, self._look()
        if has_stalled(before, self._last_look, int(_LEAST_BYTES_A_SECOND * self.seconds)):
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(self.seconds, self._look_again)

    def _look(self) -> Look:
        unread = self.transport.get_write_buffer_size()
        awaited: Literal["header", "body", "reading"] | None = None
        if unread:
            awaited = "reading"
        elif self.conn.their_state is h11.SEND_BODY:
            # Reading is paused as long as the application has not taken what came before.
            awaited = None if self.flow.read_paused else "body"
        elif not self.is_between_requests:
            awaited = None
        elif self.timeout_keep_alive_task is None or self.conn.trailing_data[0]:
            awaited = "header"  # of which something has come; for the next one uvicorn waits by itself
        return Look(awaited, self.cycle, self._received, self._drained, unread)

    def _make_room(self) -> None:
        """Of too many connections, close those without a whole request that have sent nothing for longest."""
        while len(self.connections) >= MOST_CONNECTIONS:
            waiting = (one for one in self.connections if isinstance(one, _ImpatientProtocol))
            quietest = min((one for one in waiting if one.asks_nothing_yet), key=lambda one: one.heard_at)
            if quietest is self:  # all others are being answered
                return
            self.connections.discard(quietest)
            quietest.transport.abort()


def has_stalled(before: Look, now: Look, least: int) -> bool:
    """Whether a client did too little between two looks."""
    if now.awaited != before.awaited or now.cycle is not before.cycle:
        return False
    match now.awaited:
        case "header":
            return True
        case "body":
            return now.received - before.received < least
        case "reading":
            return now.drained == before.drained and before.unread - now.unread < least
        case None:
            return False
