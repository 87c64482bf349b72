"""Walking from text to text meets all that can be seen, in both directions."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given

from siteloom.core.model import Failure, Page
from siteloom.html.node_paths import (
    TextPosition,
    next_text_position,
    previous_text_position,
    text_before,
    text_position_before,
    texts_from,
)
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import text_nodes
from tests.html.html_bytes import html_bytes
from tests.html.trees import tree


def walk(root: Element) -> Iterator[TextPosition]:
    spot: TextPosition | None = TextPosition(root, None)
    while spot is not None:
        yield spot
        spot = next_text_position(spot)


@given(html_bytes)
def test_a_walk_meets_the_visible_texts_in_order_and_with_their_numbers(html: bytes) -> None:
    root = parse(Page("u", html))
    if not isinstance(root, Failure):
        found = [(spot.parent, spot.number, spot.text) for spot in walk(root) if not spot.is_blank]
        assert found == [(node.parent, node.number, node.text) for node in text_nodes(root)]


@given(html_bytes)
def test_the_way_back_is_the_same(html: bytes) -> None:
    root = parse(Page("u", html))
    if not isinstance(root, Failure):
        spots = list(walk(root))
        assert len(set(spots)) == len(spots)
        assert [previous_text_position(spot) for spot in spots] == [None, *spots[:-1]]


PAGE = "<title>t</title><body>a<div> <b>b</b><!-- x -->c<script>s</script><i></i>d</div>"


def test_numbers_are_those_of_xpath() -> None:
    root = tree(PAGE)
    for spot in texts_from(TextPosition(root, None)):
        path = f"text()[{spot.number}]"
        assert spot.parent.xpath(path) == [spot.text]


def test_texts_up_to_a_spot() -> None:
    root = tree(PAGE)
    (bold,) = root.iter("b")
    (italic,) = root.iter("i")
    assert [spot.text for spot in texts_from(TextPosition(root, None))] == ["a", "b", "c", "d"]
    assert [spot.text for spot in texts_from(TextPosition(bold, None), TextPosition(italic, None))] == [
        "b",
        "c",
    ]
    assert list(texts_from(None)) == []


def test_the_nearest_text_before() -> None:
    root = tree(PAGE)
    (bold,) = root.iter("b")
    (italic,) = root.iter("i")
    before = text_before(text_position_before(italic))
    assert before is not None
    assert before.text == "c"
    # The blank before the element is none, and what is behind the beginning is not looked at.
    first = text_before(text_position_before(bold))
    assert first is not None
    assert first.text == "a"
    assert text_before(text_position_before(bold), begin=first) is None
    assert text_position_before(root) is None
    assert text_before(None) is None
