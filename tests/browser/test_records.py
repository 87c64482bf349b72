"""The table of records by mouse and keyboard: filtered, sorted, paged, opened, downloaded."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from siteloom.store.store import Store
from tests.browser.conftest import Visiting
from tests.browser.serving import PHONE, serving
from tests.lived_in import GUIDE


@pytest.fixture(scope="module")
def served(lived_in_store: Store) -> Iterator[str]:
    """The address of an application with records."""
    with serving(lived_in_store) as address:
        yield address


def first_cells(page: Page) -> list[str]:
    return page.locator("tbody tr td:first-child .value").all_inner_texts()


def test_a_person_finds_a_record_sees_where_it_stands_and_takes_all_of_them(page: Page) -> None:
    page.goto("/")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Records").click()
    expect(page.locator("tbody tr")).to_have_count(50)

    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_text(re.compile(r"^51\u2013\d+ of \d+$"))).to_be_visible()
    assert "page=2" in page.url
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(50)

    page.get_by_role("link", name="price", exact=True).click()
    expect(page.get_by_role("columnheader", name="price", exact=False).first).to_have_attribute(
        "aria-sort", "ascending"
    )
    page.get_by_role("link", name=re.compile("^price")).click()
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    expect(page.get_by_role("link", name=re.compile("^price"))).to_be_focused()
    prices = [float(text.strip("£")) for text in page.locator("td:nth-child(4) .value").all_inner_texts()]
    assert prices == sorted(prices, reverse=True)
    assert len(prices) > 10

    field = page.get_by_label("Filter cuisine")
    field.press_sequentially("thai", delay=40)
    expect(page.get_by_role("link", name=re.compile("cuisine contains “thai”"))).to_be_visible()
    expect(field).to_be_focused()
    assert "v.cuisine=thai" in page.url
    shown = first_cells(page)
    assert 0 < len(shown) < 50
    page.reload()
    assert first_cells(page) == shown  # what was typed stands in the address

    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert re.fullmatch(r"records-[\w.-]+-\d{4}-\d\d-\d\d\.csv", download.value.suggested_filename)
    with download.value.path().open(encoding="utf-8", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == shown

    page.locator("tbody .value").first.click()
    expect(page).to_have_url(re.compile(r"/pages/\d+\?.*attribute=name"))


def test_the_same_by_keyboard(page: Page) -> None:
    page.goto(f"/records?site={GUIDE}")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.keyboard.press("/")
    page.keyboard.type("zzzz")
    expect(page.get_by_text("No record is like that.")).to_be_visible()
    for _ in "zzzz":
        page.keyboard.press("Backspace")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.get_by_text(re.compile(r"^51\u2013"))).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_text(re.compile(r"^1\u2013"))).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tbody tr").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/pages/\d+"))


def test_without_scripts_links_and_fields_do_the_same(visiting: Visiting) -> None:
    page = visiting(java_script_enabled=False, viewport=PHONE)
    page.goto("/records?page=2")
    page.get_by_label("Filter cuisine").fill("thai")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=re.compile("cuisine contains “thai”"))).to_be_visible()
    assert "page=" not in page.url
    page.get_by_role("link", name=re.compile("cuisine contains “thai”")).click()
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("link", name="Last page").click()
    expect(page.get_by_text(re.compile(r"^51\u2013"))).to_be_visible()
