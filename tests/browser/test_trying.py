"""One page is tried on the spot: what is found on it is lit."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from siteloom.store.store import Store
from tests.browser.archived import shown
from tests.browser.conftest import Overheard
from tests.lived_in import GUIDE
from tests.maintenance.guide import restaurants

# Of the layout that the wrapper was learned from.
PLACE = next(one for one in restaurants()[5:24] if one.truth["phone"])


@pytest.fixture
def workspace_store(lived_in: Store) -> Store:
    """A workspace with a wrapper for pages like these."""
    return lived_in


def test_a_page_from_a_file_shows_what_is_found_on_it(
    page: Page, tmp_path: Path, workspace_store: Store
) -> None:
    file = tmp_path / "saved.html"
    file.write_bytes(PLACE.page.html)
    page.goto("/add")
    trying = page.locator("section.try")
    url = f"https://www.{GUIDE}/restaurants/quayside/place-99999.html"
    trying.get_by_label("URL").fill(url)
    with page.expect_file_chooser() as choosing:
        trying.get_by_label("its HTML").click()
    choosing.value.set_files(file)
    trying.get_by_role("button", name="Show what is found").click()
    shown(page)
    expect(page.locator(".lit", has_text=PLACE.truth["phone"][0])).to_be_visible()
    expect(page.get_by_text("You are only trying this page: it is not kept.")).to_be_visible()
    assert workspace_store.page_index.find(url) is None


def test_a_page_that_cannot_be_tried_is_told_of(page: Page, tmp_path: Path, overheard: Overheard) -> None:
    file = tmp_path / "saved.html"
    file.write_bytes(PLACE.page.html)
    page.route(
        "**/api/trials", lambda route: route.fulfill(status=404, json={"detail": "There is no such upload."})
    )
    page.goto("/add")
    trying = page.locator("section.try")
    with page.expect_file_chooser() as choosing:
        trying.get_by_label("its HTML").click()
    choosing.value.set_files(file)
    trying.get_by_label("URL").fill(PLACE.page.url)
    button = trying.get_by_role("button", name="Show what is found")
    button.click()
    expect(trying.get_by_role("alert")).to_have_text("There is no such upload.")
    expect(button).not_to_have_attribute("aria-busy", "true")
    overheard.forgive(404)
