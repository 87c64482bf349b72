"""Someone is signed out while annotating, and signs in again in another tab."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from siteloom.store.store import Store
from tests.browser.annotator import Annotator
from tests.browser.conftest import Overheard
from tests.browser.serving import GUIDE, some_pages
from tests.browser.signing_in import sign_in

NAMES = {page.page.url: page.truth["name"] for page in some_pages() if page.kind == "restaurant"}


@pytest.fixture
def workspace(workspace_with_people: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(workspace_with_people, tmp_path / ".siteloom"))


def test_what_is_said_waits_until_one_has_signed_in_again(
    page: Page, overheard: Overheard, workspace_store: Store
) -> None:
    page.goto(f"/clusters/{GUIDE}/1/annotate")
    sign_in(page, "edith")
    annotator = Annotator(page)
    annotator.wait()
    annotator.add("name")
    for cookie in page.context.cookies():
        workspace_store.accounts.close_session(cookie.get("value", ""))
    annotator.frame.get_by_role("heading", level=1).click()
    told = page.get_by_role("alert").filter(has_text="You are signed out. Nothing is lost")
    expect(told).to_be_visible()
    with page.expect_popup() as opened:
        told.get_by_role("link", name="Sign in again").click()
    other = opened.value
    sign_in(other, "edith")
    expect(other.get_by_role("heading", name="Sites", level=1)).to_be_visible()
    other.close()
    # It is sent by itself, with the token of the new session.
    expect(told).to_be_hidden()
    annotator.wait()
    page.reload()
    annotator.wait()
    assert annotator.values("name") == list(NAMES[annotator.url()])
    assert all("status of 40" in complaint for complaint in overheard.complaints)
    overheard.complaints.clear()
