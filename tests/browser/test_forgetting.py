"""A page and a site forgotten in a browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from siteloom.store.store import Store
from tests.browser.conftest import Overheard
from tests.browser.serving import DIRECTORY, GUIDE


def test_a_page_and_a_site_are_forgotten(page: Page, workspace_store: Store, overheard: Overheard) -> None:
    page.goto("/pages/1")
    page.wait_for_load_state()
    address = page.locator(".address").get_attribute("href")
    assert address is not None
    page.get_by_role("link", name="Forget this page…").click()
    expect(page.get_by_role("heading", name="Forget this page?")).to_be_visible()
    expect(page.get_by_text(address, exact=True)).to_be_visible()
    page.get_by_role("button", name="Forget this page").press("Enter")
    expect(page.get_by_role("heading", name="What was removed")).to_be_visible()
    expect(page.get_by_role("main")).not_to_contain_text(address)
    page.goto("/pages/1")
    expect(page.get_by_text("There is no page 1 in the archive.")).to_be_visible()
    overheard.forgive(404)

    # Of a site, the name must be typed.
    page.goto("/")
    page.get_by_role("link", name=GUIDE, exact=True).first.click()
    page.get_by_role("link", name="Forget this site…").click()
    name = page.get_by_label(f"Type {GUIDE} if you mean it")
    name.fill(DIRECTORY)
    name.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This is not the name of the site.")
    overheard.forgive(422)
    expect(name).to_be_focused()
    expect(name).to_have_value(DIRECTORY)
    name.fill(GUIDE)
    name.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/2$"))
    expect(page.get_by_role("heading", name="What was removed")).to_be_visible()
    assert [site.name for site in workspace_store.sites()] == [DIRECTORY]
    page.get_by_role("link", name="All sites").click()
    expect(page.get_by_role("link", name=DIRECTORY, exact=True).first).to_be_visible()
    expect(page.get_by_role("link", name=GUIDE)).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("main")).not_to_contain_text(GUIDE)
