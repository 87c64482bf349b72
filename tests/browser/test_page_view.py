"""The view of an archived page in the browser: what is lit stands where it should, and is walked through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import FrameLocator, Locator, Page, expect

from siteloom.core.model import Page as ArchivedPage
from siteloom.operations.annotation.sample_pages import version_of
from siteloom.store.store import Store
from tests.apps.demo.sites import guide, of_kind
from tests.browser.archived import Box, box_of, shown
from tests.browser.conftest import Overheard
from tests.browser.serving import serving
from tests.html.archived_view.test_archived import HOSTILE
from tests.maintenance.guide import restaurants
from tests.store.helpers import put

PLACE = next(one for one in restaurants()[5:24] if one.truth["phone"] and one.truth["updated"])
LIST = of_kind(guide(), "list")[2]
HOSTILE_URL = "https://shop.example/hostile"


@pytest.fixture(scope="module")
def workspace_store(lived_in_store: Store) -> Store:
    """A workspace with wrappers and a hostile page; no test here changes it."""
    put(lived_in_store, ArchivedPage.from_text(HOSTILE_URL, HOSTILE))
    return lived_in_store


@pytest.fixture(scope="module")
def served(workspace_store: Store) -> Iterator[str]:
    with serving(workspace_store) as address:
        yield address


def lit_boxes(page: Page) -> dict[str, list[Box]]:
    """The boxes drawn over archived pages, by the labels in their corners; no script can see them."""
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    nodes = session.send("DOM.getFlattenedDocument", {"depth": -1, "pierce": True})["nodes"]
    by_parent: dict[int, list[dict[str, Any]]] = {}
    for node in nodes:
        by_parent.setdefault(node.get("parentId", 0), []).append(node)
    found: dict[str, list[Box]] = {}
    for node in nodes:
        style = dict(zip(*[iter(node.get("attributes", []))] * 2, strict=True)).get("style", "")
        if node["nodeName"] != "SPAN" or "system-ui" not in style:
            continue
        label = "".join(child["nodeValue"] for child in by_parent[node["nodeId"]])
        quad = session.send("DOM.getBoxModel", {"nodeId": node["parentId"]})["model"]["border"]
        xs, ys = quad[::2], quad[1::2]
        found.setdefault(label, []).append(Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)))
    session.detach()
    return found


def place_of(page: Page, name: str) -> str:
    """The digit of an attribute."""
    row = page.locator(".attribute-row", has=page.locator("dt", has_text=name)).first
    return row.locator(".digit").inner_text()


def address(url: str, path: str = "/pages/at", **query: str) -> str:
    return f"{path}?{urlencode({'url': url, **query})}"


def value(page: Page, text: str) -> Locator:
    return page.locator(".panel .lit", has_text=text).first


def open_place(page: Page, **query: str) -> FrameLocator:
    page.goto(address(PLACE.page.url, version=version_of(PLACE.page), **query))
    return shown(page)


def test_values_are_lit_where_they_stand(page: Page) -> None:
    frame = open_place(page)
    boxes = lit_boxes(page)
    for name, node in (
        ("name", frame.locator("h1")),
        ("phone", frame.get_by_text(PLACE.truth["phone"][0], exact=True).first),
    ):
        (box,) = boxes[place_of(page, name)]
        assert box.is_inside(box_of(node).grown(6)), (name, box, box_of(node))
        assert box.height >= 12


def test_a_click_on_a_value_leads_to_its_place(page: Page) -> None:
    frame = open_place(page)
    updated = PLACE.truth["updated"][0]
    node = frame.get_by_text(updated).first
    assert not box_of(node).is_inside(box_of(page.locator(".page")))

    value(page, updated).click()
    expect(value(page, updated)).to_have_attribute("aria-pressed", "true")
    assert box_of(node).is_inside(box_of(page.locator(".page")))


def test_a_click_on_a_lit_place_leads_to_its_value(page: Page) -> None:
    frame = open_place(page)
    phone = PLACE.truth["phone"][0]

    frame.get_by_text(phone, exact=True).first.click()
    expect(value(page, phone)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("status").first).to_have_text(f"phone {phone}")
    frame.get_by_text("Phone:").first.hover()
    frame.get_by_text("Phone:").first.click()
    expect(value(page, phone)).to_have_attribute("aria-pressed", "true")


def test_keys_walk_through_the_values(page: Page) -> None:
    open_place(page)
    chosen = page.locator(".lit[aria-pressed=true]")

    page.keyboard.press("j")
    expect(chosen).to_have_text(PLACE.truth["name"][0])
    page.keyboard.press("j")
    expect(chosen).not_to_have_text(PLACE.truth["name"][0])
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(chosen).to_have_text(page.locator(".panel .lit").last.inner_text())
    page.keyboard.press("Escape")
    expect(chosen).to_have_count(0)


def test_an_attribute_that_is_asked_for_is_gone_to(page: Page) -> None:
    # As the table of records leads there: the only record of a page is its first.
    frame = open_place(page, attribute="updated", record="0")
    node = frame.get_by_text(PLACE.truth["updated"][0]).first

    expect(value(page, PLACE.truth["updated"][0])).to_have_attribute("aria-pressed", "true")
    assert box_of(node).is_inside(box_of(page.locator(".page")))


def test_a_node_that_is_asked_for_is_lit(page: Page) -> None:
    frame = open_place(page)
    page.locator(".attribute-row", has_text="phone").first.get_by_text("why").click()
    node = page.locator(".origin[open] p code").last.inner_text()

    page.goto(f"{page.url}&{urlencode({'node': node})}")
    shown(page)
    expect(page.locator(".lit.node")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("status").first).to_have_text(node)
    assert box_of(frame.get_by_text(PLACE.truth["phone"][0]).first).is_inside(box_of(page.locator(".page")))


def test_words_are_lit_and_walked_through(page: Page) -> None:
    name = PLACE.truth["name"][0]
    open_place(page, words=f'"{name.upper()}"')
    status = page.get_by_role("status").first
    count = page.locator("[data-shows=words]").inner_text()
    assert int(count) > 1

    expect(status).to_have_text(f"Place 1 of {count}")
    page.keyboard.press("n")
    expect(status).to_have_text(f"Place 2 of {count}")
    page.get_by_role("button", name="previous").click()
    expect(status).to_have_text(f"Place 1 of {count}")


def test_the_records_of_a_list_are_framed(page: Page) -> None:
    page.goto(address(LIST.page.url, record="1"))
    frame = shown(page)
    name = LIST.records[1]["name"][0]

    expect(page.locator(".lit[aria-pressed=true]")).to_have_text(name)
    (outline,) = lit_boxes(page)["record 2"]
    assert outline.width > 100
    assert box_of(frame.get_by_text(name, exact=True).first).is_inside(box_of(page.locator(".page")))


def test_another_wrapper_is_tried(page: Page) -> None:
    page.goto(address(LIST.page.url))
    shown(page)
    page.get_by_label("Wrapper").select_option(index=1)
    page.get_by_role("button", name="Extract").click()

    expect(page.get_by_text("It was asked for, whatever the page is like.")).to_be_visible()


def test_tags_and_paths_are_there_when_they_are_looked_for(page: Page) -> None:
    open_place(page)
    page.get_by_text("Tag counts").click()
    expect(page.locator("table.bars code", has_text="h1")).to_be_visible()
    page.get_by_text("Paths", exact=True).click()
    expect(page.locator(".page-tree .own-text", has_text=PLACE.truth["name"][0]).first).to_be_attached()


def test_before_and_after_stand_side_by_side(page: Page, workspace_store: Store) -> None:
    number = workspace_store.page_index.find(PLACE.page.url)
    (repair,) = workspace_store.repairs()
    page.goto(f"/pages/{number}/changes?proposed={repair.id}&attribute=phone")
    phone = PLACE.truth["phone"][0]
    for side in page.locator(".side").all():
        node = side.frame_locator("iframe").get_by_text(phone, exact=True).first
        node.wait_for()
        expect(page.locator(".lit[aria-pressed=true]")).to_have_count(2)
        begin = box_of(node)._replace(width=10)
        assert begin.is_inside(box_of(side.locator(".page")))
    place = page.locator("tr.chosen .digit").inner_text()
    assert len(lit_boxes(page)[place]) == 2


def test_what_is_not_found_any_more_is_shown_where_it_stands(page: Page, workspace_store: Store) -> None:
    number = workspace_store.page_index.find(PLACE.page.url)
    page.goto(f"/pages/{number}/changes?attribute=phone")
    after = page.locator(".side").nth(1)
    node = after.frame_locator("iframe").get_by_text(PLACE.truth["phone"][0], exact=True).first
    node.wait_for()

    expect(page.locator(".lit.unfound[aria-pressed=true]")).to_have_text(PLACE.truth["phone"][0])
    assert box_of(node)._replace(width=10).is_inside(box_of(after.locator(".page")))


def test_a_hostile_page_does_nothing(page: Page, overheard: Overheard) -> None:
    page.goto(address(HOSTILE_URL))
    frame = shown(page)
    for number in range(3):
        frame.locator("a").nth(number).click()
    frame.locator("button").click()
    page.wait_for_timeout(200)

    assert "/pages/" in page.url
    assert len(page.context.pages) == 1
    assert not [one for one in overheard.addresses if "evil" in one]
