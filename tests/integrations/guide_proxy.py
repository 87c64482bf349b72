"""The built-in guide as a proxy on loopback serves it, so that its pages keep the addresses they have."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.apps.demo.sites import guide

ORIGIN = "http://www.larkmoor-guide.example"
GUIDE = tuple(
    replace(one, page=replace(one.page, url=one.page.url.replace("https://", "http://"))) for one in guide()
)
"""The guide without encryption, of which a proxy would see nothing."""
PAGES = {one.page.url: one.page.html for one in GUIDE}
START = f"{ORIGIN}/start"
MOVED = f"{ORIGIN}/moved"
NO_PAGE = f"{ORIGIN}/data.json"
ROBOTS = b"User-agent: *\nAllow: /\n"


@contextmanager
def served_guide(*urls: str) -> Iterator[str]:
    """The address of a proxy; its start page links to these pages, and to what is no page."""
    links = "".join(f'<li><a href="{url}">x</a>' for url in (*urls, MOVED, NO_PAGE, f"{ORIGIN}/nowhere"))
    start = f"<!DOCTYPE html><title>Start</title><ul>{links}</ul>".encode()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == START:
                self.answer(200, start)
            elif self.path == MOVED:
                self.answer(301, b"", Location=urls[0])
            elif self.path == NO_PAGE:
                self.answer(200, b"{}", "application/json")
            elif self.path == f"{ORIGIN}/robots.txt":
                self.answer(200, ROBOTS, "text/plain")
            elif self.path in PAGES:
                self.answer(200, gzip.compress(PAGES[self.path], mtime=0), **{"Content-Encoding": "gzip"})
            else:
                self.answer(404, b"<p>gone")

        def answer(
            self, status: int, body: bytes, media_type: str = "text/html; charset=utf-8", **headers: str
        ) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": media_type,
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64  # of five, what Scrapy asks at once would wait a second for its turn

    server = Server(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
