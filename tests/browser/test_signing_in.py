"""Who gets in, and what those see who do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from siteloom.store.store import Store
from tests.browser.conftest import Overheard, Visiting
from tests.browser.serving import serving
from tests.browser.signing_in import PASSWORD, enter, sign_in


@pytest.fixture
def workspace(workspace_with_people: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(workspace_with_people, tmp_path / ".siteloom"))


def test_signing_in_leads_to_the_page_that_was_asked_for(page: Page) -> None:
    page.goto("/sites/tableatlas.example")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_text("tableatlas.example")).to_have_count(0)
    # By keyboard alone: the first field has the focus.
    page.keyboard.type("edith")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="tableatlas.example", level=1)).to_be_visible()


def test_a_wrong_password_is_told_and_the_name_kept(page: Page, overheard: Overheard) -> None:
    page.goto("/")
    sign_in(page, "edith", "something else")
    expect(page.get_by_role("alert")).to_contain_text("not the password")
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("edith")
    overheard.forgive(401)
    # The field to be filled in again is empty and gets the focus, some time after the page is shown.
    password = page.get_by_label("Password")
    expect(password).to_be_focused()
    expect(password).to_have_value("")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Sites", level=1)).to_be_visible()


def test_who_has_signed_out_sees_nothing_any_more(page: Page) -> None:
    enter(page, "ada")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.go_back()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_text("larkmoor-guide.example")).to_have_count(0)


def test_viewers_look_and_change_nothing(page: Page, overheard: Overheard) -> None:
    enter(page, "vita")
    page.get_by_role("link", name="larkmoor-guide.example", exact=True).click()
    page.get_by_role("link", name="larkmoor-guide.example/1", exact=True).click()
    expect(page.get_by_role("heading", name="What its pages share")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^(Go on annotating|Annotate)$"))).to_have_count(0)
    page.get_by_role("link", name="See the annotations").click()
    expect(page.get_by_text("You may look, not change")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Finish|attribute"))).to_have_count(0)
    page.goto("/settings")
    expect(page.get_by_text("signed in as vita, viewer")).to_be_visible()
    expect(page.get_by_role("link", name="All accounts")).to_have_count(0)
    refused(page, "/settings/accounts", overheard)


def test_editors_annotate_but_see_no_accounts(page: Page, overheard: Overheard) -> None:
    enter(page, "edith")
    page.get_by_role("link", name="tableatlas.example", exact=True).click()
    page.get_by_role("link", name="tableatlas.example/1", exact=True).click()
    page.get_by_role("link", name="Annotate", exact=True).click()
    page.wait_for_url("**/annotate")
    refused(page, "/settings/accounts", overheard)


def test_an_admin_lets_someone_in_and_out_again(page: Page, visiting: Visiting, overheard: Overheard) -> None:
    enter(page, "ada")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="All accounts").click()
    form = page.get_by_role("region", name="Add an account")
    form.get_by_label("Name").fill("otto")
    form.get_by_label("Role").select_option("viewer")
    form.get_by_label("Password").fill(PASSWORD)
    form.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status").filter(has_text="otto")).to_be_visible()

    other = visiting()
    enter(other, "otto")
    page.get_by_role("button", name="Disable otto").click()
    expect(page.get_by_role("row", name=re.compile("otto.*disabled"))).to_be_visible()
    other.reload()
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in(other, "otto")
    expect(other.get_by_role("alert")).to_contain_text("not the password")
    overheard.forgive(401)


def test_who_signed_in_stays_so_when_the_server_is_started_anew(
    workspace_store: Store, browser: Browser
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        with serving(workspace_store) as address:
            page.goto(address)
            sign_in(page, "edith")
            expect(page.get_by_role("heading", name="Sites", level=1)).to_be_visible()
        with serving(workspace_store) as address:
            page.goto(f"{address}/settings")
            expect(page.get_by_text("signed in as edith, editor")).to_be_visible()


def refused(page: Page, path: str, overheard: Overheard) -> None:
    """What is not for a person is told to be so, however the person gets there."""
    answer = page.goto(path)
    assert answer is not None
    assert answer.status == 403
    overheard.forgive(403)
