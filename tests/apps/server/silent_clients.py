"""A process with many connections to a server on which nothing happens; it tells how many are closed."""

from __future__ import annotations

import select
import socket
import sys
from contextlib import suppress

SILENT = b""
HALF_HEADER = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A"
HALF_BODY = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nhalf"
ALL = (SILENT, HALF_HEADER, HALF_BODY)


def main(host: str, port: str, count: str, seconds: str) -> None:
    """Print a line when all are open, and then, whenever there are more, how many the server has closed."""
    connections = {}
    poll = select.poll()
    for number in range(int(count)):
        connection = socket.create_connection((host, int(port)), timeout=float(seconds))
        with suppress(ConnectionError):  # closed already
            connection.sendall(ALL[number % len(ALL)])
        connections[connection.fileno()] = connection
        poll.register(connection.fileno(), select.POLLIN)
    print("open", flush=True)
    while connections and (events := poll.poll(float(seconds) * 1_000)):
        for number, event in events:
            if not event & (select.POLLERR | select.POLLHUP):
                with suppress(ConnectionError):
                    if connections[number].recv(65_536):
                        continue
            poll.unregister(number)
            connections.pop(number).close()
        print(int(count) - len(connections), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
