"""A page of a list template on which no records are found is asked about, with nothing to say yes to."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import expect

from siteloom.core.model import Page
from tests.browser.annotator import Annotator
from tests.browser.serving import make_template
from tests.browser.test_ways_to_annotate import COMMON

SITE = "bands.example"
EMPTY = f"https://{SITE}/5"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    pages = []
    for number in range(1, 6):
        bands = "".join(f"<li><b>Band {number}{letter}</b></li>" for letter in "pqrst")
        shown = "<p>No bands play.</p>" if f"https://{SITE}/{number}" == EMPTY else f"<ul>{bands}</ul>"
        html = f"<!DOCTYPE html><html><body><h1>Night {number}</h1>{shown}{COMMON}</body></html>"
        pages.append(Page.from_text(f"https://{SITE}/{number}", html))
    make_template(tmp_path / ".siteloom", pages)
    return tmp_path / ".siteloom"


def test_the_page_is_shown_and_marked_by_hand(page: BrowserPage) -> None:
    page.goto(f"/clusters/{SITE}/1/annotate")
    annotator = Annotator(page)
    annotator.wait()
    annotator.add("band")
    annotator.go_to(f"https://{SITE}/1")
    page.get_by_role("button", name="list").click()
    for number in range(2):
        annotator.click("band", [annotator.frame.locator("li b").nth(number)])
    question = annotator.question
    expect(question).to_contain_text("5 records are found. Are these all?")
    annotator.press("Shift+Enter")
    expect(question).to_contain_text("no records are found.")
    expect(question.get_by_role("button")).to_have_text(["Entershow page"])
    question.get_by_role("button").click()
    annotator.wait()
    assert annotator.url() == EMPTY
    expect(question).to_contain_text("no records are found.")
    expect(question.get_by_role("button")).to_have_text(["jnext"])
    annotator.press("Enter")
    expect(annotator.status).to_have_text("There is nothing to confirm here: mark the values of a record.")
