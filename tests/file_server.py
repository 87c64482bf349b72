"""A web server of this machine for the files of a folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_SECONDS_BETWEEN_LOOKS = 0.01  # at whether it is to end; the default is half a second, which all would wait


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """The address of a server that gives the files of a folder, whole."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, args=(_SECONDS_BETWEEN_LOOKS,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
