"""The server stops while someone annotates, and is started again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, expect

from siteloom.config import StoreSettings
from siteloom.store import open_store

from .annotator import Annotator
from .conftest import PATIENCE
from .serving import GUIDE, LAPTOP, serving, some_pages

ANNOTATE = f"/clusters/{GUIDE}/1/annotate"
TRUTH = {page.page.url: page.truth for page in some_pages()}


def test_what_is_marked_while_the_server_is_away_is_kept_when_it_is_back(
    browser: Browser, workspace: Path
) -> None:
    with browser.new_context(viewport=LAPTOP) as context:
        context.set_default_timeout(PATIENCE)
        annotator = Annotator(context.new_page())
        with closing(open_store(StoreSettings(workspace=str(workspace)))) as store, serving(store) as address:
            annotator.page.goto(f"{address}{ANNOTATE}")
            annotator.wait()
            annotator.add("name")
            annotator.add("address")
            annotator.click("name", [annotator.frame.locator("h1")])
        truth = TRUTH[annotator.url()]

        annotator.chip("address").click()
        (street,) = truth["address"]
        annotator.frame.locator(".facts").get_by_text(street, exact=True).click()
        told = annotator.page.get_by_role("alert")
        expect(told).to_contain_text("The server cannot be reached. Nothing is lost")
        retry(annotator).click()
        expect(told).to_contain_text("Nothing is lost")
        assert annotator.values("address") == [street]

        port = urlsplit(address).port
        assert port is not None
        with (
            closing(open_store(StoreSettings(workspace=str(workspace)))) as store,
            serving(store, port) as address,
        ):
            retry(annotator).click()
            expect(told).to_be_hidden()
            annotator.wait()
            annotator.page.goto(f"{address}{ANNOTATE}")
            annotator.wait()
            for attribute in ("name", "address"):
                assert annotator.values(attribute) == list(truth[attribute])
            assert annotator.is_settled()
            annotator.go_to_next_page()
            assert annotator.values("address") == list(TRUTH[annotator.url()]["address"])


def retry(annotator: Annotator) -> Locator:
    return annotator.page.get_by_role("button", name="Retry")
