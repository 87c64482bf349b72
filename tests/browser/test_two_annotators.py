"""Two people annotate one template at the same time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.annotator import Annotator
from tests.browser.conftest import Overheard, Visiting
from tests.browser.serving import GUIDE, some_pages
from tests.browser.signing_in import sign_in

NAMES = {page.page.url: page.truth["name"] for page in some_pages() if page.kind == "restaurant"}


@pytest.fixture
def workspace(workspace_with_people: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(workspace_with_people, tmp_path / ".siteloom"))


@pytest.fixture
def people(visiting: Visiting) -> tuple[Annotator, Annotator]:
    """Ada and Edith, both before the first page of the same template."""
    ada, edith = (Annotator(visiting()) for _ in range(2))
    for annotator, name in ((ada, "ada"), (edith, "edith")):
        annotator.page.goto(f"/clusters/{GUIDE}/1/annotate")
        sign_in(annotator.page, name)
        annotator.wait()
    return ada, edith


def test_each_sees_what_the_other_does(people: tuple[Annotator, Annotator]) -> None:
    ada, edith = people
    ada.add("name")
    ada.click("name", [ada.frame.get_by_role("heading", level=1)])
    expect(edith.chip("name")).to_be_visible()
    expect(edith.page.get_by_text("ada is here too")).to_be_visible()
    (name,) = NAMES[ada.url()]
    expect(edith.page.get_by_role("region", name="Values of this page").get_by_text(name)).to_be_visible()
    # Edith goes on with the next page, which Ada sees to be settled.
    edith.go_to_next_page()
    assert edith.values("name") == list(NAMES[edith.url()])
    edith.confirm("name")
    second = ada.page.get_by_role("navigation", name="Sample pages").get_by_role("button").nth(1)
    expect(second.get_by_role("img", name="settled")).to_be_visible()


def test_neither_overwrites_what_the_other_has_said(
    people: tuple[Annotator, Annotator], overheard: Overheard
) -> None:
    ada, edith = people
    ada.add("name")
    expect(edith.chip("name")).to_be_visible()
    # Edith's line breaks, so she does not hear that Ada says what the name is, and says something else.
    edith.page.context.set_offline(True)
    ada.click("name", [ada.frame.get_by_role("heading", level=1)])
    edith.chip("name").click()
    edith.frame.locator("#crumbs a").first.click()
    retry = edith.page.get_by_role("button", name="Retry")
    expect(retry).to_be_visible()
    edith.page.context.set_offline(False)
    retry.click()
    expect(edith.page.get_by_role("alert")).to_contain_text("ada")
    edith.page.get_by_role("button", name="Leave it").click()
    edith.wait()
    for annotator in people:
        annotator.page.reload()
        annotator.wait()
        assert annotator.values("name") == list(NAMES[annotator.url()])
    overheard.complaints.clear()  # of the broken line and the refused answer
