"""The workbench over the web: everything that the annotator's page does."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from siteloom.core.model import Page
from siteloom.operations.cluster import cluster_store
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People

NAMES = ("Oak Lamp", "Pine Chair", "Elm Table", "Ash Stool", "Fir Shelf", "Yew Desk")
CLUSTER = "shop.example/1"
API = f"/api/clusters/{CLUSTER}"


def shop_page(number: int, name: str) -> Page:
    html = f"<html><head><title>{name}</title></head><body><h1>{name}</h1><p>Price: <b>${number}.50</b></p>"
    return Page(f"http://shop.example/p/{number}", (html + "<p>Made of wood.</p></body></html>").encode())


@pytest.fixture
def shop(people: People) -> People:
    with people.store.ingesting({}, 1) as (_, writer):
        for number, name in enumerate(NAMES):
            writer.add(shop_page(number, name), "shop.example")
    cluster_store(people.store, "vertex")
    return people


@pytest.fixture
def ana(shop: People) -> Browser:
    return shop.browser("ana", "admin")


def element(browser: Browser, page: dict[str, Any], tag: str) -> int:
    """The number of the first element of a tag, as the page that is shown has it."""
    from lxml import etree

    shown = browser.get(f"/pages/{page['id']}/tree?version={page['version']}")
    assert shown.status_code == 200
    root = etree.fromstring(shown.content)
    (found, *_) = root.iter(f"{{http://www.w3.org/1999/xhtml}}{tag}")
    return int(str(found.get("data-siteloom")))


def say(browser: Browser, page: dict[str, Any], values: object, **more: object) -> Any:
    body = {"values": values, "seen": {}, "version": page.get("version", ""), **more}
    return browser.send("PUT", f"{API}/pages/{page['id']}/values", body)


def describe(browser: Browser, attribute: str, **told: object) -> Any:
    seen = browser.get(f"{API}/workbench").json()["schema_revision"]
    return browser.send("PUT", f"{API}/attributes/{quote(attribute, safe='')}", {"seen": seen, **told})


def test_a_click_is_kept_and_every_page_is_suggested_its_value(ana: Browser) -> None:
    state = describe(ana, "name", mandatory=True).json()
    assert [one["name"] for one in state["attributes"]] == ["name"]
    first = state["pages"][0]
    pick = {"element": element(ana, first, "h1"), "text": 1}
    answer = say(ana, first, {"name": [pick]}, seen={"name": 0})
    assert answer.status_code == 200
    state = answer.json()
    assert state == ana.get(f"{API}/workbench").json()
    said = state["pages"][0]["cells"]["name"]
    assert (said["state"], said["source"]) == ("said", "ana")
    assert said["values"][0]["pick"] == {**pick, "attribute": None, "start": None, "end": None}
    for page in state["pages"][1:]:
        (value,) = page["cells"]["name"]["values"]
        assert page["cells"]["name"]["state"] == "suggested"
        assert value["text"] == NAMES[int(page["url"][-1])]
        assert value["pick"]["element"] == element(ana, page, "h1")


def test_part_of_a_text_is_the_value(ana: Browser) -> None:
    state = describe(ana, "price").json()
    first = state["pages"][0]
    pick = {"element": element(ana, first, "b"), "text": 1, "start": 1, "end": 5}
    state = say(ana, first, {"price": [pick]}).json()
    found = [page["cells"]["price"]["values"][0]["text"] for page in state["pages"]]
    assert found == [f"{page['url'][-1]}.50" for page in state["pages"]]
    assert {page["cells"]["price"]["values"][0]["pick"]["start"] for page in state["pages"]} == {1}


def test_who_was_overtaken_is_told_what_holds_now(shop: People, ana: Browser) -> None:
    ben = shop.browser("ben", "editor")
    state = describe(ana, "name").json()
    first = state["pages"][0]
    pick = {"element": element(ana, first, "h1"), "text": 1}
    assert say(ana, first, {"name": [pick]}, seen={"name": 0}).status_code == 200
    answer = say(ben, first, {"name": []}, seen={"name": 0})
    assert answer.status_code == 409
    name = NAMES[int(first["url"][-1])]
    assert answer.json()["detail"] == f"ana said meanwhile that name is “{name}”."
    now = answer.json()["state"]["pages"][0]["cells"]["name"]
    assert now["state"] == "said"
    assert say(ben, first, {"name": []}, seen={"name": now["revision"]}).status_code == 200


def test_what_is_wrong_is_told_in_a_sentence(ana: Browser) -> None:
    state = describe(ana, "name").json()
    first = state["pages"][0]
    for answer, status, sentence in (
        (ana.get("/api/clusters/shop.example/9/workbench"), 404, "There is no template shop.example/9"),
        (say(ana, {"id": 10**12}, {"name": []}), 404, "There is no page 1000000000000"),
        (say(ana, first, {"colour": []}), 404, "There is no attribute colour"),
        (say(ana, first, {"name": [{"element": 999}]}), 400, "The page has no element 999"),
        (say(ana, first, {"name": [{"element": 0, "text": 9}]}), 400, "has no text 9"),
        (say(ana, first, {"name": "Oak"}), 422, "values"),
        (describe(ana, " "), 400, "An attribute needs a name"),
        (describe(ana, "x", type="colour"), 422, "type"),
        (ana.send("DELETE", f"{API}/attributes/colour?seen=0.0"), 404, "There is no attribute colour"),
    ):
        assert answer.status_code == status, answer.text
        assert sentence in answer.json()["detail"]


def test_viewers_look_but_change_nothing(shop: People, ana: Browser) -> None:
    eve = shop.browser("eve", "viewer")
    page = eve.get(f"{API}/workbench").json()["pages"][0]
    for answer in (
        say(eve, page, {"name": []}),
        eve.send("PUT", f"{API}/attributes/name", {"seen": 0}),
        eve.send("DELETE", f"{API}/attributes/name?seen=0.0"),
        eve.send("POST", f"{API}/finish"),
    ):
        assert answer.status_code == 403
    assert ana.get(f"{API}/workbench").json()["attributes"] == []


def test_names_of_attributes_may_be_odd(ana: Browser) -> None:
    odd = 'a "c" <d> ü%?#'
    assert describe(ana, odd).status_code == 200
    assert [one["name"] for one in describe(ana, odd, name="plain").json()["attributes"]] == ["plain"]
    for name in ("a/b", "_url", "x" * 101):
        assert describe(ana, "plain", name=name).status_code == 400


def test_who_changes_attributes_that_another_has_changed_is_told(shop: People, ana: Browser) -> None:
    ben = shop.browser("ben", "editor")
    describe(ana, "name", multi=True)
    late = ben.send("PUT", f"{API}/attributes/name", {"seen": 0, "mandatory": True})
    assert late.status_code == 409
    (attribute,) = late.json()["state"]["attributes"]
    assert attribute["multi"] is True
    assert ben.send("DELETE", f"{API}/attributes/name?seen=0.0").status_code == 409
    again = ana.send("PUT", f"{API}/attributes/name", {"seen": 0, "multi": True})  # the answer was lost
    assert again.status_code == 200


def test_a_click_on_a_page_that_was_shown_otherwise_is_not_kept(ana: Browser) -> None:
    first = describe(ana, "name").json()["pages"][0]
    answer = say(ana, {**first, "version": "0123"}, {"name": [{"element": 3, "text": 1}]})
    assert answer.status_code == 409
    assert answer.json()["state"]["pages"][0]["version"] == first["version"]


def test_a_page_is_shown_in_the_version_that_was_annotated(shop: People, ana: Browser) -> None:
    state = describe(ana, "name").json()
    first = state["pages"][0]
    say(ana, first, {"name": [{"element": element(ana, first, "h1"), "text": 1}]})
    number = int(first["url"][-1])
    _add(shop.store, shop_page(number, "Plum Bench"))
    old = ana.get(f"/pages/{first['id']}/tree?version={first['version']}")
    assert NAMES[number] in old.text
    assert "Plum Bench" in ana.get(f"/pages/{first['id']}/tree").text
    assert ana.get(f"/pages/{first['id']}/tree?version=nonsense").status_code == 404


def _add(store: Store, page: Page) -> None:
    with store.ingesting({}, 1) as (_, writer):
        writer.add(page, "shop.example")
