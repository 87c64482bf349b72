"""Whatever is in a workspace, pages show it as text: in their elements, attributes, charts and files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

import pytest
from lxml import html

from siteloom.apps.server import create_app
from siteloom.core.model import Failure, Page, Seed
from siteloom.core.settings import Settings, StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.operations.page_import import import_pages
from siteloom.operations.search import update_index
from siteloom.operations.watch import check_watches, watch_wrappers
from siteloom.sources.example_files import ExampleLine
from siteloom.sources.page_source import Items
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.access import CHEAP
from tests.apps.server.browsing import Browser
from tests.apps.server.test_links import INLINE, LINKS
from tests.operations.calls import annotate_pages, extract_records, learn_wrappers
from tests.operations.contexts import context_of

# Breaks out of elements, attributes with either quotes, scripts and comments, wherever it is not escaped.
STRIKE = "'\"></script></title></textarea>--><struck onload=alert(1)><img src=x onerror=alert(1)>{{7*7}}"
SITE = "trap.example"
NAMES = ["Amber", "Birch", "Cedar", "Dogwood", "Elder", "Fir"]
MOST_OF_A_SHAPE = 2
STRUCK = "//struck | //*[@src='x'] | //a[contains(@href, 'script:')]"
FORMULA = "=HYPERLINK(1)"


def as_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def page(number: int, name: str) -> Page:
    word = as_text(STRIKE)
    return Page.from_text(
        f"https://{SITE}/tree/{number}/{quote(STRIKE)}",
        f"<html><head><title>{word}</title></head><body><h1>{name} {word}</h1><p class='{word}'>by the river"
        f"</p><div><b>{word}</b> <span>{FORMULA}{number}</span></div></body></html>",
    )


@pytest.fixture(scope="module")
def hostile(empty_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = copytree(empty_workspace, tmp_path_factory.mktemp("hostile") / "workspace")
    pages = [page(number, name) for number, name in enumerate(NAMES)]
    attribute = f"name {STRIKE}"
    with closing(open_store(StoreSettings(str(folder)))) as store:
        unread = Failure(f"https://{SITE}/{STRIKE}", "unreadable", STRIKE)
        import_pages(store, [Items([*pages, unread])], names=[STRIKE])
        cluster_store(store, "vertex")
        lines = [
            ExampleLine(
                one.url, {attribute: (f"{name} {STRIKE}",), "formula": (f"{FORMULA}{number}",)}, (), {}
            )
            for number, (one, name) in enumerate(zip(pages, NAMES, strict=True))
        ]
        annotate_pages(store, lines[:4])
        learn_wrappers(store, f"{SITE}/1")
        extract_records(store, SITE)
        watch_wrappers(store)
        check_watches(store)
        with store.recording("seeds", {"locations": [STRIKE]}) as run:
            store.add_seeds(run.id, [Seed({attribute: (STRIKE,)}, STRIKE, STRIKE)])
        update_index(context_of(store))
        for kind, arguments in (("ingest", {"upload": "x", "name": STRIKE}), ("fetch", {"urls": [STRIKE]})):
            job = store.jobs.add(kind, arguments, STRIKE)
            store.jobs.start(job.id)
            store.jobs.progress(job.id, 1, 2, STRIKE)
            if kind == "ingest":
                store.jobs.end(job.id, "failed", STRIKE)
        store.accounts.add("ana", "admin", CHEAP.hashed("the password of ana"))
        store.accounts.add_key("ana", STRIKE[:100])
        yield store


def test_nothing_of_it_is_more_than_text(hostile: Store) -> None:
    app = create_app(hostile, Settings())
    client = Browser(app)
    client.cookies.set("siteloom", hostile.accounts.open_session("ana"), domain="localhost.local")
    words = quote(STRIKE)
    waiting = [
        "/",
        "/settings/accounts",
        "/jobs/1",
        "/jobs/2",
        "/runs/1",
        f"/search?words={words}",
        f"/records?words={words}&v.name={words}&url={words}",
        f"/records?sort=v.{words}",
        f"/add?url={words}",
        f"/sites/{SITE}/urls?words={words}",
        f"/monitoring/alarms?site={words}&wrapper={words}",
        f"/pages/1?words={words}&node={words}",
        f"/entities?words={words}&attribute={words}",
        f"/settings/accounts?done=added&name={words}",
        f"/sites/{words}",
        f"/clusters/{words}/1",
        f"/wrappers/{words}",
        f"/review?item={words}",
        f"/compare?a={words}&b={words}",
        f"/{words}",
        f"/jobs?state={words}",
        f"/performance?verb={words}&site={words}",
    ]
    known, shapes, showing = set(waiting), dict[str, int](), set[str]()
    while waiting:
        path = waiting.pop(0)
        answer = client.get(path)
        if answer.status_code == 303:
            continue
        assert answer.status_code in (200, 400, 404, 422), (path, answer.text)
        kind = answer.headers.get("content-type", "")
        if kind.startswith("application/xhtml"):  # the archived page itself, as harmless as it is made
            assert b"onerror=" not in re.sub(rb'"[^"]*"|>[^<]*<', b"", answer.content)
        if not kind.startswith("text/html"):
            continue
        tree = html.document_fromstring(answer.text)
        assert not tree.xpath(INLINE), path
        assert not tree.xpath(STRUCK), path
        assert "49" not in re.findall(r"onerror=alert\(1\)>(\d\d)", answer.text), path
        if "onerror=alert(1)" in tree.text_content() or tree.xpath("//@*[contains(., 'onerror=alert(1)')]"):
            showing.add(urlsplit(path).path.split("/")[1])
        for link in map(str, tree.xpath(LINKS)):
            target = urldefrag(urljoin(path, link)).url
            shape = re.sub(r"\d+", "#", urlsplit(target).path)
            is_here = link.startswith(("/", "?")) and not target.startswith("//") and "/static/" not in target
            if is_here and target not in known and shapes.get(shape, 0) < MOST_OF_A_SHAPE:
                shapes[shape] = shapes.get(shape, 0) + 1
                known.add(target)
                waiting.append(target)
    assert showing >= {
        "clusters",
        "jobs",
        "pages",
        "records",
        "runs",
        "search",
        "seeds",
        "settings",
        "wrappers",
    }


def test_files_have_values_as_they_are_and_names_that_are_none(hostile: Store) -> None:
    """A CSV is read by programs: nothing is put before what a spreadsheet would take for a formula."""
    client = Browser(create_app(hostile, Settings()))
    key = {"Authorization": f"Bearer {hostile.accounts.add_key('ana', 'export')}"}
    for path in ("/records/download.csv", f"/wrappers/{SITE}/1/download.json"):
        answer = client.ask("GET", path, headers=key)
        assert answer.status_code == 200
        assert re.fullmatch(r'attachment; filename="?[\w.-]+"?', answer.headers["content-disposition"])
        assert not answer.headers["content-type"].startswith("text/html")
        assert answer.headers["x-content-type-options"] == "nosniff"
    rows = list(csv.DictReader(io.StringIO(client.ask("GET", "/records/download.csv", headers=key).text)))
    assert len(rows) == len(NAMES)
    assert any(FORMULA in text for row in rows for text in row.values())
    assert any(STRIKE in unquote(text) for row in rows for text in row.values())
