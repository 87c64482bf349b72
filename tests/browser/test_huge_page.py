"""Pages of ten thousand elements are annotated like others."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage

from siteloom.core.model import Page
from tests.browser.annotator import Annotator
from tests.browser.serving import make_workspace

SITE = "long.example"
ROWS = 2_500  # of four elements each
TITLES = {f"https://{SITE}/ledger/{number}": f"Ledger of {1900 + number}" for number in range(5)}


def ledger(title: str, number: int) -> str:
    rows = "".join(
        f"<tr><td>{row}</td><td>entry {row * (number + 3) % 977}</td><td>{row % 31}</td></tr>"
        for row in range(ROWS)
    )
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>"
        f"<table>{rows}</table><p>Kept by <b class=keeper>keeper {number}</b></p></body></html>"
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / ".siteloom"
    pages = [Page.from_text(url, ledger(title, n)) for n, (url, title) in enumerate(TITLES.items())]
    make_workspace(folder, pages)
    return folder


def test_values_on_huge_pages_are_marked_and_suggested(page: BrowserPage) -> None:
    page.goto(f"/clusters/{SITE}/1/annotate")
    annotator = Annotator(page)
    annotator.wait()
    assert annotator.frame.locator("[data-siteloom]").count() > 4 * ROWS
    annotator.add("title")
    annotator.click("title", [annotator.frame.locator("h1")])
    annotator.add("keeper")
    annotator.click("keeper", [annotator.frame.locator(".keeper")])
    annotator.go_to_next_page()
    title = TITLES[annotator.url()]
    assert annotator.values("title") == [title]
    assert annotator.values("keeper") == [f"keeper {int(title[-4:]) - 1900}"]
