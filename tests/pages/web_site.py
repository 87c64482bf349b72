"""A web site on loopback: the built-in guide, with all that makes the web hard to crawl."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from siteloom.builtin import guide_site

GUIDE = {urlsplit(one.page.url).path: one.page.html for one in guide_site()}
A_LIST = next(path for path in GUIDE if path.startswith("/cuisine/"))
ROBOTS = b"User-agent: Siteloom\nDisallow: /members/\n\nUser-agent: *\nDisallow: /\n"
NO_LINKS = ("http://[", "//127.0.0.1:99999/", "https://a b.example/", "//", "http://", "http:///x", "tel:1")
SOME_LINKS = ("/members/ann", "/away", "/moved", "/data", "/nowhere")
START = (A_LIST, "/calendar/2026/1", *NO_LINKS, "/nest/", *SOME_LINKS)
LARGE = 300_000
SLOW_SECONDS = 8


@dataclass
class WebSite:
    """Where it is served, and what was asked of it, with the time and the user agent."""

    address: str
    asked: list[tuple[str, float, str]] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0


@contextmanager
def served_site() -> Iterator[WebSite]:
    """The site on 127.0.0.1; other addresses of loopback lead to it, too."""
    server = _Server(("0.0.0.0", 0), _Answers)
    server.site = WebSite(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    site: WebSite

    def handle_error(self, *_: Any) -> None:
        """Say nothing of those who hang up."""


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        site.asked.append((self.path, time.monotonic(), self.headers["User-Agent"]))
        match self.path.strip("/").split("/"):
            case ["robots.txt"]:
                self.answer(ROBOTS, "text/plain")
            case [""]:
                self.links(*START)
            case ["calendar", year, month]:
                at = int(year) * 12 + int(month)
                self.links(f"/calendar/{at // 12}/{at % 12 + 1}", f"/calendar/{int(year) + 1}/1")
            case ["nest", *parts]:
                self.links(f"/nest/{'deeper/' * (len(parts) + 1)}")
            case ["loop"]:
                self.redirect("/loop")
            case ["moved"]:
                self.redirect(A_LIST + "#top")
            case ["away"]:
                self.redirect(f"http://127.0.0.2:{site.port}/")
            case ["door"]:
                self.answer(f'<meta http-equiv="refresh" content="0; url={A_LIST}">'.encode())
            case ["slow"]:
                time.sleep(SLOW_SECONDS)
                self.links()
            case ["large"]:
                self.answer(b"x" * LARGE)
            case ["packed"]:
                self.answer(gzip.compress(b"x" * LARGE), also={"Content-Encoding": "gzip"})
            case ["latin"]:
                self.answer("<h1>Café</h1>".encode("latin-1"), 'text/html; charset="ISO-8859-1"')
            case ["data"]:
                self.answer(b"{}", "application/json")
            case ["untyped"]:
                self.answer(b"<h1>?</h1>", "")
            case ["broken"]:
                self.answer(b"<h1>sorry</h1>", status=500)
            case ["busy"] if site.paths.count("/busy") == 1:
                self.answer(b"", status=429, also={"Retry-After": "1"})
            case ["busy"]:
                self.answer(b"<h1>now</h1>")
            case _ if self.path in GUIDE:
                self.answer(GUIDE[self.path])
            case _:
                self.answer(b"<h1>not found</h1>", status=404)

    def links(self, *targets: str) -> None:
        self.answer("".join(f'<p><a href="{one}">{one}</a>' for one in targets).encode())

    def redirect(self, target: str) -> None:
        self.answer(b"", status=302, also={"Location": target})

    def answer(
        self,
        body: bytes,
        media_type: str = "text/html; charset=utf-8",
        status: int = 200,
        also: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        if media_type:
            self.send_header("Content-Type", media_type)
        for name, value in (also or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
