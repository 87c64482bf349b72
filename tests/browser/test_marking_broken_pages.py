"""On pages that browsers read otherwise than lxml, a click means the node that is seen there."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage

from siteloom.core.model import Failure, Page
from siteloom.html.node_paths import node_path
from siteloom.html.parser import parse
from siteloom.html.visible_text import normalize, text_nodes
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.browser.annotator import Annotator
from tests.browser.serving import make_template
from tests.html.archived_view.broken_pages import BROKEN_PAGES

SITE = "broken.example"
# The text to click on each page: the only one of its element.
CLICKED = {
    "a table without rows' ends": "Blue Fern",
    "text and a block directly in a table": "a block",
    "tables in tables without ends": "inmost",
    "cells without a table": "three",
    "a caption, a head and a foot out of order": "late",
    "misnested formatting": "both",
    "links in links": "three",
    "unclosed paragraphs and items": "w",
    "names that XML cannot say": "card",
    "frames and old content": "moving",
}
URLS = {name: f"https://{SITE}/{number}" for number, name in enumerate(CLICKED)}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    make_template(
        tmp_path / ".siteloom",
        [Page.from_text(url, BROKEN_PAGES[name]) for name, url in URLS.items()],
    )
    return tmp_path / ".siteloom"


def node_of(store: Store, url: str, text: str) -> str:
    """The path of the one node of a page that has a text, in the tree that is learned from."""
    found = store.page_by_id(store.page_ids([PageAddress(SITE, url)])[0])
    assert found is not None
    root = parse(found[1])
    assert not isinstance(root, Failure)
    (node,) = (node for node in text_nodes(root) if normalize(node.text) == text)
    return f"{node_path(node.parent)}/text()[{node.number}]"


def test_the_node_that_is_clicked_is_the_one_that_is_kept(page: BrowserPage, workspace_store: Store) -> None:
    page.goto(f"/clusters/{SITE}/1/annotate")
    annotator = Annotator(page)
    annotator.wait()
    annotator.add("value")
    kept, meant = {}, {}
    for name, url in URLS.items():
        annotator.go_to(url)
        annotator.click("value", [annotator.frame.get_by_text(CLICKED[name], exact=True).last])
        (page_id,) = workspace_store.page_ids([PageAddress(SITE, url)])
        example = workspace_store.annotations([page_id])[-1].example
        kept[name] = (example["values"]["value"], example["nodes"]["value"])
        meant[name] = ([CLICKED[name]], [node_of(workspace_store, url, CLICKED[name])])
    assert kept == meant
