"""The server stops while someone annotates, and is started again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Error, Locator, expect

from tests.apps.cli.command import Command
from tests.apps.cli.verbs.test_serve import served
from tests.browser.annotator import Annotator
from tests.browser.serving import GUIDE, LAPTOP, some_pages
from tests.patience import MILLISECONDS

ANNOTATE = f"clusters/{GUIDE}/1/annotate"
TRUTH = {page.page.url: page.truth for page in some_pages()}


def test_what_is_marked_while_the_server_is_away_is_kept_when_it_is_back(
    browser: Browser, workspace: Path
) -> None:
    siteloom = Command(workspace.parent)
    with browser.new_context(viewport=LAPTOP) as context:
        context.set_default_timeout(MILLISECONDS)
        annotator = Annotator(context.new_page())
        with served(siteloom) as (address, process):
            annotator.page.goto(f"{address}{ANNOTATE}")
            annotator.wait()
            annotator.add("name")
            annotator.add("updated")
            annotator.click("name", [annotator.frame.locator("h1")])
            process.kill()  # it has no time to keep anything that it has not kept
            process.wait()
        truth = TRUTH[annotator.url()]

        (day,) = truth["updated"]
        annotator.chip("updated").click()
        annotator.frame.get_by_text(day, exact=True).click()
        told = annotator.page.get_by_role("alert")
        expect(told).to_contain_text("The server cannot be reached. Nothing is lost")
        retry(annotator).click()
        expect(told).to_contain_text("Nothing is lost")
        assert annotator.values("updated") == [day]

        with served(siteloom, "--port", str(urlsplit(address).port)) as _:
            with suppress(Error):  # the page may have found the server by itself, and then there is no button
                retry(annotator).click(timeout=2_000)
            expect(told).to_be_hidden()
            annotator.wait()
            annotator.page.reload()
            annotator.wait()
            for attribute in ("name", "updated"):
                assert annotator.values(attribute) == list(truth[attribute])
            assert annotator.is_settled()


def retry(annotator: Annotator) -> Locator:
    return annotator.page.get_by_role("button", name="Retry")
