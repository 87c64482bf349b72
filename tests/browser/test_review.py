"""The review in a real browser: decided by keys and buttons, undone, and told when it was too late."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from siteloom.store.store import Store
from tests.lived_in import DIRECTORY, GUIDE
from tests.operations.parity_maintenance import lose_an_attribute
from tests.patience import wait_until

RESTAURANTS = f"{GUIDE}/1"
TITLE = "#review-title"


@pytest.fixture
def workspace_store(lived_in: Store) -> Store:
    """A workspace in which a repair waits."""
    return lived_in


def version(store: Store) -> int:
    return store.wrapper(RESTAURANTS).version


def test_an_alarm_is_reviewed_and_a_repair_accepted_then_rolled_back(
    page: Page, workspace_store: Store
) -> None:
    page.goto("/")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Review").click()
    expect(page.locator(TITLE)).to_have_text(RESTAURANTS)
    page.wait_for_load_state()  # only then it listens to keys
    expect(page.get_by_text("on up to 100 % of the pages that had values")).to_be_visible()
    expect(page.get_by_role("cell", name="the text right after 'Find it'")).to_be_visible()
    page.keyboard.press("o")
    expect(page).to_have_url(re.compile(r"/pages/\d+/changes\?"))
    page.go_back()
    expect(page.locator(TITLE)).to_have_text(RESTAURANTS)

    page.keyboard.press("a")
    expect(page.locator(TITLE)).to_have_text(f"{DIRECTORY}/1")  # before the job is done
    expect(page.locator(".toast")).to_contain_text(f"Accepted: {RESTAURANTS}")
    expect(page.locator(".review-list").get_by_role("link", name=RESTAURANTS)).to_be_hidden()
    wait_until(lambda: version(workspace_store) == 2)
    assert workspace_store.reviewing.count() == 0

    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="Accept a repair").click()
    expect(page.get_by_text("is in force as version 2")).to_be_visible()
    page.get_by_role("link", name=RESTAURANTS).last.click()
    expect(page.get_by_role("heading", name=f"Wrapper {RESTAURANTS}")).to_be_visible()
    page.get_by_role("button", name="Roll back to it").click()
    expect(page.get_by_text("that is now its version 3")).to_be_visible()
    first, newest = (workspace_store.wrapper(RESTAURANTS, number).text for number in (1, 3))
    assert newest == first


def test_undoing_an_accepted_repair_restores_the_version_before_and_lets_the_repair_wait(
    page: Page, workspace_store: Store
) -> None:
    (waiting,) = workspace_store.reviewing.repairs()
    page.goto("/review")
    page.get_by_role("button", name="Accept").click()
    wait_until(lambda: version(workspace_store) == 2)
    page.keyboard.press("z")
    expect(page.get_by_text("is in force again, as version 3")).to_be_visible()
    first, restored = (workspace_store.wrapper(RESTAURANTS, number).text for number in (1, 3))
    assert restored == first
    assert workspace_store.reviewing.repairs() == [waiting._replace(version_before=3)]
    entry = page.locator(f"[data-item='repair-{waiting.id}']")
    expect(entry).to_be_visible()
    expect(page.locator(".sections .badge")).to_have_text("1")
    entry.get_by_role("link").click()
    expect(page.locator(TITLE)).to_have_text(RESTAURANTS)
    expect(page.get_by_text("on up to 100 % of the pages that had values")).to_be_visible()
    page.wait_for_timeout(500)  # a new card cannot be decided about at once
    page.keyboard.press("a")
    wait_until(lambda: version(workspace_store) == 4)
    assert workspace_store.reviewing.repairs() == []


def test_undoing_on_the_page_of_a_job_restores_the_version_before_too(
    page: Page, workspace_store: Store
) -> None:
    page.goto("/review")
    page.get_by_role("button", name="Accept").click()
    wait_until(lambda: version(workspace_store) == 2)
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="Accept a repair").click()
    page.get_by_role("button", name="Undo: back to version 1").click()
    expect(page.get_by_text("waits again. The version before it is in force again")).to_be_visible()
    assert version(workspace_store) == 3
    page.get_by_role("link", name="Look at it").click()
    expect(page.locator(TITLE)).to_have_text(RESTAURANTS)


def test_undoing_what_was_left_out_lets_the_repair_wait_again(page: Page, workspace_store: Store) -> None:
    lose_an_attribute(workspace_store)
    (waiting,) = workspace_store.reviewing.repairs()
    page.goto(f"/review?item=repair-{waiting.id}")
    page.wait_for_load_state()
    page.keyboard.press("w")
    wait_until(lambda: version(workspace_store) == 2)
    assert workspace_store.reviewing.repairs() == []
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("is in force again, as version 3")).to_be_visible()
    assert workspace_store.reviewing.repairs() == [waiting._replace(version_before=3)]
    expect(page.locator(f"[data-item='repair-{waiting.id}']")).to_be_visible()


def test_the_last_is_rejected_and_waits_again(page: Page, workspace_store: Store) -> None:
    for name in (f"{DIRECTORY}/1", f"{GUIDE}/2"):
        workspace_store.reviewing.dismiss(name)
    page.goto("/review")
    page.keyboard.press("r")
    expect(page.locator(TITLE)).to_have_text("All decided")
    wait_until(lambda: workspace_store.reviewing.count() == 0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(TITLE)).to_have_text(RESTAURANTS)
    assert [repair.state for repair in workspace_store.reviewing.repairs()] == ["review"]
    assert version(workspace_store) == 1


def test_what_is_not_worth_it_is_set_aside(page: Page, workspace_store: Store) -> None:
    page.goto(f"/review?item=template-{DIRECTORY}%2F1")
    page.keyboard.press("x")
    expect(page.locator(TITLE)).to_have_text(f"{GUIDE}/2")
    expect(page.locator("[data-group=template] [data-count]")).to_have_text("1")
    wait_until(lambda: workspace_store.reviewing.dismissed() == {f"{DIRECTORY}/1"})


def test_a_double_click_decides_about_one_card_only(page: Page, workspace_store: Store) -> None:
    page.goto(f"/review?item=template-{DIRECTORY}%2F1")
    page.wait_for_load_state("networkidle")  # the next card is there already
    page.get_by_role("button", name="Not worth it").dblclick()
    expect(page.locator(TITLE)).to_have_text(f"{GUIDE}/2")
    wait_until(lambda: workspace_store.reviewing.dismissed() == {f"{DIRECTORY}/1"})
    assert [job.kind for job in workspace_store.jobs.latest(9)] == ["dismiss"]


def test_a_key_pressed_twice_decides_once_even_if_the_next_card_is_slow(
    page: Page, workspace_store: Store
) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/review?item=*", hold)
    page.goto("/review")
    page.wait_for_load_state()
    page.keyboard.press("a")
    page.keyboard.press("a")
    wait_until(lambda: version(workspace_store) == 2)
    for route in held:
        route.continue_()
    expect(page.locator(TITLE)).to_have_text(f"{DIRECTORY}/1")
    expect(page.locator(".sections .badge")).to_be_hidden()
    expect(page.locator(".toast")).to_have_count(1)
    assert [job.kind for job in workspace_store.jobs.latest(9)] == ["accept"]


def test_all_is_looked_through_by_keys(page: Page) -> None:
    page.goto("/review")
    for key, name in (("s", f"{DIRECTORY}/1"), ("ArrowRight", f"{GUIDE}/2"), ("s", RESTAURANTS)):
        page.keyboard.press(key)
        expect(page.locator(TITLE)).to_have_text(name)
        expect(page.locator(TITLE)).to_be_focused()
        expect(page.locator(".review-list [aria-current]")).to_contain_text(name)
    page.go_back()
    expect(page.locator(TITLE)).to_have_text(f"{GUIDE}/2")
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile(f"/clusters/{GUIDE}/2/annotate"))


def test_who_decides_about_what_is_outdated_is_told(page: Page, workspace_store: Store) -> None:
    page.goto("/review")
    expect(page.locator(TITLE)).to_have_text(RESTAURANTS)
    (seen,) = workspace_store.reviewing.repairs()
    with workspace_store.recording("relearn", {}) as run:
        newer = workspace_store.save_repair(run.id, *seen[2:8], seen.text, seen.content)
    page.keyboard.press("a")
    expect(page.locator(".toast.error")).to_contain_text("waits no more, for there is a newer one")
    expect(page.locator(f"[data-item='repair-{newer}']")).to_be_visible()
    assert version(workspace_store) == 1
