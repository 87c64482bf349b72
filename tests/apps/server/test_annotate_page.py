"""The page of the annotator: who gets what, and that all it loads is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import html

import siteloom.apps.server
from siteloom.core.model import Page
from siteloom.html.visible_text import BREAKS
from siteloom.operations.cluster import cluster_store
from siteloom.store.queries.accounts import Role
from siteloom.store.store import Store
from tests.apps.server.conftest import People
from tests.store.helpers import put

SITE = "shop.example"
STATIC = Path(siteloom.apps.server.__file__).parent / "static"


@pytest.fixture
def shop(empty_store: Store) -> str:
    """A cluster of a few pages."""
    put(empty_store, *(Page(f"https://{SITE}/{n}", b"<h1>Lamp %d</h1><p>dim</p>" % n) for n in range(6)))
    cluster_store(empty_store, "vertex")
    return f"{SITE}/1"


def test_the_page_names_the_template_and_the_visitor(people: People, shop: str) -> None:
    answer = people.browser("edith", "editor").get(f"/clusters/{shop}/annotate?page=1")
    assert answer.status_code == 200
    (annotator,) = html.fromstring(answer.text).find_class("annotator")
    assert annotator.get("data-cluster") == shop
    assert (annotator.get("data-me"), annotator.get("data-role")) == ("edith", "editor")
    assert [link.get("href") for link in annotator.cssselect("nav a")] == [
        f"/sites/{SITE}",
        f"/clusters/{shop}",
    ]


def test_viewers_get_nothing_to_change_it_with(people: People, shop: str) -> None:
    def usable(role: Role) -> set[str]:
        page = people.browser(role, role).get(f"/clusters/{shop}/annotate")
        buttons = html.fromstring(page.text).xpath("//button[@data-part][not(@hidden)]/@data-part")
        return set(buttons)

    assert usable("editor") - usable("viewer") == {"finish", "list", "undo", "absent"}


def test_the_frame_of_archived_pages_allows_no_scripts(people: People, shop: str) -> None:
    page = html.fromstring(people.browser("edith", "editor").get(f"/clusters/{shop}/annotate").text)
    assert [frame.get("sandbox") for frame in page.iter("iframe")] == ["allow-same-origin"]


def test_a_template_that_is_not_there(people: People, shop: str) -> None:
    answer = people.browser("edith", "editor").get(f"/clusters/{shop}0/annotate")
    assert answer.status_code == 404
    assert f"There is no template {shop}0." in answer.text


def test_all_modules_and_styles_are_there(people: People, shop: str) -> None:
    browser = people.browser("edith", "editor")
    page = html.fromstring(browser.get(f"/clusters/{shop}/annotate").text)
    for address in page.xpath("//script/@src | //link[@rel='stylesheet']/@href"):
        assert browser.get(address).status_code == 200
    for module in (STATIC / "annotator").glob("*.js"):
        text = module.read_text()
        for imported in re.findall(r' from "(\.[^"]+)";$', text, re.MULTILINE):
            assert (module.parent / imported).is_file()


def test_lines_end_where_the_server_has_them_end() -> None:
    script = (STATIC / "archived" / "reading.js").read_text()
    (listed,) = re.findall(r"const BREAKS = new Set\(\((.*?)\)", script, re.DOTALL)
    assert set("".join(re.findall(r'"(.*?)"', listed)).split()) == BREAKS


def test_the_script_finds_all_parts_of_the_page(people: People, shop: str) -> None:
    page = html.fromstring(people.browser("edith", "editor").get(f"/clusters/{shop}/annotate").text)
    scripts = "".join(module.read_text() for module in (STATIC / "annotator").glob("*.js"))
    used = set(re.findall(r'\bpart\("(\w+)"\)', scripts))
    assert len(used) > 10
    assert used <= set(page.xpath("//@data-part"))
