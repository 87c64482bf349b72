"""Pages that scripts make: a real Chromium, and a real server that it must not reach past."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from siteloom.config import CrawlSettings, PagesSettings
from siteloom.errors import MissingExtra, SourceError
from siteloom.model import Failure, Page
from siteloom.pages.crawl import Crawl, source

from ..patience import SECONDS, wait_until
from .test_crawl import ROOT, fetch
from .web_site import QuietHandler, QuietServer, running

LIMIT = 100_000
SCRIPTS = {
    "/made": """
        fetch("/data").then(answer => answer.text()).then(text => {
            document.querySelector("p").textContent = text + " for " + navigator.userAgent
            document.body.insertAdjacentHTML("beforeend", "<a href=/linked>more</a>")
        })""",
    "/linked": "document.title = '\\ud800 half a letter'",
    "/led": "location.href = '/linked?led'",
    "/forbidden": "location.href = '/members/ann'",
    "/inward": "location.href = 'http://127.0.0.2:PORT/secret'",
    "/spying": """
        for (const host of ["127.0.0.2", "inside.example", "[::1]"])
            fetch(`http://${host}:PORT/secret`, {mode: "no-cors"}).then(
                () => document.body.append("reached " + host), () => document.body.append("refused "))
        document.body.insertAdjacentHTML("beforeend", "<iframe src='http://127.0.0.2:PORT/secret'></iframe>")
        open("http://127.0.0.2:PORT/secret")
        new WebSocket("ws://127.0.0.2:PORT/secret")""",
    "/huge": f"document.body.append('x'.repeat({LIMIT}))",
    "/restless": "setInterval(() => fetch('/data?' + Math.random()), 50)",
    "/stuck": "while (true) {}",
}
ROBOTS = "User-agent: *\nDisallow: /members/\n"


class _Answers(QuietHandler):
    server: QuietServer

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        self.server.asked.append(self.path)
        path = self.path.partition("?")[0]
        body = {"/data": "made by script", "/robots.txt": ROBOTS}.get(path, "")
        if path in SCRIPTS:
            script = SCRIPTS[path].replace("PORT", str(self.server.server_port))
            body = f"<title>ü</title><body><p>as sent</p><script>{script}</script>"
        self.send_response(200 if body else 404)
        is_text = path in ("/data", "/robots.txt")
        self.send_header("Content-Type", "text/plain" if is_text else "text/html; charset=latin-1")
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(body.encode("latin-1"))


@pytest.fixture(scope="module")
def server() -> Iterator[QuietServer]:
    server = QuietServer(("0.0.0.0", 0), _Answers)
    with running(server):
        yield server


def test_pages_are_what_scripts_make_of_them_within_the_rules(
    server: QuietServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_PROGRAM", "tests.pages.crawl_near_127_0_0_1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    address = f"http://127.0.0.1:{server.server_port}"
    # Several sites, for one page of a site is opened at a time.
    other = f"http://both.example:{server.server_port}"
    paths = ("/made", "/led", "/forbidden", "/inward")
    urls = (
        *(other + path for path in ("/restless", "/spying", "/huge")),
        *map(address.__add__, paths),
    )
    settings = CrawlSettings(delay=0, timeout=SECONDS)
    crawl = Crawl(urls, 20, follows=True, settings=settings, pages=PagesSettings(LIMIT), renders=True)
    found = fetch(crawl)

    made = page(found[f"{address}/made"])
    assert "<p>made by script for Siteloom/" in made.html.decode()
    assert (made.charset, made.validators) == ("utf-8", None)
    assert "<title>ü</title>" in made.html.decode()
    assert "? half a letter" in page(found[f"{address}/linked"]).html.decode()  # a link that a script made
    assert isinstance(found[f"{address}/linked?led"], Page)
    assert "as sent" in page(found[f"{other}/restless"]).html.decode()
    failures = {
        url.removeprefix(address): one.reason for url, one in found.items() if isinstance(one, Failure)
    }
    assert failures == {
        "/forbidden": "forbidden by robots.txt",
        "/inward": "private address",
        f"{other}/huge": "page too large",
    }
    _, _, spied = page(found[f"{other}/spying"]).html.decode().partition("</script>")
    assert (spied.count("refused"), spied.count("reached")) == (3, 0)
    assert not [path for path in server.asked if path in ("/secret", "/members/ann")]


def test_a_page_whose_script_never_ends_is_too_slow(server: QuietServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/stuck"
    settings = CrawlSettings(delay=0, timeout=2, private=True)
    (failure,) = fetch(Crawl((url,), 1, settings=settings, renders=True)).values()
    assert isinstance(failure, Failure)
    assert failure.reason == "too slow"


def page(item: object) -> Page:
    assert isinstance(item, Page)
    return item


def test_no_browser_outlives_the_process_that_reads(server: QuietServer, tmp_path: Path) -> None:
    program = f"""
import os, signal
from siteloom.config import CrawlSettings
from siteloom.pages.crawl import Crawl
urls = ("http://127.0.0.1:{server.server_port}/linked", "http://127.0.0.1:{server.server_port}/stuck")
for _ in Crawl(urls, 2, settings=CrawlSettings(delay=0, private=True), renders=True).read():
    os.kill(os.getpid(), signal.SIGKILL)
"""
    # By the folder of its profile, it is told from other browsers.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment) as process:
        wait_until(lambda: bool(browsers(tmp_path)))
        process.wait()
    wait_until(lambda: not browsers(tmp_path))


def browsers(folder: Path) -> list[str]:
    """The processes that have something of a folder in their command."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        if f"={folder}/" in command:
            found.append(command)
    return found


def test_a_browser_that_cannot_be_started_is_told_of_in_a_sentence(
    server: QuietServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    settings = CrawlSettings(delay=0, private=True)
    crawl = Crawl((f"http://127.0.0.1:{server.server_port}/linked",), 1, settings=settings, renders=True)
    (tmp_path / "chromium").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "chromium").chmod(0o755)
    with pytest.raises(
        SourceError, match=rf"^Chromium cannot be started from {tmp_path}/chromium: .*[^.]\.$"
    ):
        list(crawl.read())


def test_without_playwright_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "find_spec", lambda name: None if name == "playwright" else object())
    with pytest.raises(MissingExtra, match=r"siteloom\[render\]"):
        next(iter(Crawl(("http://x.example/",), 1, renders=True).read()))
