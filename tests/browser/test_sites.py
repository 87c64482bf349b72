"""Looking at sites and templates, by mouse and by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Overheard
from tests.browser.serving import DIRECTORY, GUIDE

TEMPLATE = f"{GUIDE}/1"


def test_from_all_sites_to_what_the_pages_of_a_template_share(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name=GUIDE, exact=True).click()
    expect(page).to_have_title(re.compile(re.escape(GUIDE)))
    page.get_by_role("link", name=TEMPLATE, exact=True).click()
    tree = page.locator("#paths")
    expect(tree.get_by_text("html", exact=True).first).to_be_visible()
    expect(page.locator("#sample").get_by_role("link", name=re.compile("Show the sample"))).to_have_count(0)
    expect(page.locator("#sample").get_by_role("link").first).to_be_visible()
    page.keyboard.press("End")  # the tags are counted when they come into view
    expect(page.locator("#tags").get_by_role("row")).not_to_have_count(0)
    page.get_by_role("navigation", name="Where this is").get_by_role("link", name="Sites").click()
    expect(page.get_by_role("heading", name="Sites", level=1)).to_be_visible()


def test_the_same_by_keyboard(page: Page) -> None:
    page.goto("/")
    follow_by_keyboard(page, re.compile(rf"^{re.escape(DIRECTORY)}$"))
    expect(page.get_by_role("heading", name=DIRECTORY, level=1)).to_be_visible()
    follow_by_keyboard(page, re.compile(rf"^{re.escape(DIRECTORY)}/\d+$"))
    expect(page.get_by_role("heading", name="What its pages share")).to_be_visible()


def follow_by_keyboard(page: Page, name: re.Pattern[str]) -> None:
    """Go from link to link until the one of this name has the focus, then follow it."""
    focused = page.locator(":focus")
    for _ in range(60):
        page.keyboard.press("Tab")
        if focused.count() and name.search(focused.inner_text().strip()):
            break
    else:
        pytest.fail(f"No link {name.pattern} can be reached with Tab.")
    page.keyboard.press("Enter")
    page.wait_for_load_state()


def test_two_templates_are_compared(page: Page) -> None:
    page.goto(f"/sites/{GUIDE}")
    page.get_by_role("link", name=TEMPLATE, exact=True).click()
    page.get_by_label("Compare with").fill(f"{DIRECTORY}/1")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Two templates side by side")).to_be_visible()
    shares = page.get_by_text("of their element paths").inner_text()
    assert re.search(r"\d+\s*%", shares), shares
    expect(page.get_by_role("heading", name=f"{DIRECTORY}/1", exact=True)).to_be_visible()


def test_what_is_not_there_is_told_with_a_way_back(page: Page, overheard: Overheard) -> None:
    answer = page.goto("/sites/nowhere.example")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_text("nowhere.example")).to_be_visible()
    overheard.forgive(404)
    page.get_by_role("link", name="Siteloom").first.click()
    expect(page.get_by_role("heading", name="Sites", level=1)).to_be_visible()
