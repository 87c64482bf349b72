"""The table of a template in the browser: made, a column renamed, two accepted, and a wrapper learned."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from siteloom.store.store import Store
from tests.browser.conftest import Overheard
from tests.browser.serving import GUIDE, LAPTOP, PHONE

TEMPLATE = f"{GUIDE}/1"


def test_columns_are_renamed_and_become_attributes(
    page: Page, workspace_store: Store, overheard: Overheard
) -> None:
    page.goto(f"/sites/{GUIDE}")
    page.get_by_role("link", name=TEMPLATE, exact=True).click()
    page.get_by_role("link", name="Table without examples").click()
    page.get_by_role("button", name="Make the table").click()
    button = page.get_by_role("button", name="Make these attributes")
    expect(button).to_be_visible()

    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.set_viewport_size(LAPTOP)

    button.click()
    expect(page.get_by_role("alert")).to_have_text("No column was taken: take at least one.")
    overheard.forgive(400)

    title = page.get_by_role("textbox", name="Name of the attribute for title")
    title.click(click_count=3)
    page.keyboard.type("name")
    expect(page.get_by_role("checkbox", name="Take title")).to_be_checked()
    expect(page.get_by_text("1 column is taken")).to_be_visible()
    page.keyboard.press("Enter")  # on to the next name; nothing is sent
    expect(title).not_to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    expect(page.get_by_text("2 columns are taken")).to_be_visible()
    page.keyboard.press("Space")
    page.get_by_role("checkbox", name="Take Phone", exact=True).click()
    expect(page.get_by_text("2 columns are taken")).to_be_visible()
    page.locator("tbody tr").first.locator("td").nth(1).click()
    expect(page.get_by_text("3 columns are taken")).to_be_visible()
    page.locator("tbody tr").nth(1).locator("td").nth(1).click()
    expect(page.get_by_text("2 columns are taken")).to_be_visible()
    button.click()

    expect(page.get_by_role("heading", name=f"Wrapper {TEMPLATE}, version 1")).to_be_visible()
    for name in ("name", "phone"):
        expect(page.get_by_role("rowheader", name=name, exact=True).first).to_be_visible()
    expect(page.get_by_role("button", name="Extract the records")).to_be_visible()
    assert workspace_store.wrapper(TEMPLATE).origin == "learn"
    page.get_by_role("link", name="Check them by annotating").click()
    expect(page.get_by_role("button", name=re.compile("phone")).first).to_be_visible()
