"""From nothing to a wrapper that extracts every page of its template, in a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from siteloom.store.store import Store
from tests.browser.annotator import Annotator
from tests.browser.serving import GUIDE, some_pages
from tests.browser.signing_in import sign_in

TEMPLATE = f"{GUIDE}/1"
ATTRIBUTES = ("name", "phone", "cuisine")
TRUTH = {page.page.url: page.truth for page in some_pages()}


@pytest.fixture
def workspace(workspace_with_people: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(workspace_with_people, tmp_path / ".siteloom"))


@pytest.fixture
def annotator(page: Page) -> Annotator:
    """The annotator of a template of which nothing is known, as an editor gets there."""
    page.goto("/")
    sign_in(page, "edith")
    page.get_by_role("link", name=GUIDE, exact=True).click()
    page.get_by_role("link", name=TEMPLATE, exact=True).click()
    page.get_by_role("link", name="Annotate", exact=True).click()
    annotator = Annotator(page)
    annotator.wait()
    return annotator


def wanted(annotator: Annotator, attribute: str) -> list[str]:
    """What is true of the page that is shown."""
    return list(TRUTH[annotator.url()][attribute])


def nodes(annotator: Annotator, attribute: str) -> list[Locator]:
    """Where a person sees the values of an attribute."""
    if attribute == "name":
        return [annotator.frame.get_by_role("heading", level=1)]
    facts = annotator.frame.locator(".facts")
    return [facts.get_by_text(text, exact=True) for text in wanted(annotator, attribute)]


def test_a_template_is_annotated_by_keyboard_until_all_its_pages_are_extracted(
    annotator: Annotator, workspace_store: Store
) -> None:
    keyboard = annotator.page.keyboard
    for attribute in ATTRIBUTES:
        if attribute != ATTRIBUTES[0]:  # the field for the first one has the focus already
            keyboard.press("+")
        keyboard.type(attribute)
        annotator.press("Enter")
    while not annotator.is_enough():
        for digit, attribute in enumerate(ATTRIBUTES, 1):
            annotator.press(str(digit))
            if annotator.values(attribute) == wanted(annotator, attribute) != []:
                annotator.press("Enter")
            elif wanted(annotator, attribute):
                for number, node in enumerate(nodes(annotator, attribute)):
                    annotator.walk_to(node)
                    annotator.press("m" if number else "Enter")
            else:
                annotator.press("a")
            assert annotator.values(attribute) == wanted(annotator, attribute)
        assert annotator.is_settled()
        if not annotator.is_enough():
            annotator.press("n")
    annotator.tab_to("Finish", "Shift+Tab")
    keyboard.press("Enter")
    check_finished(annotator)
    check_records(workspace_store)


def test_a_wrong_suggestion_is_corrected(annotator: Annotator) -> None:
    annotator.add("phone")
    go_to_usual_page_with(annotator, "price", "phone")
    wrong = annotator.url()
    annotator.click("phone", nodes(annotator, "price"))
    annotator.go_to_next_page()
    go_to_usual_page_with(annotator, "price", "phone")
    assert annotator.values("phone") == wanted(annotator, "price")
    annotator.question.get_by_role("button", name="no").click()
    expect(annotator.question).to_contain_text("Click the right value of phone, or press a if there is none.")
    expect(annotator.chip("phone")).to_have_attribute("aria-checked", "true")
    expect(annotator.row("phone").get_by_role("cell")).to_contain_text("refused")
    expect(annotator.row("phone")).not_to_contain_text("sure")
    annotator.click("phone", nodes(annotator, "phone"))
    assert annotator.values("phone") == wanted(annotator, "phone")
    # What was clicked by mistake is put right, too; what both pages then teach is right on others.
    annotator.go_to(wrong)
    annotator.click("phone", nodes(annotator, "phone"))
    for _ in range(2):
        annotator.go_to_next_page()
        go_to_usual_page_with(annotator, "phone")
        assert annotator.values("phone") == wanted(annotator, "phone")


def test_what_was_done_is_taken_back(annotator: Annotator) -> None:
    annotator.add("name")
    annotator.click("name", nodes(annotator, "name"))
    assert annotator.values("name") == wanted(annotator, "name")
    annotator.say_absent("name")
    assert annotator.values("name") == []
    for values in (wanted(annotator, "name"), []):
        annotator.page.get_by_role("button", name="undo").click()
        annotator.wait()
        assert annotator.values("name") == values
    # Nothing of it is there for others, either, nor after a reload.
    annotator.page.reload()
    annotator.wait()
    assert annotator.values("name") == []


def go_to_usual_page_with(annotator: Annotator, *attributes: str) -> None:
    """Go on until a page has values of all of these, and is laid out like most."""
    usual = annotator.frame.locator("dl.facts")
    while not (usual.count() and all(wanted(annotator, attribute) for attribute in attributes)):
        annotator.go_to_next_page()


def check_finished(annotator: Annotator) -> None:
    expect(annotator.page.get_by_role("link", name="See the template")).to_be_visible()


def check_records(store: Store) -> None:
    """Every page of the template has a record, and all of them are true."""
    records = {row["url"]: row["values"] for row in map(json.loads, store.records())}
    (cluster,), addresses = store.clusters(TEMPLATE)
    pages = [addresses[member].url for member in cluster.members]
    assert len(pages) > 10
    assert records.keys() >= set(pages)  # and pages of other clusters that are made likewise
    for url in pages:
        assert {name: records[url].get(name, []) for name in ATTRIBUTES} == {
            name: list(TRUTH[url][name]) for name in ATTRIBUTES
        }
