"""One page is tried: what is found on it is shown, and nothing of it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from siteloom.apps.server import create_app
from siteloom.apps.server.trial_pages import TrialPages
from siteloom.core.errors import NotFound
from siteloom.core.model import Page
from siteloom.core.settings import CrawlSettings, Settings, StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.store.store import Store
from tests.apps.server.serving import program, serving
from tests.maintenance import guide
from tests.sources.crawling.web_site import A_LIST, served_site
from tests.store.helpers import put

SITE = "larkmoor-guide.example"
NEW_URL = f"https://www.{SITE}/restaurants/quayside/place-99999.html"


@pytest.fixture
def store(sqlite_store: Store) -> Store:
    """A workspace with a wrapper for restaurants."""
    put(sqlite_store, *guide.pages()[1:])
    cluster_store(sqlite_store, "vertex")
    sqlite_store.save_wrapper(f"{SITE}/1", SITE, guide.wrapper().to_json(), "learn")
    return sqlite_store


@pytest.fixture
def client(store: Store, tmp_path: Path) -> Iterator[httpx.Client]:
    settings = Settings(
        store=StoreSettings(workspace=str(tmp_path / "workspace")), crawl=CrawlSettings(delay=0, private=True)
    )
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        yield client


def kept(store: Store) -> tuple[object, ...]:
    uploads = list((store.folder / "uploads").glob("*"))
    return store.sites(), [run.id for run in store.runs(99)], store.jobs.latest(9), uploads


def test_a_page_from_a_file_is_read_and_not_kept(store: Store, client: httpx.Client) -> None:
    before = kept(store)
    page = guide.pages()[0]
    upload = client.put("/api/uploads/saved.html", content=page.html).json()["upload"]
    order = {"url": NEW_URL, "upload": upload}
    path = client.post("/api/trials", json=order).json()["page"]
    shown = client.get(path)
    assert shown.status_code == 200
    assert "it is not kept" in shown.text
    (record,) = [record for record in guide.records() if record.url == page.url]
    assert record.values["name"][0] in unescape(shown.text)
    assert f'data-page="{path.removeprefix("/pages/")}"' in shown.text
    assert b"data-siteloom" in client.get(f"{path}/tree?version=x").content
    assert "script-src 'none'" in client.get(f"{path}/frame").headers["Content-Security-Policy"]
    assert kept(store) == before
    assert client.get("/api/pages/at", params={"url": NEW_URL}).status_code == 404
    assert client.post("/api/trials", json=order).status_code == 404  # the upload is gone


def test_a_page_from_the_web_is_not_kept_either(store: Store, client: httpx.Client) -> None:
    before = kept(store)
    with served_site() as site:
        path = client.post("/api/trials", json={"url": site.address + A_LIST}).json()["page"]
        missing = client.post("/api/trials", json={"url": f"{site.address}/nowhere"})
    assert client.get(path).status_code == 200
    assert "No page could be read: status 404." in missing.text
    assert kept(store) == before


def test_what_is_no_single_page_is_told(client: httpx.Client) -> None:
    lines = b'{"url": "https://a.example/1", "html": "1"}\n{"url": "https://a.example/2", "html": "2"}\n'
    upload = client.put("/api/uploads/pages.jsonl", content=lines).json()["upload"]
    assert "Only a single page can be tried" in client.post("/api/trials", json={"upload": upload}).text
    assert "Give the URL of a page" in client.post("/api/trials", json={}).text
    gone = client.get("/pages/trial-" + "0" * 32)
    assert gone.status_code == 404
    assert "try it again" in gone.text


def test_trials_end_by_themselves() -> None:
    now = 0.0
    trials = TrialPages(seconds=lambda: now)
    first, second = (trials.add(Page(f"https://a.example/{number}", b"<p>")) for number in (1, 2))
    now = 3_000.0
    third = trials.add(Page("https://a.example/3", b"<p>"))
    now = 3_700.0
    for key in (first, second):
        with pytest.raises(NotFound, match="try it again"):
            trials.page(key)
    assert trials.page(third).url == "https://a.example/3"
    many = [trials.add(Page("https://a.example/4", b"<p>")) for _ in range(20)]
    with pytest.raises(NotFound):
        trials.page(third)
    trials.drop_forgotten(None)
    assert trials.page(many[0]).url == "https://a.example/4"
    trials.drop_forgotten((1, "2026"))
    with pytest.raises(NotFound):
        trials.page(many[0])
