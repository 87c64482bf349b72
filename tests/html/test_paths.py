"""Every node has a path of its own, and the path leads back to it."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from lxml import etree

from siteloom.core.model import Failure, Page
from siteloom.html.node_paths import _MOST_UNCACHED, NodePaths, find, node_path, tag_path
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import text_nodes
from tests.html.html_bytes import html_bytes
from tests.html.trees import tree


def nodes(html: bytes) -> list[Element]:
    root = parse(Page("u", html))
    if isinstance(root, Failure):
        return []
    return [*root.iter(), *root.itersiblings(preceding=True), *root.itersiblings()]


@given(html_bytes)
def test_every_path_leads_back_to_its_node(html: bytes) -> None:
    for node in nodes(html):
        assert find(node, node_path(node)) is node


@given(html_bytes)
def test_no_two_nodes_have_the_same_path(html: bytes) -> None:
    paths = [node_path(node) for node in nodes(html)]
    assert len(set(paths)) == len(paths)


@given(html_bytes)
def test_the_place_of_a_text_selects_exactly_it(html: bytes) -> None:
    root = parse(Page("u", html))
    if isinstance(root, Failure):
        return
    for parent, number, text in text_nodes(root):
        found = cast("list[str]", root.getroottree().xpath(f"{node_path(parent)}/text()[{number}]"))
        assert found == [text]


HTML = "<!-- top --><div><p>a</p><!-- c --><p>b <b>c</b></p></div><div><o:p>x</o:p><p>y</p></div>"


@pytest.mark.parametrize(
    ("xpath", "tags", "path"),
    [
        ("/html", "html", "/html[1]"),
        ("//b", "html/body/div/p/b", "/html[1]/body[1]/div[1]/p[2]/b[1]"),
        ("//div[2]/p", "html/body/div/p", "/html[1]/body[1]/div[2]/p[1]"),
        ("//div[2]/*[1]", "html/body/div/o:p", "/html[1]/body[1]/div[2]/*[1]"),
        ("//div/comment()", "html/body/div/comment()", "/html[1]/body[1]/div[1]/comment()[1]"),
        ("/comment()", "comment()", "/comment()[1]"),
    ],
)
def test_a_path_names_the_tags_from_the_root_down(xpath: str, tags: str, path: str) -> None:
    root = tree(HTML)
    (node,) = cast("list[Element]", root.getroottree().xpath(xpath))
    assert tag_path(node) == tags
    assert node_path(node) == path


def test_a_path_to_no_node_finds_nothing() -> None:
    root = tree(HTML)
    assert find(root, "/html[1]/body[1]/div[3]") is None
    assert find(root, "/html[1]/body[1]/*[9]") is None


def test_a_path_is_looked_up_from_the_top_whichever_node_is_given() -> None:
    root = tree(HTML)
    assert find(root[0][1], "/html[1]") is root


def test_a_processing_instruction_has_a_path() -> None:
    root = etree.fromstring("<a><?b c?><?d e?></a>")
    assert node_path(root[1]) == "/a[1]/processing-instruction()[2]"
    assert find(root, node_path(root[1])) is root[1]


@given(html_bytes)
def test_many_paths_are_those_that_one_by_one_would_be(html: bytes) -> None:
    for order in (nodes(html), nodes(html)[::-1]):
        paths = NodePaths()
        for node in order[:1] * _MOST_UNCACHED:
            paths(node)  # from here on it counts by itself
        assert list(map(paths, order)) == list(map(node_path, order))
