"""Archived pages in the browser: the same nodes as in lxml's tree, and nothing that acts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Page as BrowserPage

from siteloom.apps.server.security import SECURITY_HEADERS
from siteloom.core.model import Failure, Page, Resource
from siteloom.core.settings import StoreSettings
from siteloom.html.node_paths import elements_in_order
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import FRAMES, NOT_CONTENT
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.browser.conftest import Overheard
from tests.html.archived_view.broken_pages import BROKEN_PAGES
from tests.html.archived_view.test_archived import HOSTILE
from tests.store.helpers import put

SITE = "shop.example"
PAGES = {f"https://{SITE}/{number}": html for number, html in enumerate(BROKEN_PAGES.values())}
LONG = f"https://{SITE}/long"
HOSTILE_PAGE = f"https://{SITE}/hostile"
STYLED = f"https://{SITE}/styled"
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

STYLED_HTML = (
    "<!DOCTYPE html><link rel=stylesheet href=/a.css>"
    "<style>h2 { color: rgb(0, 0, 4) } a:link { color: rgb(0, 0, 6) }</style>"
    "<h1>one</h1><h2>two</h2><p style='color: rgb(0, 0, 5)'>three</p><a href=/x>four</a><img src=/b.gif>"
    "<form><input id=childNodes></form>"
)
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")

# As the annotator does it: the tree is read as XML, and takes the place of the frame's empty document.
# It is read by the frame's own reader, for in the other document no inline styles are allowed.
SHOW = """async (number) => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-same-origin");
    frame.src = `/pages/${number}/frame`;
    const loaded = new Promise(done => frame.addEventListener("load", done));
    document.body.replaceChildren(frame);
    const text = await (await fetch(`/pages/${number}/tree`)).text();
    await loaded;
    const tree = new frame.contentWindow.DOMParser().parseFromString(text, "application/xhtml+xml");
    const shown = frame.contentDocument;
    shown.replaceChild(shown.importNode(tree.documentElement, true), shown.documentElement);
}"""
SHOWN = "document.querySelector('iframe').contentDocument"
READ = """() => [...document.querySelector("iframe").contentDocument.querySelectorAll("[data-siteloom]")].map(
    element => [
        Number(element.getAttribute("data-siteloom")),
        [...element.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data),
    ])"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("archive") / ".siteloom"
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as store:
        pages = {
            **PAGES,
            LONG: "<p>" + "text & more " * 100_000 + "<p>end",
            HOSTILE_PAGE: HOSTILE,
            STYLED: STYLED_HTML,
        }
        put(
            store,
            *(Page.from_text(url, html) for url, html in pages.items()),
            Resource(f"https://{SITE}/a.css", b"@import 'c.css'; h1 { color: rgb(0, 0, 3) }", "text/css"),
            Resource(f"https://{SITE}/c.css", b"h1 { background: url(b.gif) }", "text/css"),
            Resource(f"https://{SITE}/b.gif", GIF, "image/gif"),
        )
        yield store


@pytest.fixture
def workspace_store(archive: Store) -> Store:
    return archive


@pytest.fixture
def host(page: BrowserPage, served: str) -> BrowserPage:
    """A page of the application, as far as browsers restrict it."""
    page.route("**/host", lambda route: route.fulfill(body="<!DOCTYPE html>", headers=_host_headers()))
    page.goto(f"{served}/host")
    return page


def _host_headers() -> dict[str, str]:
    return {"Content-Type": "text/html", **SECURITY_HEADERS}


def show(host: BrowserPage, store: Store, url: str) -> None:
    host.evaluate(SHOW, store.page_ids([PageAddress(SITE, url)])[0])


def tree_of(store: Store, url: str) -> list[Element]:
    found = store.page_by_id(store.page_ids([PageAddress(SITE, url)])[0])
    assert found is not None
    root = parse(found[1])
    assert not isinstance(root, Failure)
    return elements_in_order(root)


def texts(element: Element) -> list[str]:
    return [text for text in [element.text, *(child.tail for child in element)] if text]


def test_every_text_is_where_lxml_has_it(host: BrowserPage, archive: Store) -> None:
    for url in [*PAGES, LONG]:
        show(host, archive, url)
        read = dict(host.evaluate(READ))
        elements = tree_of(archive, url)
        expected = {
            number: [NOT_XML.sub("\ufffd", text) for text in texts(element)]
            for number, element in enumerate(elements)
            if element.tag not in NOT_CONTENT | FRAMES
            and not any(above.tag in NOT_CONTENT | FRAMES for above in element.iterancestors())
        }
        assert {number: read[number] for number in expected} == expected, url


def test_pages_look_as_they_did(host: BrowserPage, archive: Store) -> None:
    show(host, archive, STYLED)
    await_styles(host)
    assert style(host, "h2", "color") == "rgb(0, 0, 4)"
    assert style(host, "p", "color") == "rgb(0, 0, 5)"
    assert style(host, "a", "color") == "rgb(0, 0, 6)"
    assert style(host, "a", "cursor") == "pointer"
    assert "/resource?url=" in style(host, "h1", "backgroundImage")
    assert host.evaluate(f"{SHOWN}.querySelector('form').childNodes.length") == 1
    assert host.evaluate(f"{SHOWN}.compatMode") == "CSS1Compat"
    show(host, archive, LONG)
    assert host.evaluate(f"{SHOWN}.compatMode") == "BackCompat"


def test_links_lead_nowhere(host: BrowserPage, archive: Store, overheard: Overheard) -> None:
    show(host, archive, STYLED)
    await_styles(host)
    before = list(overheard.addresses)
    frame = host.frames[1]
    frame.click("a")
    frame.click("a", button="middle")
    frame.click("input")
    host.keyboard.press("Enter")
    host.wait_for_timeout(100)
    assert len(host.context.pages) == 1
    assert host.evaluate(f"{SHOWN}.querySelector('h1').textContent") == "one"
    assert overheard.addresses == before


def test_a_hostile_page_loads_nothing(host: BrowserPage, archive: Store, overheard: Overheard) -> None:
    before = len(overheard.addresses)
    show(host, archive, HOSTILE_PAGE)
    for number in range(3):
        host.frames[1].locator("a").nth(number).click()
    host.frames[1].click("button")
    host.wait_for_timeout(200)
    assert {address.rpartition("/")[2] for address in overheard.addresses[before:]} == {"frame", "tree"}
    assert len(host.context.pages) == 1
    assert host.url.endswith("/host")


def await_styles(host: BrowserPage) -> None:
    """Wait for the stylesheet, the one that it imports, and the image in that."""
    host.wait_for_function(
        f"""() => {{
            const shown = {SHOWN}, style = shown.defaultView.getComputedStyle(shown.querySelector("h1"));
            return style.color === "rgb(0, 0, 3)" && style.backgroundImage !== "none"
                && shown.querySelector("img").naturalWidth === 1;
        }}"""
    )


def style(host: BrowserPage, selector: str, name: str) -> str:
    got = host.evaluate(f"{SHOWN}.defaultView.getComputedStyle({SHOWN}.querySelector('{selector}')).{name}")
    return str(got)
