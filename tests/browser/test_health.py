"""Health in a browser: from an alarm to the page before and after."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.serving import GUIDE


@pytest.fixture
def workspace(lived_in_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lived_in_folder, tmp_path / ".siteloom"))


def test_from_the_worst_site_to_the_page_before_and_after(page: Page) -> None:
    page.goto("/monitoring")
    page.get_by_role("heading", name=GUIDE, exact=True).get_by_role("link").click()
    expect(page.get_by_role("heading", name="What is wrong now")).to_be_visible()
    alarm = page.locator(".alarm").first
    alarm.get_by_role("row", name=re.compile("phone")).first.get_by_role("link", name="phone").click()
    expect(page).to_have_url(re.compile(r"/pages/\d+/changes\?.*attribute=phone"))
