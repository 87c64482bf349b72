"""The application on a real port, in a thread of the tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import uvicorn
from starlette.types import ASGIApp

from siteloom.apps.server.connections import server_config
from siteloom.store.queries.accounts import Role
from siteloom.store.store import Store
from tests.patience import SECONDS, wait_until


@contextmanager
def serving(app: ASGIApp, timeout: float = SECONDS) -> Iterator[str]:
    """The address of an application that is served; it has shut down when the block has ended.

    It waits `timeout` seconds for a client that does nothing.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(server_config(app, timeout))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_until(lambda: server.started or not thread.is_alive())
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def program(address: str, store: Store, role: Role) -> Iterator[httpx.Client]:
    """A program with the key of an account that has a role; the account is made if it is not there."""
    needed: tuple[Role, ...] = ("admin", role)
    for one in needed:  # the first account must be an admin
        if store.accounts.find(f"the-{one}") is None:
            store.accounts.add(f"the-{one}", one, "no one signs in with it")
    key = store.accounts.add_key(f"the-{role}", "tests")
    headers = {"Authorization": f"Bearer {key}"}
    with closing(httpx.Client(base_url=address, headers=headers, timeout=SECONDS)) as client:
        yield client
