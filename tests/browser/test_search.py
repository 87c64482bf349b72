"""Search in the browser: what is new is indexed meanwhile, and a hit leads to its words on the page."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from siteloom.store.store import Store
from tests.browser.archived import box_of, shown
from tests.browser.conftest import Visiting
from tests.browser.serving import PHONE

WORDS = "steakhouse"


@pytest.fixture
def workspace_store(lived_in: Store) -> Store:
    """A workspace with records, of which the last are not indexed yet."""
    return lived_in


def test_from_a_word_to_where_it_stands_on_its_page_by_keyboard(page: Page, workspace_store: Store) -> None:
    assert not workspace_store.search_index.is_current()
    page.goto("/")
    page.get_by_role("link", name="Search", exact=True).click()
    box = page.get_by_role("searchbox")
    expect(box).to_be_focused()
    page.keyboard.type(WORDS)
    page.keyboard.press("Enter")
    hits = page.locator("[data-hit]")
    expect(hits.first).to_be_visible()
    expect(page.locator("mark").first).to_have_text(re.compile(WORDS, re.IGNORECASE))
    expect(page.get_by_text("All is indexed.")).to_be_visible()  # it was begun by itself
    assert workspace_store.search_index.is_current()
    assert [job.kind for job in workspace_store.jobs.latest(9)] == ["index"]

    page.locator("aside").get_by_role("link", name=re.compile("^Pages")).click()
    expect(page).to_have_url(re.compile("kind=page"))
    page.wait_for_load_state()  # only then it listens to keys
    page.get_by_role("heading", name="Search").click()
    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(hits.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(hits.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")

    frame = shown(page)
    expect(page.get_by_role("status").first).to_have_text(re.compile(r"Place 1 of \d+"))
    place = frame.get_by_text(re.compile(WORDS, re.IGNORECASE)).first
    assert box_of(place).is_inside(box_of(page.locator(".page")))


def test_a_record_leads_to_its_value_on_the_page(page: Page) -> None:
    page.goto(f"/search?words={WORDS}")
    page.locator("aside").get_by_role("link", name=re.compile("^Records")).click()
    hit = page.locator(".hit", has_text="larkmoor-guide.example/3").first
    expect(hit.locator(".snippet mark")).to_have_text(re.compile(WORDS, re.IGNORECASE))
    name = hit.locator("[data-hit]").inner_text()
    hit.locator("[data-hit]").click()

    frame = shown(page)
    assert parse_qs(urlsplit(page.url).query)["attribute"] == ["cuisine"]
    expect(page.locator(".lit[aria-pressed=true]")).to_have_text(re.compile(WORDS, re.IGNORECASE))
    assert box_of(frame.get_by_text(name, exact=True).first).is_inside(
        box_of(page.locator(".page")).grown(80)
    )


def test_hits_fit_on_a_phone_with_what_limits_them_folded(visiting: Visiting) -> None:
    page = visiting(viewport=PHONE)
    page.goto(f"/search?words={WORDS}")
    expect(page.get_by_text("All is indexed.")).to_be_visible()
    site = page.locator("aside").get_by_role("link", name=re.compile(r"^tableatlas\.example \d"))
    expect(site).to_be_hidden()
    page.get_by_text("Limit the hits").click()
    site.click()
    expect(page.locator("[data-hit]")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
