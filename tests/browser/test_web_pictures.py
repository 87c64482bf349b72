"""Nothing is loaded from elsewhere, unless someone allows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import Route, expect

from siteloom.core.model import Page
from tests.browser.annotator import Annotator
from tests.browser.conftest import Overheard
from tests.browser.serving import make_workspace
from tests.browser.test_archived import GIF
from tests.browser.test_ways_to_annotate import COMMON

SITE = "pictures.example"
PICTURE = "https://cdn.example/big/1.gif?size=9"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Pages with a picture that the archive does not have."""
    pages = (
        Page.from_text(
            f"https://{SITE}/{number}",
            f"<!DOCTYPE html><html><body><h1>Number {number}</h1>"
            f"<img src='//cdn.example/big/{number}.gif?size=9'>{COMMON}</body></html>",
        )
        for number in range(1, 6)
    )
    make_workspace(tmp_path / ".siteloom", list(pages))
    return tmp_path / ".siteloom"


def test_pictures_come_from_the_web_once_that_is_allowed(page: BrowserPage, overheard: Overheard) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=GIF, content_type="image/gif")

    page.context.route("https://cdn.example/**", answer)
    page.goto(f"/clusters/{SITE}/1/annotate")
    annotator = Annotator(page)
    annotator.wait()
    annotator.go_to(f"https://{SITE}/1")
    button = page.get_by_role("button", name="web pictures")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert asked == []

    button.click()
    annotator.wait()
    expect(button).to_have_attribute("aria-pressed", "true")
    picture = annotator.frame.locator("img")
    expect(picture).to_have_js_property("naturalWidth", 1)
    assert asked == [PICTURE]

    # It holds in this tab, also after a reload, and in no other.
    page.reload()
    annotator.wait()
    expect(picture).to_have_js_property("naturalWidth", 1)
    before = len(asked)
    other = Annotator(page.context.new_page())
    other.page.goto(f"/clusters/{SITE}/1/annotate")
    other.wait()
    other.go_to(f"https://{SITE}/1")
    button.click()
    annotator.wait()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert len(asked) == before
    overheard.addresses = [address for address in overheard.addresses if address != PICTURE]
