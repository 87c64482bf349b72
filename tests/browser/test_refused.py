"""What the server does not keep: all of it is shown as before, and what was typed stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import expect

from siteloom.core.model import Attribute, Example, Page
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.browser.annotator import Annotator
from tests.browser.conftest import Overheard
from tests.browser.serving import make_workspace
from tests.browser.test_ways_to_annotate import COMMON

SITE = "rooms.example"
CLUSTER = f"{SITE}/1"


@pytest.fixture(scope="session")
def rooms_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rooms") / ".siteloom"
    pages = (
        Page.from_text(
            f"https://{SITE}/{number}",
            f"<!DOCTYPE html><html><body><h1>House {number}</h1><div class=rooms>"
            + "".join(f"<h3>Room {number}{letter}</h3><em>{letter * 3}</em>" for letter in "abcd")
            + f"</div>{COMMON}</body></html>",
        )
        for number in range(1, 7)
    )
    make_workspace(folder, list(pages))
    return folder


@pytest.fixture
def workspace(rooms_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(rooms_folder, tmp_path / ".siteloom"))


@pytest.fixture
def annotator(page: BrowserPage) -> Annotator:
    page.goto(f"/clusters/{CLUSTER}/annotate")
    annotator = Annotator(page)
    annotator.wait()
    return annotator


def kept_records(store: Store, url: str) -> list[dict[str, list[str]]]:
    newest = store.annotations(store.page_ids([PageAddress(SITE, url)]))[-1]
    return list(newest.example["records"])


def test_a_change_of_two_parts_is_kept_as_a_whole_or_not_at_all(
    annotator: Annotator, overheard: Overheard, workspace_store: Store
) -> None:
    annotator.add("room")
    page, url = annotator.page, annotator.url()
    page.get_by_role("button", name="list").click()
    rooms = annotator.frame.locator("h3")
    annotator.click("room", [rooms.nth(0)])
    annotator.click("room", [rooms.nth(1)])
    before = kept_records(workspace_store, url)
    assert len(before) == 2
    # That the page has one record only, is said in two requests.
    page.route("**/values", lambda route: route.fulfill(status=422, json={"detail": "Not today."}))
    page.get_by_role("button", name="list").click()
    expect(page.get_by_role("alert").filter(has_text="Not today.")).to_be_visible()
    annotator.wait()
    assert kept_records(workspace_store, url) == before
    expect(page.get_by_role("region", name="Values of this page")).to_contain_text("2 marked")
    overheard.forgive(422)


def test_what_was_typed_of_an_attribute_stays_if_another_was_faster(
    annotator: Annotator, overheard: Overheard, workspace_store: Store
) -> None:
    page = annotator.page
    annotator.add("house")
    annotator.chip("house").dblclick()
    editor = page.get_by_role("form", name="Attribute house")
    seen = workspace_store.cluster_schema(CLUSTER).revision
    others = {"house": Attribute(mandatory=True), "room": Attribute()}
    assert workspace_store.apply_updates(CLUSTER, [], "ana", attributes=others, schema_follows=seen)
    editor.get_by_label("Name").fill("name of the house")
    editor.get_by_role("button", name="Done").click()
    expect(page.get_by_role("button", name="Use mine")).to_be_visible()
    expect(page.get_by_role("radio")).to_have_text(["1 house*", "2 room"])
    expect(editor.get_by_label("Name")).to_have_value("name of the house")
    page.get_by_role("button", name="Use mine").click()
    annotator.wait()
    expect(page.get_by_role("radio")).to_have_text(["1 name of the house", "2 room"])
    assert list(workspace_store.cluster_schema(CLUSTER).attributes) == ["name of the house", "room"]
    overheard.forgive(409)


class TestUnplaced:
    """Of one value it is not known where it stands: the page says it in other words."""

    @pytest.fixture
    def workspace_store(self, workspace_store: Store) -> Store:
        (cluster,), addresses = workspace_store.clusters(CLUSTER)
        for member in cluster.members:
            (page,) = workspace_store.versions(addresses[member].url, SITE)
            example = Example(page, {"house": ["Home, sweet home"]})
            workspace_store.save_example(addresses[member], example, "ana")
        return workspace_store

    def test_what_cannot_be_said_again_is_not_taken_back(self, annotator: Annotator) -> None:
        assert annotator.values("house") == ["Home, sweet home"]
        annotator.click("house", [annotator.frame.locator("h1")])
        heading = annotator.frame.locator("h1").inner_text()
        annotator.page.get_by_role("button", name="undo").click()
        expect(annotator.status).to_have_text(
            "This cannot be undone: it is not known where “Home, sweet home” stands on the page."
        )
        annotator.wait()
        assert annotator.values("house") == [heading]
