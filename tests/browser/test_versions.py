"""What people point at is kept as what they saw there, whatever became of the page since."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import expect

from siteloom.core.model import Page
from siteloom.operations.cluster import cluster_store
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.browser.annotator import Annotator
from tests.browser.conftest import Overheard
from tests.browser.serving import make_workspace
from tests.browser.test_ways_to_annotate import COMMON
from tests.store.helpers import put

SITE = "lamps.example"
URLS = [f"https://{SITE}/{number}" for number in range(6)]
AD = "<aside>Sale today</aside>"


def lamp(url: str, ad: str = "") -> Page:
    number = URLS.index(url)
    return Page.from_text(
        url,
        f"<!DOCTYPE html><html><head><title>Lamp {number}</title></head><body>{ad}<h1>Lamp {number}</h1>"
        f"<p><b>{number}0 watts</b> in <i>glass {number}</i></p>{COMMON}</body></html>",
    )


@pytest.fixture(scope="session")
def lamps_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lamps") / ".siteloom"
    make_workspace(folder, [lamp(url) for url in URLS])
    return folder


@pytest.fixture
def workspace(lamps_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lamps_folder, tmp_path / ".siteloom"))


def at_lamps(page: BrowserPage) -> Annotator:
    page.goto(f"/clusters/{SITE}/1/annotate")
    annotator = Annotator(page)
    annotator.wait()
    return annotator


def crawl_again(store: Store, url: str) -> None:
    """The page has an element more now, before all that is on it."""
    put(store, lamp(url, AD))
    cluster_store(store, "vertex")


def kept(store: Store, url: str) -> list[Mapping[str, object]]:
    """All that was ever kept of what is said of a page."""
    annotations = store.annotations(store.page_ids([PageAddress(SITE, url)]))
    return [{name: annotation.example[name] for name in ("values", "nodes")} for annotation in annotations]


def test_the_version_that_was_annotated_is_shown_and_clicked(
    page: BrowserPage, workspace_store: Store
) -> None:
    annotator = at_lamps(page)
    annotator.add("name")
    annotator.add("power")
    annotator.click("name", [annotator.frame.locator("h1")])
    url = annotator.url()
    crawl_again(workspace_store, url)
    annotator = at_lamps(page)
    annotator.go_to(url)
    expect(annotator.frame.get_by_text("Sale today")).to_have_count(0)
    annotator.click("power", [annotator.frame.locator("b").first])
    number = URLS.index(url)
    assert annotator.values("power") == [f"{number}0 watts"]
    assert kept(workspace_store, url)[-1] == {
        "values": {"name": [f"Lamp {number}"], "power": [f"{number}0 watts"]},
        "nodes": {
            "name": ["/html[1]/body[1]/h1[1]/text()[1]"],
            "power": ["/html[1]/body[1]/p[1]/b[1]/text()[1]"],
        },
    }


def test_nothing_is_kept_of_a_click_on_a_page_that_has_changed_meanwhile(
    page: BrowserPage, overheard: Overheard, workspace_store: Store
) -> None:
    annotator = at_lamps(page)
    annotator.add("name")
    url = annotator.url()
    crawl_again(workspace_store, url)
    annotator.frame.locator("h1").click()
    alert = page.get_by_role("alert").filter(has=page.get_by_role("button", name="Leave it"))
    expect(alert).to_be_visible()
    expect(page.get_by_role("button", name="Use mine")).to_have_count(0)
    assert kept(workspace_store, url) == []
    # The page is shown as it is now, and a click there is kept.
    expect(annotator.frame.get_by_text("Sale today")).to_be_visible()
    page.get_by_role("button", name="Leave it").click()
    annotator.click("name", [annotator.frame.locator("h1")])
    assert kept(workspace_store, url) == [
        {
            "values": {"name": [f"Lamp {URLS.index(url)}"]},
            "nodes": {"name": ["/html[1]/body[1]/h1[1]/text()[1]"]},
        }
    ]
    overheard.forgive(409)
