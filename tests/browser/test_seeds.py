"""From a table of known records to a wrapped site, in a browser."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from siteloom.store.store import Store
from tests.apps.demo.sites import of_kind
from tests.browser.conftest import Overheard
from tests.browser.serving import DIRECTORY, make_workspace
from tests.operations.test_bootstrap import directory, guide

COLUMNS = {"Title": "name", "Street": "address", "Phone": "phone", "Kitchen": "cuisine"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Pages of the directory, of which nothing is known; `restaurants.csv` tells of some of its places."""
    make_workspace(tmp_path / ".siteloom", [page.page for page in directory()])
    with (tmp_path / "restaurants.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for page in of_kind(guide(), "restaurant"):
            writer.writerow([" / ".join(page.truth[name]) for name in COLUMNS.values()])
    return tmp_path / ".siteloom"


def test_a_table_of_known_records_wraps_a_site(page: Page, workspace: Path, workspace_store: Store) -> None:
    page.goto("/")
    page.get_by_role("link", name="Seeds", exact=True).click()
    expect(page.get_by_role("heading", name="Nothing is known yet")).to_be_visible()

    # The table is looked at, its columns are renamed, and it is taken in.
    with page.expect_file_chooser() as chooser:
        page.get_by_label("File").click()
    chooser.value.set_files(workspace.parent / "restaurants.csv")
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("heading", name="restaurants.csv")).to_be_visible()
    for column, name in COLUMNS.items():
        page.get_by_label(f"Name of {column}").fill(name)
    page.get_by_label("Between several values of Kitchen").fill("/")
    expect(page.get_by_label("Things are known by Title")).to_be_checked()
    expect(page.get_by_label("Things are known by Street")).to_be_checked()
    assert list(workspace_store.seeds()) == []
    page.get_by_role("button", name="Take them in").click()
    wrap = page.get_by_role("link", name="Wrap sites from them")
    expect(wrap).to_be_visible()
    assert {name for seed in workspace_store.seeds() for name in seed.values} == set(COLUMNS.values())

    # The site is wrapped, and what speaks for that is one click away.
    wrap.click()
    expect(page.get_by_role("checkbox", name=re.compile("^name"))).to_be_checked()
    page.get_by_role("button", name="Wrap them").press("Enter")
    look = page.get_by_role("link", name=f"Look at {DIRECTORY}")
    expect(look).to_be_visible()
    look.click()
    expect(page.get_by_text("Waits for a look")).to_be_visible()
    example = page.locator(".verdict", has=page.get_by_role("heading", name="name", exact=True))
    text = example.get_by_role("link").first.inner_text()
    example.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"/pages/\d+\?.*attribute=name"))
    expect(page.frame_locator("iframe").get_by_text(text, exact=True).first).to_be_visible()
    page.go_back()

    # A person finds it right, and later wrong.
    page.keyboard.press("a")
    expect(page.get_by_text("accepted by local")).to_be_visible()
    assert [one.name for one in workspace_store.wrappers()] == [f"{DIRECTORY}/1"]
    expect(page.get_by_text(f"takes the wrapper {DIRECTORY}/1 out of force")).to_be_visible()
    page.get_by_role("button", name="Refuse").click()
    expect(page.get_by_text(f"{DIRECTORY} is refused")).to_be_visible()
    assert workspace_store.wrappers() == []
    page.get_by_role("link", name="Try it again").click()
    expect(page.get_by_role("checkbox", name=re.compile(re.escape(DIRECTORY)))).to_be_checked()


def test_a_file_that_is_no_table_is_told_of(page: Page, tmp_path: Path, overheard: Overheard) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "blank.csv").write_bytes(b"\n\n")
    page.goto("/seeds")
    page.get_by_label("File").set_input_files(tmp_path / "empty.csv")
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("alert")).to_have_text("empty.csv is empty.")
    page.get_by_label("File").set_input_files(tmp_path / "blank.csv")
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("heading", name="This table cannot be read")).to_be_visible()
    overheard.forgive(400)
    page.get_by_role("link", name="Choose another file").click()
    expect(page.get_by_label("File")).to_be_visible()
