"""The view of an archived page: what is told of it, where it stands, and what hostile questions get."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from lxml import html

from siteloom.apps.server import create_app
from siteloom.core.model import Failure, Page
from siteloom.core.settings import Settings, StoreSettings
from siteloom.html.node_paths import elements_in_order
from siteloom.html.parser import Element, parse
from siteloom.learning.annotation.clicked_nodes import Pick, picked
from siteloom.operations.annotation.sample_pages import version_of
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import guide, of_kind
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.lived_in import GUIDE
from tests.maintenance.guide import restaurants
from tests.operations.maintenance import decide
from tests.store.helpers import put

PLACE = next(one for one in restaurants()[5:24] if one.truth["phone"] and one.truth["price"])
LIST = of_kind(guide(), "list")[2]
EVENT = of_kind(guide(), "event")[0]


@pytest.fixture(scope="module")
def archive(lived_in_folder: Path) -> Iterator[Store]:
    """A workspace in which much has happened, which no test here changes."""
    with closing(open_store(StoreSettings(workspace=str(lived_in_folder)))) as store:
        yield store


@pytest.fixture(scope="module")
def client(archive: Store) -> Browser:
    return Browser(create_app(archive, Settings()))


def number(store: Store, url: str) -> int:
    found = store.page_index.find(url)
    assert found is not None
    return found


def asked(client: Browser, page: int, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/api/pages/{page}?{urlencode(query, doseq=True)}")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def tree(page: Page) -> list[Element]:
    root = parse(page)
    assert not isinstance(root, Failure)
    return elements_in_order(root)


def meant(page: Page, pick: dict[str, Any]) -> str:
    return picked(tree(page), Pick(**pick)).text


@pytest.fixture(scope="module")
def before(client: Browser, archive: Store) -> dict[str, Any]:
    """What is told of a restaurant as it was before the redesign."""
    return asked(client, number(archive, PLACE.page.url), version=version_of(PLACE.page))


def test_values_are_told_with_the_places_where_they_stand(before: dict[str, Any]) -> None:
    (record,) = before["records"]
    found = {value["attribute"]: value for value in record["values"]}

    assert before["wrapper"] == f"{GUIDE}/1"
    assert before["why"].startswith("Chosen: ")
    for name in ("name", "phone", "price"):
        assert found[name]["text"] == PLACE.truth[name][0]
    for value in record["values"]:
        assert meant(PLACE.page, value["pick"]) == value["text"]
        assert 0 < value["confidence"] <= 1
        assert value["words"].startswith(("the ", "each "))
        assert value["node"].startswith("/html[1]/")
    assert before["attributes"][0] == "name"


def test_a_page_that_has_changed_says_why_it_gives_no_record_and_what_to_do(
    client: Browser, archive: Store
) -> None:
    page = number(archive, PLACE.page.url)
    told = asked(client, page)

    assert told["records"] == []
    assert told["failure"]["reason"] == "unlike the pages of its wrapper"
    assert told["failure"]["next_step"]["kind"] == "repair"
    assert len(told["versions"]) == 2
    assert "Review the repair that waits" in client.look(f"/pages/{page}")


def test_a_page_without_a_wrapper_leads_to_its_template(client: Browser, archive: Store) -> None:
    told = asked(client, number(archive, EVENT.page.url))

    assert told["failure"]["sentence"] == "No wrapper has a pattern that this URL matches."
    assert told["failure"]["next_step"] == {
        "kind": "annotate",
        "text": "Annotate its template",
        "cluster": told["template"],
        "key": None,
    }
    assert {one["wrapper"] for one in told["considered"]} == {f"{GUIDE}/1", f"{GUIDE}/3"}


def test_the_records_of_a_list_stand_inside_their_frames(client: Browser, archive: Store) -> None:
    told = asked(client, number(archive, LIST.page.url), record=2)
    elements = tree(LIST.page)

    assert told["record"] == 2
    assert len(told["records"]) == len(LIST.records)
    for record in told["records"]:
        frame = {elements[top] for top in record["elements"]}
        assert frame
        for value in record["values"]:
            place = elements[value["pick"]["element"]]
            assert frame & {place, *place.iterancestors()}
    page = html.fromstring(client.get(f"/pages/{told['page']}?record=2").text)
    (opened,) = page.xpath("//details[@class='record'][@open]")
    assert opened.get("data-record") == "2"


def test_any_wrapper_can_be_tried_on_any_page(client: Browser, archive: Store) -> None:
    page = number(archive, EVENT.page.url)

    told = asked(client, page, wrapper=f"{GUIDE}/1", wrapper_version=1)
    assert (told["wrapper"], told["wrapper_version"], told["is_asked_for"]) == (f"{GUIDE}/1", 1, True)
    shown = client.look(f"/pages/{page}?wrapper={quote(f'{GUIDE}/1')}&wrapper_version=&version=")
    assert "It was asked for" in shown


def test_what_a_repair_proposes_can_be_tried(client: Browser, archive: Store) -> None:
    (repair,) = archive.repairs()
    page = number(archive, PLACE.page.url)

    told = asked(client, page, proposed=repair.id)
    found = {value["attribute"]: value["text"] for value in told["records"][0]["values"]}
    assert found["phone"] == PLACE.truth["phone"][0]
    assert client.get(f"/api/pages/{page}?proposed={repair.id + 1}").status_code == 404


def test_rules_of_an_earlier_layout_are_told_in_words(lived_in: Store) -> None:
    decide(lived_in, f"{GUIDE}/1", accept=True)
    page = number(lived_in, PLACE.page.url)

    for version in (None, version_of(PLACE.page)):
        told = (
            Browser(create_app(lived_in, Settings())).get(f"/api/pages/{page}?version={version or ''}").json()
        )
        assert told["wrapper_version"] == 2
        assert all(value["words"] for value in told["records"][0]["values"])


def test_nodes_are_lit_if_they_are_there(client: Browser, before: dict[str, Any]) -> None:
    (record,) = before["records"]
    there = [value["node"] for value in record["values"]]

    told = asked(client, before["page"], version=before["version"], node=there)
    for value, lit in zip(record["values"], told["nodes"], strict=True):
        assert lit["pick"]["element"] == value["pick"]["element"]
        assert lit["pick"]["text"] == value["pick"]["text"]


@pytest.mark.parametrize(
    "node",
    [
        "/html[1]/body[1]/table[99]/text()[1]",
        "/html[1]/body[1]/@nothing",
        "/html[1]/body[1]/text()[999999999]",
        "//*",
        "/html[1]/body[1]/div[position()=last()]",
        "/html[1]/body[1]/@{x",
        "count(//*) > 1",
        "'\"><script>alert(1)</script>",
        "/a" * 900,
    ],
)
def test_a_node_that_is_not_there_is_told(client: Browser, before: dict[str, Any], node: str) -> None:
    told = asked(client, before["page"], version=before["version"], node=node)
    assert told["nodes"] == [{"node": node, "pick": None}]

    query = urlencode({"version": before["version"], "node": node})
    shown = html.fromstring(client.get(f"/pages/{before['page']}?{query}").text)
    assert "There is no node" in shown.text_content()
    assert not shown.xpath("//script[contains(., 'alert')]")


def test_words_are_lit_where_search_would_find_them(client: Browser, before: dict[str, Any]) -> None:
    name = PLACE.truth["name"][0]
    for words in (name.upper(), f'"{name.lower()}"'):
        told = asked(client, before["page"], version=before["version"], words=words)
        places = [meant(PLACE.page, pick) for pick in told["words"]]
        assert any(name in place or place in name for place in places), (words, places)


@pytest.mark.parametrize("words", [".*", "[a", "(?:", "\\", "+", "-", '"', "a" * 1_999, "-fish", "\u0000"])
def test_words_are_no_patterns(client: Browser, before: dict[str, Any], words: str) -> None:
    told = asked(client, before["page"], version=before["version"], words=words)
    assert all(meant(PLACE.page, pick).lower() == "a" for pick in told["words"])
    assert client.get(f"/pages/{before['page']}?{urlencode({'words': words})}").status_code == 200


def test_words_are_found_across_elements_and_without_accents(tmp_path: Path) -> None:
    page = Page.from_text(
        "https://a.example/", "<p>\U0001f600 Caf\u00e9 <b>Gr\u00fcn</b> und Caf\u00e9 <i>gr\u00fcn</i></p>"
    )
    with closing(open_store(StoreSettings(str(tmp_path / "w")), create=True)) as store:
        put(store, page)
        told = asked(Browser(create_app(store, Settings())), number(store, page.url), words='"cafe grun"')
        assert [meant(page, pick) for pick in told["words"]] == ["Café", "Grün", "Café", "grün"]


def test_a_page_is_found_by_its_url_and_the_rest_of_the_question_is_kept(
    client: Browser, archive: Store
) -> None:
    page = number(archive, PLACE.page.url)
    query = [("url", PLACE.page.url), ("node", "/html[1]"), ("node", "/html[1]/@x"), ("words", "a & b")]

    answer = client.get(f"/pages/at?{urlencode(query)}&site={GUIDE}")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/pages/{page}?{urlencode(query[1:])}"
    assert client.get(f"/pages/at?url={quote(PLACE.page.url)}").headers["location"] == f"/pages/{page}"
    assert client.get(f"/api/pages/at?url={quote(PLACE.page.url)}").json()["page"] == page


@pytest.mark.parametrize(
    "query", ["url=https://nowhere.example/", "url=", "", f"url={PLACE.page.url}&site=other"]
)
def test_a_page_that_is_not_in_the_archive_can_be_added(client: Browser, query: str) -> None:
    answer = client.get(f"/pages/at?{query}")

    assert answer.status_code == 404
    shown = html.fromstring(answer.text)
    assert "The archive has no page" in shown.text_content()
    assert shown.xpath("//main//a[starts-with(@href, '/add?')]")


@pytest.mark.parametrize("page", [0, 999_999, 2**63 - 1, 2**63, 10**40])
@pytest.mark.parametrize("part", ["", "/changes", "/tags", "/paths", "/tree"])
def test_numbers_of_no_page_are_told_to_be_so(client: Browser, page: int, part: str) -> None:
    answer = client.get(f"/pages/{page}{part}")
    assert answer.status_code == 404
    assert f"There is no page {page} in the archive." in html.fromstring(answer.text).text_content()


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("version=0123456789abcdef", 404),
        ("version=%00", 404),
        ("wrapper=nothing", 404),
        (f"wrapper={GUIDE}/1&wrapper_version=99", 404),
        ("proposed=99", 404),
        ("wrapper_version=x", 422),
        ("record=-1", 422),
        (f"record={2**63}", 422),
        ("words=" + "a" * 2_001, 422),
    ],
)
def test_what_is_not_there_is_refused_with_a_sentence(
    client: Browser, archive: Store, query: str, status: int
) -> None:
    page = number(archive, PLACE.page.url)
    for path in (f"/api/pages/{page}", f"/pages/{page}"):
        assert client.get(f"{path}?{query}").status_code == status


def test_a_record_that_is_not_there_is_told(client: Browser, before: dict[str, Any]) -> None:
    shown = client.look(f"/pages/{before['page']}?version={before['version']}&record=7")
    assert "There is no record 7 on this page: it has 1, counted from 0." in shown


def test_before_and_after_a_redesign(client: Browser, archive: Store) -> None:
    page = number(archive, PLACE.page.url)

    told = client.get(f"/api/pages/{page}/changes").json()
    assert told["before"]["version"] == version_of(PLACE.page)
    assert told["before"]["wrapper"] == told["after"]["wrapper"] == f"{GUIDE}/1"
    rows = {row["attribute"]: row for row in told["attributes"]}
    assert [one["text"] for one in rows["phone"]["before"]] == list(PLACE.truth["phone"])
    assert rows["phone"]["after"] == []
    (newest, _) = archive.page_index.versions(page, 2)
    (redesigned,) = archive.pages_in([newest.place])
    assert [meant(redesigned, one["pick"]) for one in rows["phone"]["unfound"]] == list(PLACE.truth["phone"])
    changed = [row["is_changed"] for row in told["attributes"]]
    assert changed == sorted(changed, reverse=True)
    assert changed[0]


def test_after_may_be_what_a_repair_proposes(client: Browser, archive: Store) -> None:
    (repair,) = archive.repairs()
    page = number(archive, PLACE.page.url)

    told = client.get(f"/api/pages/{page}/changes?proposed={repair.id}").json()
    rows = {row["attribute"]: row for row in told["attributes"]}
    assert not rows["phone"]["is_changed"]
    assert "as proposed" in client.look(f"/pages/{page}/changes?proposed={repair.id}&attribute=phone")


def test_a_page_with_one_version_has_no_before(client: Browser, archive: Store) -> None:
    shown = client.look(f"/pages/{number(archive, LIST.page.url)}/changes")
    assert "only this version" in shown
    assert "All values are the same before and after." in shown


def test_tags_and_paths_of_a_page(client: Browser, before: dict[str, Any]) -> None:
    version = f"?version={before['version']}"
    counts = client.get(f"/api/pages/{before['page']}/tags{version}").json()
    tags = {one["tag"]: one["count"] for one in counts}
    assert sum(tags.values()) == len(tree(PLACE.page))
    assert tags["h1"] == 1

    found = client.get(f"/api/pages/{before['page']}/paths{version}").json()
    by_text = {one["text"]: one for one in found["paths"] if one["text"]}
    assert by_text["Phone:"]["share"] > 0.5
    assert by_text[PLACE.truth["phone"][0]]["share"] == 0
    assert found["template"] == before["template"]
    told = {(one["path"], one["text"]) for one in found["paths"]}
    assert not told & {(one["path"], one["text"]) for one in found["missing"]}
    for part in ("tags", "paths"):
        assert html.fromstring(client.get(f"/pages/{before['page']}/{part}{version}").text).xpath(
            "//*[@data-part]"
        )


def test_a_page_that_cannot_be_parsed_says_so(tmp_path: Path) -> None:
    page = Page("https://a.example/", b"<div>" * 5_000)
    with closing(open_store(StoreSettings(str(tmp_path / "w")), create=True)) as store:
        put(store, page)
        client = Browser(create_app(store, Settings()))
        id_ = number(store, page.url)

        told = asked(client, id_, words="x", node="/html[1]")
        assert not told["is_readable"]
        assert told["failure"]["sentence"].startswith("The page cannot be read: ")
        assert "The page cannot be shown." in client.look(f"/pages/{id_}")
        assert client.get(f"/pages/{id_}/tags").status_code == 400


def test_what_pages_say_is_escaped(tmp_path: Path) -> None:
    page = Page.from_text("https://a.example/?'\"><script>x()</script>", "<title></title><p>x</p>")
    with closing(open_store(StoreSettings(str(tmp_path / "w")), create=True)) as store:
        put(store, page)
        client = Browser(create_app(store, Settings()))
        words = urlencode({"words": "\"'><script>x()</script>", "attribute": "\"'><script>x()</script>"})
        shown = html.fromstring(client.get(f"/pages/{number(store, page.url)}?{words}").text)
        assert not [script for script in shown.iter("script") if script.text]


def test_a_value_is_shown_where_it_stood_when_the_page_has_changed(lived_in: Store) -> None:
    browser = Browser(create_app(lived_in, Settings()))
    site, row = next((site, row) for site, row in lived_in.records_in_force() if "name" in row["values"])
    (name, *_), old = row["values"]["name"], lived_in.page_by_id(number(lived_in, row["url"]))
    assert old is not None
    wanted = {"url": row["url"], "site": site, "attribute": "name", "value": name, "wrapper": row["wrapper"]}
    path = f"/pages/at?{urlencode(wanted)}"
    there = browser.get(path).headers["location"]
    assert "version=" not in there
    assert "The page has changed since" not in browser.look(there)
    assert name in _lit_nodes(lived_in, there, old[1])

    put(lived_in, Page(row["url"], b"<html><body><p>All is new.</p></body></html>"))

    there = browser.get(path).headers["location"]
    assert f"version={version_of(old[1])}" in there
    assert "The page has changed since: this is how it was." in browser.look(there)
    assert name in _lit_nodes(lived_in, there, old[1])
    gone = browser.get(f"/pages/at?{urlencode(wanted | {'value': 'Nowhere Inn'})}").headers["location"]
    assert "“Nowhere Inn” was found on this page as name, but no version" in browser.look(gone)


def _lit_nodes(store: Store, path: str, page: Page) -> str:
    (node,) = parse_qs(urlsplit(path).query)["node"]
    root = parse(page)
    assert not isinstance(root, Failure)
    return str(root.getroottree().xpath(f"string({node})"))


def test_of_a_list_the_record_is_opened_that_states_a_value(archive: Store, client: Browser) -> None:
    reading = asked(client, number(archive, LIST.page.url))
    record = reading["records"][2]
    name = record["values"][0]
    wanted = {"url": LIST.page.url, "attribute": name["attribute"], "value": name["text"]}
    there = parse_qs(urlsplit(client.get(f"/pages/at?{urlencode(wanted)}").headers["location"]).query)
    assert there == {"attribute": [name["attribute"]], "record": ["2"], "node": [name["node"]]}


def test_a_wrapper_that_cannot_be_read_is_in_nobodys_way(lived_in: Store) -> None:
    browser = Browser(create_app(lived_in, Settings()))
    page = number(lived_in, PLACE.page.url)
    before = [one["wrapper"] for one in asked(browser, page)["considered"]]
    lived_in.save_wrapper(f"{GUIDE}/9", GUIDE, '{"format": "of a later version"}', "learn")
    assert [one["wrapper"] for one in asked(browser, page)["considered"]] == before
    assert browser.get(f"/pages/{page}").status_code == 200


def test_only_pages_of_the_web_are_linked_there(lived_in: Store) -> None:
    browser = Browser(create_app(lived_in, Settings()))
    for url in ("file:///etc/passwd", "javascript:alert(1)"):
        put(lived_in, Page(url, b"<p>one</p>"), site="odd.example")
        shown = html.fromstring(browser.get(f"/pages/{number(lived_in, url)}").text)
        assert not shown.xpath("//a[starts-with(@href, $url)]", url=url)
        assert shown.xpath("//*[@class='address']/@title") == [url]


def test_a_page_that_is_not_there_can_be_tried_by_those_who_may(people: People) -> None:
    missing = "/pages/at?url=https%3A%2F%2Fnew.example%2Fa%3Fb%3D1"
    editor, viewer = people.browser("ed", "editor"), people.browser("vic", "viewer")
    (link,) = html.fromstring(editor.get(missing).text).xpath("//main//a/@href")
    form = html.fromstring(editor.get(link).text).xpath("//form[@data-adding='try']")[0]
    assert form.xpath(".//input[@name='url']/@value") == ["https://new.example/a?b=1"]
    assert html.fromstring(viewer.get(missing).text).xpath("//main//a/@href") == []


def test_viewers_are_not_led_to_what_they_may_not_do(people: People) -> None:
    viewer = people.browser("vic", "viewer")
    for path in ("/", "/search", "/monitoring", "/seeds", "/seeds/wrap", "/records", "/entities", "/review"):
        shown = html.fromstring(viewer.get(path).text)
        assert shown.xpath("//a[starts-with(@href, '/add')]") == [], path
