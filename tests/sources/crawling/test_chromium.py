"""Pages that scripts make: a real Chromium, and a real server that it must not reach past."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from siteloom.core.errors import MissingExtra, SourceError
from siteloom.core.model import Failure, Page
from siteloom.core.settings import CrawlSettings, PagesSettings
from siteloom.sources.crawling import crawl_source
from siteloom.sources.crawling.crawl_source import Crawl
from tests.patience import SECONDS, wait_until
from tests.sources.crawling.test_crawl import ROOT, fetch
from tests.sources.crawling.web_site import QuietHandler, QuietServer, running

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
    monkeypatch.setattr(crawl_source, "_PROGRAM", "tests.sources.crawling.crawl_near_127_0_0_1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    address = f"http://127.0.0.1:{server.server_port}"
    # Several sites, for one page of a site is opened at a time.
    other = f"http://both.example:{server.server_port}"
    paths = ("/made", "/led", "/forbidden", "/inward")
    urls = (
        *(other + path for path in ("/restless", "/spying", "/huge")),
        *map(address.__add__, paths),
    )
    settings = CrawlSettings(delay=0, timeout=SECONDS, sandbox=False)
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
    settings = CrawlSettings(delay=0, timeout=2, private=True, sandbox=False)
    (failure,) = fetch(Crawl((url,), 1, settings=settings, renders=True)).values()
    assert isinstance(failure, Failure)
    assert failure.reason == "too slow"


def page(item: object) -> Page:
    assert isinstance(item, Page)
    return item


def test_no_browser_outlives_the_process_that_reads(server: QuietServer, tmp_path: Path) -> None:
    program = f"""
import os, signal
from siteloom.core.settings import CrawlSettings
from siteloom.sources.crawling.crawl_source import Crawl
urls = ("http://127.0.0.1:{server.server_port}/linked", "http://127.0.0.1:{server.server_port}/stuck")
for _ in Crawl(urls, 2, settings=CrawlSettings(delay=0, private=True, sandbox=False), renders=True).read():
    os.kill(os.getpid(), signal.SIGKILL)
"""
    # By the folder of its profile, it is told from other browsers.
    folders = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    environment = {"PATH": "/usr/bin:/bin", **folders}
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
    settings = CrawlSettings(delay=0, private=True, sandbox=False)
    crawl = Crawl((f"http://127.0.0.1:{server.server_port}/linked",), 1, settings=settings, renders=True)
    (tmp_path / "chromium").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "chromium").chmod(0o755)
    with pytest.raises(
        SourceError, match=rf"^Chromium cannot be started from {tmp_path}/chromium: .*[^.]\.$"
    ):
        list(crawl.read())


def test_without_playwright_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_source, "find_spec", lambda name: None if name == "playwright" else object())
    with pytest.raises(MissingExtra, match=r"siteloom\[render\]"):
        next(iter(Crawl(("http://x.example/",), 1, renders=True).read()))


def as_user(number: int, *, with_namespaces: bool = True) -> list[str]:
    """What makes the command behind it one of that user, who may make user namespaces or not."""
    command = ["unshare", "--user", f"--map-user={number}", f"--map-group={number}"]
    if with_namespaces:
        return command
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    return [*command, "--keep-caps", "sh", "-c", forbid, "sh"]


def can_be_another() -> bool:
    """Whether this user may take the place of others, as one in a container often may not."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*as_user(ANN), "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


ANN = 65_000
needs_others = pytest.mark.skipif(not can_be_another(), reason="unshare --user is not allowed here")


def crawl_as(
    user: list[str], server: QuietServer, folder: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    url = f"http://127.0.0.1:{server.server_port}/made?{folder.name}"
    verb = ("crawl", url, "--render", "--private", "--delay", "0", "--pages", "1", "--no-sitemap", *options)
    return subprocess.run(
        [*user, sys.executable, "-m", "siteloom", *verb],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_root_gets_no_browser_without_a_sandbox_unless_that_is_said(
    server: QuietServer, tmp_path: Path
) -> None:
    root = [] if os.geteuid() == 0 else as_user(0)
    begin = len(server.asked)
    refused = crawl_as(root, server, tmp_path)
    assert refused.returncode == 1
    (sentence,) = refused.stderr.splitlines()
    assert sentence.endswith("run siteloom as another user, or give --no-sandbox if you trust these sites.")
    assert not (tmp_path / ".siteloom").exists()
    assert server.asked[begin:] == []

    (tmp_path / "siteloom.toml").write_text("[crawl]\nsandbox = false\n")
    not_trusted = crawl_as(root, server, tmp_path)
    assert not_trusted.returncode != 0
    assert "siteloom.toml sets crawl.sandbox" in not_trusted.stderr
    (tmp_path / "siteloom.toml").unlink()

    allowed = crawl_as(root, server, tmp_path, "--no-sandbox", "-o", "pages.warc")
    assert allowed.returncode == 0, allowed.stderr
    assert b"<p>made by script for Siteloom/" in (tmp_path / "pages.warc").read_bytes()


@needs_others
def test_any_other_user_gets_one_with_its_sandbox(server: QuietServer, tmp_path: Path) -> None:
    done = crawl_as(as_user(ANN), server, tmp_path, "-o", "pages.warc")
    assert done.returncode == 0, done.stderr
    assert b"<p>made by script for Siteloom/" in (tmp_path / "pages.warc").read_bytes()


@needs_others
def test_where_there_is_no_sandbox_that_is_told_in_a_sentence(server: QuietServer, tmp_path: Path) -> None:
    bounded = as_user(ANN, with_namespaces=False)
    refused = crawl_as(bounded, server, tmp_path, "-o", "pages.warc")
    assert refused.returncode == 1
    sentence = refused.stderr.splitlines()[-1]
    assert "cannot have its sandbox here" in sentence
    assert sentence.endswith("or give --no-sandbox if you trust these sites.")
    allowed = crawl_as(bounded, server, tmp_path, "-o", "pages.warc", "--no-sandbox")
    assert allowed.returncode == 0, allowed.stderr
