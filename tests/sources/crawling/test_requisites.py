"""Stylesheets of pages, fetched with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse

from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.settings import CrawlSettings, StoreSettings
from siteloom.sources.crawling import crawl_source
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.sources.crawling.links import LARGEST_STYLESHEET, imports_of, stylesheets_of
from siteloom.sources.open_sources import open_source
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.changing import done
from tests.apps.cli.command import work_inside
from tests.sources.crawling.test_crawl import ROOT
from tests.sources.crawling.web_site import QuietHandler, QuietServer, running

HEAD = """
<link rel="stylesheet" href="/main.css#part"><link rel=icon href=/icon.png>
<link rel="STYLESHEET" href="http://outside.example:PORT/cdn.css">
<link rel="stylesheet" href="http://inside.example:PORT/secret.css">
<link rel="stylesheet" href="/members/ann.css"><link rel="stylesheet" href="/none.css">
<link rel="stylesheet" href="/page.css"><link rel="stylesheet" href="/large.css">
"""
FILES = {
    "/1": ("text/html", HEAD),
    "/2": ("text/html", HEAD),
    "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /members/\n"),
    "/main.css": ("text/css; charset=utf-8", "@import 'sub/part.css'; p { color: red }"),
    "/sub/part.css": ("text/css", "@import url(../main.css); @import url(deep.css);"),
    "/sub/deep.css": ("text/css", "p {}"),
    "/cdn.css": ("text/css", "i {}"),
    "/page.css": ("text/html", "<h1>Not here</h1>"),
    "/large.css": ("text/css", "x" * (LARGEST_STYLESHEET + 1)),
}


class _Answers(QuietHandler):
    server: QuietServer

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        self.server.asked.append(self.path)
        media_type, text = FILES.get(self.path, ("text/html", ""))
        self.send_response(200 if text else 404)
        self.send_header("Content-Type", media_type)
        self.end_headers()
        self.wfile.write(text.replace("PORT", str(self.server.server_port)).encode())


@pytest.fixture
def server() -> Iterator[QuietServer]:
    server = QuietServer(("0.0.0.0", 0), _Answers)
    with running(server):
        yield server


def test_stylesheets_come_once_from_wherever_they_may(
    server: QuietServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_source, "_PROGRAM", "tests.sources.crawling.crawl_near_127_0_0_1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    address = f"http://127.0.0.1:{server.server_port}"
    urls = (f"{address}/1", f"{address}/2")
    items = list(Crawl(urls, 2, settings=CrawlSettings(delay=0), with_requisites=True).read())
    assert {item.url for item in items if isinstance(item, Page)} == set(urls)
    assert not [item for item in items if isinstance(item, Failure)]
    resources = {item.url.removeprefix(address): item for item in items if isinstance(item, Resource)}
    cdn = f"http://outside.example:{server.server_port}/cdn.css"
    assert resources.keys() == {"/main.css", "/sub/part.css", "/sub/deep.css", cdn}
    main = resources["/main.css"]
    assert (main.media_type, main.body.decode()) == FILES["/main.css"]
    assert main.fetched_at is not None
    skipped = {item.url.rpartition("/")[2]: item.reason for item in items if isinstance(item, Skipped)}
    assert skipped == {
        "secret.css": "stylesheet: private address",
        "ann.css": "stylesheet: forbidden by robots.txt",
        "none.css": "stylesheet: status 404",
        "page.css": "not a stylesheet but text/html",
        "large.css": "stylesheet: page too large",
    }
    assert server.asked.count("/main.css") == 1
    assert not {"/secret.css", "/members/ann.css", "/icon.png"} & set(server.asked)


def test_a_crawl_keeps_them_in_the_workspace(
    server: QuietServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work_inside(tmp_path, monkeypatch)
    address = f"http://127.0.0.1:{server.server_port}"
    crawl = ("crawl", f"{address}/1", "--pages", "1", "--delay", "0", "--private", "--no-sitemap")
    done(*crawl, "--requisites")
    with closing(open_store(StoreSettings())) as store:
        kept = store.resource(f"{address}/sub/part.css")
        assert kept is not None
        assert kept.body.decode() == FILES["/sub/part.css"][1]
        assert [page.url for page in store.pages()] == [f"{address}/1"]
    done(*crawl, "--requisites", "-o", "pages.warc.gz")
    with_resources = open_source("pages.warc.gz", with_resources=True).read()
    assert f"{address}/main.css" in {item.url for item in with_resources if isinstance(item, Resource)}


def test_addresses_are_in_full_as_the_archive_looks_them_up() -> None:
    html = """
        <base href="/a/"><link rel="alternate stylesheet" href=" b c.css#x "><link rel=stylesheet href="">
        <link rel=stylesheet href="data:text/css,p{}"><link rel=stylesheet href="http://[">
        <style>@import "d.css" print; p { content: "@import 'no.css'" }</style>
    """
    response = HtmlResponse("http://x.example/p", body=html, encoding="utf-8")
    found = list(stylesheets_of(response))
    assert found[:2] == ["http://x.example/a/b%20c.css", "http://x.example/a/d.css"]


@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("@import 'a.css';", ["a.css"]),
        ('@IMPORT "a.css" screen;', ["a.css"]),
        ("@import url(a.css);@import url( 'b.css' ) layer(x);", ["a.css", "b.css"]),
        ('@import/**/url("a.css")', ["a.css"]),
        ("/* @import 'a.css'; */ p { }", []),
        ("/* @import 'a.css';", []),
        ("@import ", []),
        ("@import url(", []),
        ("@import url()", []),
        ("@import 'a", []),
    ],
)
def test_what_a_stylesheet_imports(css: str, found: list[str]) -> None:
    assert list(imports_of(css, "http://x.example/s/")) == [f"http://x.example/s/{name}" for name in found]
