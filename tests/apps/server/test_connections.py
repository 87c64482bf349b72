"""Connections whose clients do nothing are closed in time, and are in no one's way until then."""

from __future__ import annotations

import asyncio
import resource
import select
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from siteloom.apps.server.connections import MOST_CONNECTIONS, Look, has_stalled
from tests.apps.cli.command import Command
from tests.apps.cli.verbs.test_serve import served
from tests.apps.server import silent_clients
from tests.apps.server.serving import serving
from tests.apps.server.silent_clients import HALF_BODY, HALF_HEADER, SILENT
from tests.patience import SECONDS, wait_until

SOON = 0.2
"""For so many seconds the server waits for a client. No test depends on how long that is."""

HERE = b"GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n"
ENDLESS = b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n"
MANY, PROCESSES = 1_200, 3
USUAL_FILES = 1_024


class Application:
    """Answers at once, when it is let, or with more than anyone reads."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.is_asked = threading.Event()
        self.is_given_up = threading.Event()
        self.app = Starlette(
            routes=[
                Route("/here", lambda _: PlainTextResponse("here")),
                Route("/later", self.later),
                Route("/echo", self.echo, methods=["POST"]),
                Route("/endless", self.endless),
                Route("/events", self.events),
            ]
        )

    async def go_on(self) -> None:
        self.is_asked.set()
        await run_in_threadpool(self.may_go_on.wait, SECONDS)

    async def later(self, _: Request) -> Response:
        await self.go_on()
        return PlainTextResponse("later")

    async def echo(self, request: Request) -> Response:
        await self.go_on()
        return PlainTextResponse(str(len(await request.body())))

    async def endless(self, _: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 65_536
                    await asyncio.sleep(0)
            finally:
                self.is_given_up.set()

        return StreamingResponse(chunks())

    async def events(self, _: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            await self.go_on()
            yield b"last"

        return StreamingResponse(chunks(), media_type="text/event-stream")


@pytest.fixture
def application() -> Iterator[Application]:
    made = Application()
    yield made
    made.may_go_on.set()


@pytest.fixture
def address(application: Application) -> Iterator[str]:
    with serving(application.app, SOON) as address:
        yield address
        application.may_go_on.set()


@contextmanager
def connected(address: str, *sent: bytes) -> Iterator[list[socket.socket]]:
    """A connection for each of some texts, which has been sent."""
    where = urlsplit(address)
    with ExitStack() as stack:
        connections = []
        for text in sent:
            connection = socket.create_connection((where.hostname, where.port or 80), timeout=SECONDS)
            connections.append(stack.enter_context(connection))
            with suppress(ConnectionError):  # closed already
                connection.sendall(text)
        yield connections


def wait_until_closed(connections: Sequence[socket.socket]) -> None:
    """Return when the server has closed all connections."""
    poll = select.poll()
    by_number = {connection.fileno(): connection for connection in connections}
    for number in by_number:
        poll.register(number, select.POLLIN)
    while by_number:
        events = poll.poll(SECONDS * 1_000)
        assert events, f"{len(by_number)} connections are open still"
        for number, event in events:
            if not event & (select.POLLERR | select.POLLHUP):
                with suppress(ConnectionError):
                    if by_number[number].recv(65_536):
                        continue
            poll.unregister(number)
            del by_number[number]


def let_pass(address: str, times: int = 3) -> None:
    """Return when a connection that is silent would have been closed so many times."""
    for _ in range(times):
        with connected(address, SILENT) as connections:
            wait_until_closed(connections)


@pytest.mark.parametrize(
    "sent",
    [SILENT, HALF_HEADER, HERE + HALF_HEADER, HERE + HERE + b"G", HALF_BODY],
    ids=lambda sent: repr(sent[:9]),
)
def test_who_does_not_go_on_is_disconnected(application: Application, address: str, sent: bytes) -> None:
    application.may_go_on.set()
    with connected(address, sent) as connections:
        wait_until_closed(connections)
    assert httpx.get(f"{address}/here", timeout=SECONDS).text == "here"


def test_who_does_not_read_is_disconnected(application: Application, address: str) -> None:
    with connected(address, ENDLESS):
        assert application.is_given_up.wait(SECONDS)


def test_an_answer_that_takes_long_is_waited_for(application: Application, address: str) -> None:
    later = b"GET /later HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connected(address, later) as (connection,):
        assert application.is_asked.wait(SECONDS)
        let_pass(address)
        application.may_go_on.set()
        assert read_all(connection).endswith(b"later")


def test_a_stream_on_which_nothing_happens_stays_open(application: Application, address: str) -> None:
    with httpx.stream("GET", f"{address}/events", timeout=SECONDS) as answer:
        chunks = answer.iter_bytes()
        assert next(chunks) == b"first"
        let_pass(address)
        application.may_go_on.set()
        assert b"".join(chunks) == b"last"


def test_an_upload_that_the_server_is_slow_to_take_stays_open(application: Application, address: str) -> None:
    body = b"x" * 3_000_000  # more than the server takes before it is read
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    with connected(address, head % len(body)) as (connection,):
        sender = threading.Thread(target=connection.sendall, args=[body])
        sender.start()
        assert application.is_asked.wait(SECONDS)
        let_pass(address)
        application.may_go_on.set()
        assert read_all(connection).endswith(b"3000000")
        sender.join()


def test_a_connection_that_asks_nothing_for_a_while_is_used_again(address: str) -> None:
    with httpx.Client(base_url=address, timeout=SECONDS) as client:
        own = client.get("/here").extensions["network_stream"].get_extra_info("client_addr")
        let_pass(address)
        assert client.get("/here").extensions["network_stream"].get_extra_info("client_addr") == own


def read_all(connection: socket.socket) -> bytes:
    """All that the server sends until it closes a connection."""
    read = b""
    while part := connection.recv(65_536):
        read += part
    return read


CYCLE, NEXT = object(), object()


@pytest.mark.parametrize(
    ("before", "now", "is_stalled"),
    [
        (("body", CYCLE, 0), ("body", CYCLE, 99), True),
        (("body", CYCLE, 0), ("body", CYCLE, 100), False),  # an upload over a slow line
        (("body", CYCLE, 0), (None, CYCLE, 0), False),
        (("body", CYCLE, 0), ("body", NEXT, 0), False),
        (("header", CYCLE, 0), ("header", CYCLE, 1_000_000), True),
        (("header", CYCLE, 0), ("header", NEXT, 100), False),
        ((None, CYCLE, 0), (None, CYCLE, 0), False),
        (("reading", CYCLE, 0, 0, 9_000), ("reading", CYCLE, 0, 0, 8_950), True),
        (("reading", CYCLE, 0, 0, 9_000), ("reading", CYCLE, 0, 0, 12_000), True),
        (("reading", CYCLE, 0, 0, 9_000), ("reading", CYCLE, 0, 0, 8_900), False),  # a slow download
        (("reading", CYCLE, 0, 0, 90_000), ("reading", CYCLE, 0, 1, 90_000), False),
    ],
)
def test_slow_is_not_stalled(before: tuple[Any, ...], now: tuple[Any, ...], is_stalled: bool) -> None:
    assert has_stalled(Look(*before), Look(*now), least=100) == is_stalled


@pytest.fixture
def usual_files() -> Iterator[None]:
    """Processes that are started may have as many files open as on most systems."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    usual = USUAL_FILES if most == resource.RLIM_INFINITY else min(most, USUAL_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))


class Clients:
    """Many connections on which nothing happens, in processes of their own: each may have so many files."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        where = urlsplit(address)
        asked = [str(where.hostname), str(where.port), str(MANY // PROCESSES), str(SECONDS)]
        self._closed = [0] * PROCESSES
        self._processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, silent_clients.__file__, *asked], stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(PROCESSES)
        ]
        for process in self._processes:
            stack.callback(process.kill)
            assert self._told(process) == "open"
        for number, process in enumerate(self._processes):
            threading.Thread(target=self._listen, args=(number, process), daemon=True).start()

    @staticmethod
    def _told(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def _listen(self, number: int, process: subprocess.Popen[str]) -> None:
        while told := self._told(process):
            self._closed[number] = int(told)

    def wait_until_closed(self, *, but_for: int = 0) -> None:
        """Return when the server has closed all, but for some."""
        wait_until(lambda: sum(self._closed) >= MANY - but_for)

    @property
    def open(self) -> int:
        return MANY - sum(self._closed)


@pytest.mark.usefixtures("usual_files")
def test_a_thousand_silent_connections_keep_no_one_out_and_are_closed(tmp_path: Path) -> None:
    """Also before their time is over, which is up to a minute: those that were silent longest make room.

    The server may have no more files open than on most systems.
    """
    siteloom = Command(tmp_path)
    assert siteloom("init").returncode == 0
    with ExitStack() as stack:
        address, process = stack.enter_context(served(siteloom))
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] <= USUAL_FILES
        clients = Clients(address, stack)
        assert httpx.get(f"{address}health", timeout=SECONDS).status_code == 200
        clients.wait_until_closed(but_for=MOST_CONNECTIONS)
        assert clients.open > MOST_CONNECTIONS // 2  # it is not that none was taken
    with ExitStack() as stack:
        environment = {"SITELOOM_SERVE_TIMEOUT": "1"}
        address, _ = stack.enter_context(served(siteloom, environment=environment))
        Clients(address, stack).wait_until_closed()
        assert httpx.get(f"{address}health", timeout=SECONDS).status_code == 200
