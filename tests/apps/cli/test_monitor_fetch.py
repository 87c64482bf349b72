"""`siteloom monitor --fetch`: watched pages are fetched again from a real server, and compared."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from siteloom.core.file_lock import is_locked
from siteloom.sources.crawling import crawl_source
from tests.apps.cli.changing import LAYOUTS, Going, done, inside, rows, stored
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.apps.demo.sites import guide, of_kind
from tests.extraction.test_extraction import restaurants
from tests.sources.crawling.web_site import QuietHandler, QuietServer, running

COUNT = 12
HOST = "127.0.0.1"
WRAPPER = f"{HOST}/1"
PAGES = {
    name: {urlsplit(one.page.url).path: one.page.html for one in of_kind(guide(layout), "restaurant")[:COUNT]}
    for name, layout in LAYOUTS.items()
}
LAST_MODIFIED = "Sat, 01 Mar 2025 12:00:00 GMT"


@dataclass
class Guide:
    """What the site has now, and what was answered."""

    pages: dict[str, bytes] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    robots: str = ""
    status: int = 200
    answers: list[tuple[str, int]] = field(default_factory=list)
    was_locked: bool = False
    """Whether the workspace was locked while something was asked for."""
    port: int = 0

    def begin(self, layout: str = "original") -> None:
        self.pages = dict(PAGES[layout])
        self.moved, self.robots, self.status, self.was_locked = {}, "", 200, False
        self.answers.clear()

    def counts(self) -> Counter[int]:
        """How often each status was answered for a page."""
        return Counter(status for path, status in self.answers if path != "/robots.txt")


class _Server(QuietServer):
    site: Guide


class _Answers(QuietHandler):
    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        site = self.server.site
        if self.path == "/robots.txt":
            self.answer(200, site.robots.encode(), {"Content-Type": "text/plain"})
        elif self.path in site.moved:
            self.answer(301, b"", {"Location": site.moved[self.path]})
        elif site.status != 200:
            self.answer(site.status, b"")
        elif (html := site.pages.get(self.path)) is None:
            self.answer(404, b"<h1>Not here</h1>")
        else:
            self.conditional(html)

    def conditional(self, html: bytes) -> None:
        """Every other page has an ETag, the others a time; what is new takes any for its own."""
        if sorted(self.server.site.pages).index(self.path) % 2:
            told, asked = ("ETag", f'"{hashlib.sha256(html).hexdigest()[:16]}"'), "If-None-Match"
        else:
            is_first = html == PAGES["original"].get(self.path)
            told = ("Last-Modified", LAST_MODIFIED if is_first else "Sun, 02 Mar 2025 12:00:00 GMT")
            asked = "If-Modified-Since"
        is_same = self.headers[asked] == told[1]
        if self.path.startswith("/new/"):
            is_same = bool(self.headers["If-None-Match"] or self.headers["If-Modified-Since"])
        self.answer(304 if is_same else 200, b"" if is_same else html, dict([told]))

    def answer(self, status: int, body: bytes, also: dict[str, str] | None = None) -> None:
        self.server.site.answers.append((self.path, status))
        self.server.site.was_locked |= is_locked(Path(".siteloom"))
        self.send_response(status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **(also or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def served() -> Iterator[Guide]:
    server = _Server((HOST, 0), _Answers)
    server.site = Guide(port=server.server_port)
    server.site.begin()
    with running(server):
        yield server.site


@pytest.fixture(scope="module")
def made_place(served: Guide, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the pages of the site, of which ten are watched."""
    folder = tmp_path_factory.mktemp("served")
    urls = {path: f"http://{HOST}:{served.port}{path}" for path in PAGES["original"]}
    lines = [{"url": urls[path], "html": html.decode()} for path, html in PAGES["original"].items()]
    write_lines(folder / "original.jsonl", lines)
    pattern = rf"^https?://127\.0\.0\.1:{served.port}/restaurants/[^/?#]+/[^/?#]+\.html$"
    footprint = replace(restaurants().footprint, sites=(HOST,), url_patterns=(pattern,))
    with inside(folder):
        done("ingest", "original.jsonl")
        with closing(stored()) as store:
            text = replace(restaurants(), footprint=footprint).to_json()
            store.save_wrapper(WRAPPER, HOST, text, "learn")
        done("watch", "-k", "10", "-o", "watch.jsonl")
    return folder


@pytest.fixture
def site(served: Guide, made_place: Path, go: Going, monkeypatch: pytest.MonkeyPatch) -> Guide:
    go(made_place)
    monkeypatch.setenv("SITELOOM_CRAWL_PRIVATE", "true")
    monkeypatch.setenv("SITELOOM_CRAWL_DELAY", "0")
    monkeypatch.setenv("SITELOOM_CRAWL_TIMEOUT", "5")
    served.begin()
    return served


def watched() -> list[str]:
    """The paths of the pages that are watched."""
    with closing(stored()) as store:
        (watch,) = store.watches()
    return [urlsplit(one["url"]).path for one in json.loads(watch.text)["bellwethers"]]


def last_check() -> bool | None:
    """Whether the site was well by the newest check, if there was one."""
    with closing(stored()) as store:
        return next((one.is_healthy for one in store.checks()), None)


def told(*arguments: str) -> str:
    return " ".join(done("monitor", "--fetch", *arguments).split())


def test_what_has_not_changed_is_not_sent_again_and_a_change_is_told(
    site: Guide, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = watched()[0]
    url = f"http://{HOST}:{site.port}{path}"
    done("crawl", url, "--pages", "1", "--no-sitemap")  # which keeps what the server says, too
    site.answers.clear()
    assert "│ fetched │ 9 │ │ not modified │ 1 │" in told()
    assert (path, 304) in site.answers
    site.answers.clear()
    said = told()
    assert "│ not modified │ 10 │" in said
    assert "healthy" in said
    assert site.counts() == {304: 10}
    assert not site.was_locked  # others can write meanwhile
    with closing(stored()) as store:
        assert store.runs(2)[1].counts["unchanged"] == 10
        assert len(store.versions(url, HOST)) == 1

    site.begin("mild")
    others = sum(PAGES["mild"][path] != PAGES["original"][path] for path in watched())
    (change,) = rows("monitor", "--fetch")
    assert (change["wrapper"], change["test"], change["attributes"]) == (WRAPPER, "null", ["phone"])
    assert site.counts() == {200: others, 304: 10 - others}
    assert last_check() is False
    with closing(stored()) as store:
        assert len(store.versions(change["evidence"][0]["url"], HOST)) == 2
    site.begin("original")
    monkeypatch.setenv("SITELOOM_RETENTION_VERSIONS", "1")
    said = told()
    assert "healthy" in said
    assert "Removed, as the settings of retention say" in said


def test_pages_that_lead_elsewhere_are_compared_as_what_is_there(site: Guide) -> None:
    first, second, *others = watched()
    told()
    site.moved = {first: "/", second: "/new" + second}
    site.pages |= {"/": b"<h1>Welcome</h1>", "/new" + second: site.pages[second]}
    said = told()
    assert "│ fetched │ 2 │ │ not modified │ 8 │" in said
    assert "1 of 10 pages were removed" in said  # the one that leads to the start page
    assert last_check() is True
    assert second in watched()
    assert len(others) == 8


def test_pages_that_are_gone_or_could_not_be_fetched_are_no_change(site: Guide) -> None:
    first, second, third, *gone = watched()[:5]
    site.robots = f"User-agent: *\nDisallow: {first}\nDisallow: {second}\n"
    site.moved = {third: third}
    for path in gone:
        del site.pages[path]
    said = told()
    assert "│ removed: status 404 │ 2 │ │ failed: forbidden by robots.txt │ 2 │" in said
    assert "│ failed: too many redirects │ 1 │" in said
    assert "2 of 10 pages were removed" in said
    assert "others take their place" in said
    assert "3 of 10 pages were not fetched again." in said
    assert "healthy" in said
    assert last_check() is True
    assert len(watched()) == 10
    assert not set(watched()) & set(gone)


def test_a_site_that_has_moved_its_pages_is_told_though_some_are_as_they_were(site: Guide) -> None:
    for path in watched()[:7]:
        del site.pages[path]
    result = within("monitor", "--fetch", "-o", "changes.jsonl")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(
        f"siteloom: 7 of 10 watched pages of {WRAPPER} were removed: the site may have moved its pages, so "
    )
    assert "healthy" not in result.stderr
    assert Path("changes.jsonl").read_text(encoding="utf-8") == ""
    assert last_check() is None


def test_private_addresses_are_fetched_if_that_is_said(site: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SITELOOM_CRAWL_PRIVATE")
    result = within("monitor", "--fetch")
    assert result.returncode == 1
    assert "(private address: 10)" in result.stderr
    assert "to allow this, give --private, or set private = true under [crawl]" in one_sentence(result)
    assert "later" not in result.stderr
    assert "healthy" in told("--private")


def test_an_outage_is_no_change(site: Guide) -> None:
    site.status = 403
    before = last_check()
    result = within("monitor", "--fetch", "-o", "changes.jsonl")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        f"siteloom: No watched page could be fetched of {HOST} (status 403: 10): whether anything has "
        "changed there cannot be told, so try again later."
    )
    assert last_check() is before is None
    assert not Path("changes.jsonl").exists()


def test_a_site_that_is_out_of_reach_does_not_keep_others_from_being_compared(site: Guide) -> None:
    other = f"http://127.0.0.2:{site.port}"  # where no one listens
    lines = Path("watch.jsonl").read_text(encoding="utf-8")
    away = lines.replace(f"http://{HOST}:{site.port}", other).replace(WRAPPER, "127.0.0.2/1")
    Path("both.jsonl").write_text(lines + away, encoding="utf-8")
    site.begin("mild")
    result = within("monitor", "--fetch", "--watch", "both.jsonl", "-o", "changes.jsonl")
    assert result.returncode == 1
    assert "could be fetched of 127.0.0.2 (connection refused: 10)" in result.stderr.splitlines()[-1]
    (change,) = map(json.loads, Path("changes.jsonl").read_text(encoding="utf-8").splitlines())
    assert (change["wrapper"], change["attributes"]) == (WRAPPER, ["phone"])


def test_a_watch_in_a_file_needs_no_workspace(site: Guide) -> None:
    site.begin("mild")
    without = ("--watch", "watch.jsonl", "--workspace", "none")
    del site.pages[watched()[0]]
    assert "1 of 10 pages were removed" in told(*without, "-o", "changes.jsonl")
    (change,) = map(json.loads, Path("changes.jsonl").read_text(encoding="utf-8").splitlines())
    assert change["attributes"] == ["phone"]
    assert not Path("none").exists()


def test_addresses_that_the_web_does_not_know_are_told(site: Guide) -> None:
    lines = Path("watch.jsonl").read_text(encoding="utf-8")
    Path("folder.jsonl").write_text(lines.replace(f"http://{HOST}:{site.port}", "pages"), encoding="utf-8")
    result = within("monitor", "--fetch", "--watch", "folder.jsonl")
    assert result.returncode == 1
    assert "(no address of the web: 10)" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fetch", "original.jsonl"), "--fetch takes the pages from the web: leave the SOURCE out."),
        (("--render",), "--render is for pages from the web: give --fetch, too."),
        (("--private",), "--private is for pages from the web: give --fetch, too."),
        (
            ("--fetch", "--no-sandbox"),
            "--no-sandbox is for pages that are opened in Chromium: give --render, too.",
        ),
        (("--watch", "watch.jsonl"), "give one, or --fetch, or leave it out."),
    ],
)
def test_mistakes_are_told_in_a_sentence(site: Guide, arguments: tuple[str, ...], message: str) -> None:
    result = within("monitor", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == 2


def test_pages_that_scripts_make_need_a_browser(site: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "none")
    result = within("monitor", "--fetch", "--render", "--no-sandbox")
    assert result.returncode == 1
    assert "Pages that scripts make need Chromium, and there is none: install it, or run" in one_sentence(
        result
    )


def test_without_scrapy_the_extra_is_named(site: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_source, "find_spec", lambda _: None)
    assert "siteloom[crawl]" in one_sentence(within("monitor", "--fetch"))
