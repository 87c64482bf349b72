"""Archived pages over HTTP: what is served, and what browsers are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode

import pytest
from httpx import Response
from lxml import etree
from sqlalchemy.event import listen

from siteloom.apps.server import create_app
from siteloom.core.model import Page, Resource
from siteloom.core.settings import ParseSettings, Settings, StoreSettings
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.browsing import Browser
from tests.store.helpers import put

URL = "https://shop.example/p/1"
HTML = (
    b"<!DOCTYPE html><link rel=stylesheet href=/a.css><link rel=stylesheet href=https://cdn.example/b.css>"
    b"<script>x()</script><h1>Blue Fern</h1><img src=/c.png><img src=/gone.png>"
)
CSS = '@charset "iso-8859-1"; @import "d.css"; p::after { content: "\u00e9"; background: url(c.png) }'


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("archive") / ".siteloom"
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as store:
        put(
            store,
            Page(URL, HTML),
            Page("https://shop.example/deep", b"<div>" * 5_000),
            Page("https://shop.example/old", b"<table><tr><td>x"),
            Resource("https://shop.example/a.css", CSS.encode("latin-1"), "text/css"),
            Resource("https://cdn.example/b.css", b"h1 { color: red }", "text/css; charset=utf-8"),
            Resource("https://shop.example/c.png", b"\x89PNG", "image/png"),
            Resource("https://shop.example/e.svg", b"<svg onload='x()'/>", "image/svg+xml"),
            Resource("https://shop.example/f", b"<script>x()</script>", "image/html"),
        )
        yield store


@pytest.fixture
def client(archive: Store) -> Browser:
    return Browser(create_app(archive, Settings()))


def number(store: Store, url: str = URL) -> int:
    return store.page_ids([PageAddress("shop.example", url)])[0]


def resource(client: Browser, store: Store, url: str, **more: str) -> Response:
    return client.get(f"/pages/{number(store)}/resource?{urlencode({'url': url, **more})}")


def test_tree(client: Browser, archive: Store) -> None:
    answer = client.get(f"/pages/{number(archive)}/tree")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/xhtml+xml")
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    root = etree.fromstring(answer.content)
    names = {"x": "http://www.w3.org/1999/xhtml"}
    assert root.xpath("string(//x:h1)", namespaces=names) == "Blue Fern"
    place = f"/pages/{number(archive)}/resource?url=https%3A%2F%2F"
    assert root.xpath("//x:link/@href", namespaces=names) == [
        place + "shop.example%2Fa.css",
        place + "cdn.example%2Fb.css",
    ]
    assert root.xpath("//x:img/@src", namespaces=names) == [place + "shop.example%2Fc.png"]
    assert b"x()" not in answer.content


def test_tree_with_the_web(client: Browser, archive: Store) -> None:
    root = etree.fromstring(client.get(f"/pages/{number(archive)}/tree?remote=1").content)
    sources = root.xpath("//x:img/@src", namespaces={"x": "http://www.w3.org/1999/xhtml"})
    kept = f"/pages/{number(archive)}/resource?url=https%3A%2F%2Fshop.example%2Fc.png&remote=1"
    assert sources == [kept, "https://shop.example/gone.png"]


def test_a_page_that_loads_thousands_of_images_asks_the_database_a_few_times(archive: Store) -> None:
    url = "https://shop.example/gallery"
    images = "".join(f"<img src=/i/{number}.png>" for number in range(5_000))
    put(archive, Page(url, f"{images}<img src=c.png>".encode()))
    browser = Browser(create_app(archive, Settings()))
    asked = []
    listen(archive.engine, "before_cursor_execute", lambda *event: asked.append(event[2]))
    tree = browser.get(f"/pages/{number(archive, url)}/tree").text
    assert tree.count("/resource?url=") == 1
    assert len(asked) < 20


def test_what_is_learned_from_can_be_shown(archive: Store) -> None:
    settings = Settings(parse=ParseSettings(max_bytes=10))
    assert Browser(create_app(archive, settings)).get(f"/pages/{number(archive)}/tree").status_code == 200


def test_frame(client: Browser, archive: Store) -> None:
    answer = client.get(f"/pages/{number(archive)}/frame")
    assert answer.text == "<!DOCTYPE html><html><head></head><body></body></html>"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "http" not in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    open_to_all = client.get(f"/pages/{number(archive)}/frame?remote=1").headers["content-security-policy"]
    assert "img-src 'self' data: https: http:" in open_to_all
    assert "script-src 'none'" in open_to_all
    old = client.get(f"/pages/{number(archive, 'https://shop.example/old')}/frame")
    assert "HTML 4.0 Transitional" in old.text  # which browsers take for no declaration at all


def test_stylesheets_are_made_harmless(client: Browser, archive: Store) -> None:
    answer = resource(client, archive, "https://shop.example/a.css")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    place = f"/pages/{number(archive)}/resource?url=https%3A%2F%2Fshop.example%2F"
    assert answer.text == (
        f'@charset "iso-8859-1"; /**/ p::after {{ content: "\u00e9"; background: url("{place}c.png") }}'
    )
    with_web = resource(client, archive, "https://shop.example/a.css", remote="1").text
    assert '@import url("https://shop.example/d.css")' in with_web
    assert resource(client, archive, "https://cdn.example/b.css").text == "h1 { color: red }"


def test_images(client: Browser, archive: Store) -> None:
    png = resource(client, archive, "https://shop.example/c.png")
    assert (png.content, png.headers["content-type"]) == (b"\x89PNG", "image/png")
    assert png.headers["x-content-type-options"] == "nosniff"
    svg = resource(client, archive, "https://shop.example/e.svg")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert svg.headers["content-security-policy"].startswith("sandbox;")


@pytest.mark.parametrize(
    "url", ["https://shop.example/f", "https://shop.example/gone.png", URL, "http://[", ""]
)
def test_other_resources_are_not_served(client: Browser, archive: Store, url: str) -> None:
    answer = resource(client, archive, url)
    assert answer.status_code == 404
    assert f"The archive has no stylesheet or image {url}." in answer.text


@pytest.mark.parametrize("part", ["tree", "frame", "resource?url=x"])
@pytest.mark.parametrize("page_id", [0, 999_999, 10**30])
def test_unknown_pages(client: Browser, page_id: int, part: str) -> None:
    answer = client.get(f"/pages/{page_id}/{part}")
    assert answer.status_code == 404
    assert f"There is no page {page_id} in the archive." in answer.text


def test_a_page_that_cannot_be_read(client: Browser, archive: Store) -> None:
    page_id = number(archive, "https://shop.example/deep")
    answer = client.get(f"/pages/{page_id}/tree")
    assert answer.status_code == 422
    assert "cannot be shown: nested too deeply" in answer.text
    assert client.get(f"/pages/{page_id}/frame").status_code == 200


def test_only_for_those_who_signed_in(archive: Store) -> None:
    stranger = Browser(create_app(archive, Settings()), "http://other.example")
    for part in ("tree", "frame", "resource?url=https://shop.example/c.png"):
        assert stranger.get(f"/pages/{number(archive)}/{part}").status_code == 403
