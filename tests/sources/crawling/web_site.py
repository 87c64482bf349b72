"""A web site on loopback: the built-in guide, with all that makes the web hard to crawl."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from siteloom.apps.demo.sites import guide_site

GUIDE = {urlsplit(one.page.url).path: one.page.html for one in guide_site()}
A_LIST = next(path for path in GUIDE if path.startswith("/cuisine/"))
ROBOTS = b"User-agent: Siteloom\nDisallow: /members/\n\nUser-agent: *\nDisallow: /\n"
NO_LINKS = ("http://[", "//127.0.0.1:99999/", "https://a b.example/", "//", "http://", "http:///x", "tel:1")
SOME_LINKS = ("/members/ann", "/away", "/moved", "/data", "/nowhere")
START = (A_LIST, "/calendar/2026/1", *NO_LINKS, "/nest/", *SOME_LINKS)
CROOKED = b"""<base href="http://["><link rel=next href="http://["><link rel=stylesheet href="http://[">
<link rel=next href="/nest/"><meta http-equiv=refresh content="0; url=http://["><h1>Crooked</h1>"""
LARGE = 300_000
SLOW_SECONDS = 60


@dataclass
class WebSite:
    """Where it is served, and what was asked of it, with the time and the user agent."""

    address: str
    asked: list[tuple[str, float, str]] = field(default_factory=list)
    robots: bytes = ROBOTS
    robots_status: int = 200
    also: Mapping[str, bytes] = field(default_factory=dict)
    """Paths besides, and what is there: XML, text, a stylesheet, or HTML."""

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0


def shop(lists: int, items_of_a_list: int) -> dict[str, bytes]:
    """A shop whose items stand in a list of many pages, each of which says in its head what is next."""
    links = b'<a href="/shop/list?page=1">all</a><a href="/calendar/2026/1">news</a>'
    pages = {"/shop": b"<link rel=stylesheet href=/shop.css>" + links}
    for page in range(1, lists + 1):
        items = range((page - 1) * items_of_a_list, page * items_of_a_list)
        listed = "".join(f'<p><a href="/shop/item/{item}.html">{item}</a>' for item in items)
        following = f'<link rel="next" href="/shop/list?page={page + 1}">' if page < lists else ""
        pages[f"/shop/list?page={page}"] = f"<head>{following}</head>{listed}".encode()
        pages |= {f"/shop/item/{item}.html": f"<h1>Item {item}</h1>".encode() for item in items}
    return pages


@contextmanager
def served_site(
    robots: bytes = ROBOTS,
    robots_status: int = 200,
    also: Mapping[str, bytes] | None = None,
    *,
    host: str = "127.0.0.1",
    certificate: Path | None = None,
) -> Iterator[WebSite]:
    """The site on 127.0.0.1; other addresses of loopback lead to it, too."""
    server = _Server(("0.0.0.0", 0), _Answers)
    scheme = "http"
    if certificate is not None:
        scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    address = f"{scheme}://{host}:{server.server_port}"
    server.site = WebSite(address, [], robots, robots_status, also or {})
    with running(server):
        yield server.site


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    """Let a server answer, in a thread of its own."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class QuietServer(ThreadingHTTPServer):
    """A server that waits for no one, and says nothing of those who hang up; `asked` is for its handler."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.asked: list[str] = []

    def handle_error(self, *_: Any) -> None:
        """Say nothing."""


class QuietHandler(BaseHTTPRequestHandler):
    """Says nothing of what it answers."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(QuietServer):
    site: WebSite


class _Answers(QuietHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer would wait some 40 ms for its second part
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        site.asked.append((self.path, time.monotonic(), self.headers["User-Agent"]))
        match self.path.strip("/").split("/"):
            case ["robots.txt"]:
                self.answer(site.robots, "text/plain", site.robots_status)
            case _ if self.path in site.also:
                body = site.also[self.path]
                is_xml = body.startswith((b"<?xml", b"\x1f\x8b"))
                also = "text/css" if self.path.endswith(".css") else "text/html; charset=utf-8"
                self.answer(body, "application/xml" if is_xml else also)
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
            case ["to", path]:
                self.redirect(f"/{path}")
            case ["away"]:
                self.redirect(f"http://127.0.0.2:{site.port}/")
            case ["via"]:
                self.redirect(f"http://127.0.0.3:{site.port}/away")
            case ["door"]:
                self.answer(f'<meta http-equiv="refresh" content="0; url={A_LIST}">'.encode())
            case ["lost"]:
                self.redirect("http://[")
            case ["crooked"]:
                self.answer(CROOKED)
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
