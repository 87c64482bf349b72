"""A drag over several nodes means the words that it goes over, as the server reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage

from siteloom.core.model import Page
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.browser.annotator import Annotator
from tests.browser.serving import make_workspace
from tests.browser.test_ways_to_annotate import COMMON

SITE = "hours.example"
# White space of many kinds, texts that nobody sees, and blocks beside each other without any.
HTML = (
    "<!DOCTYPE html><html><head><title>x</title></head><body>"
    "<p class=hours>\n We open <b>Monday</b>\u00a0\u2003to <style>b {{ color: red }}</style>"
    "<i>Friday {number}</i>,\n 9 to 5</p>"
    "<div class=place><span>\U0001f33f</span><p class=street>{number} Main  Street</p>"
    "<p class=town>Larkmoor, LK</p></div>{common}</body></html>"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    pages = (
        Page.from_text(f"https://{SITE}/{number}", HTML.format(number=number, common=COMMON))
        for number in range(1, 6)
    )
    make_workspace(tmp_path / ".siteloom", list(pages))
    return tmp_path / ".siteloom"


def test_a_drag_over_several_nodes(page: BrowserPage, workspace_store: Store) -> None:
    page.goto(f"/clusters/{SITE}/1/annotate")
    annotator = Annotator(page)
    annotator.wait()
    annotator.add("days")
    annotator.add("address")
    url = annotator.url()
    number = url.rpartition("/")[2]
    annotator.chip("days").click()
    annotator.drag_between((".hours b", "Monday"), (".hours i", f"Friday {number}"))
    annotator.chip("address").click()
    annotator.drag_between((".street", "Main"), (".town", "Larkmoor"))
    example = workspace_store.annotations(workspace_store.page_ids([PageAddress(SITE, url)]))[-1].example
    assert example["values"] == {
        "days": [f"Monday to Friday {number}"],
        "address": ["Main Street Larkmoor"],
    }
    assert example["nodes"] == {
        "days": ["/html[1]/body[1]/p[1]"],
        "address": ["/html[1]/body[1]/div[1]"],
    }
    # It is shown as it was marked, with what was cut off.
    assert annotator.values("days") == [f"Monday to Friday {number}"]
    assert annotator.cut_off("days") == ["We open ", ", 9 to 5"]
    assert annotator.values("address") == ["Main Street Larkmoor"]
