"""From what was pointed at to nodes, and back."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from siteloom.core.errors import UsageError
from siteloom.html.node_paths import elements_in_order, find, node_path
from siteloom.html.parser import Element
from siteloom.html.visible_text import normalize, text_nodes, visible_text
from siteloom.learning.annotation.clicked_nodes import Pick, PickedValue, pick_of, picked
from siteloom.learning.value_search.text_equality import fold
from siteloom.learning.value_search.value_locations import ValueIndex
from tests.html.archived_view.broken_pages import BROKEN_PAGES
from tests.html.archived_view.test_archived import MARKUP, tree

PAGE = """<title>Ferns</title><h1 class=" a  b ">Blue <!-- x -->  Fern\r\n in
    \U0001f33f town </h1><a href="mailto:fern@blue.example">Write <b>to</b> us</a><p> </p>"""


def elements(html: str = PAGE) -> list[Element]:
    return elements_in_order(tree(html))


def number_of(tag: str, of: list[Element]) -> int:
    return next(number for number, element in enumerate(of) if element.tag == tag)


def test_texts_elements_and_attributes() -> None:
    page = elements()
    h1, a = number_of("h1", page), number_of("a", page)
    body = "/html[1]/body[1]"
    assert picked(page, Pick(h1, text=1)) == PickedValue("Blue", f"{body}/h1[1]/text()[1]")
    assert picked(page, Pick(h1, text=2)) == PickedValue("Fern in \U0001f33f town", f"{body}/h1[1]/text()[2]")
    assert picked(page, Pick(h1)) == PickedValue("Blue Fern in \U0001f33f town", f"{body}/h1[1]")
    assert picked(page, Pick(a)) == PickedValue("Write to us", f"{body}/a[1]")
    assert picked(page, Pick(a, attribute="href")) == PickedValue(
        "mailto:fern@blue.example", f"{body}/a[1]/@href"
    )
    assert picked(page, Pick(a, attribute="href", start=7)).text == "fern@blue.example"
    assert picked(page, Pick(h1, attribute="class")).text == "a b"


def test_offsets_count_as_browsers_do() -> None:
    page = elements()
    raw = page[number_of("h1", page)][0].tail or ""
    at = raw.index("\U0001f33f")
    h1 = number_of("h1", page)
    # The plant takes two units, and ends are trimmed.
    assert picked(page, Pick(h1, text=2, start=at, end=at + 2)).text == "\U0001f33f"
    assert picked(page, Pick(h1, text=2, start=at - 2, end=at + 8)).text == "\U0001f33f town"
    assert picked(page, Pick(h1, text=2, end=at)).text == "Fern in"


@pytest.mark.parametrize(
    ("pick", "sentence"),
    [
        (Pick(99), "The page has no element 99: load the page again."),
        (Pick(-1), "The page has no element -1: load the page again."),
        (Pick(4, text=3), "The element 4 has no text 3: load the page again."),
        (Pick(4, text=0), "The element 4 has no text 0: load the page again."),
        (Pick(4, attribute="href"), "The element 4 has no href: load the page again."),
        (Pick(4, attribute="{"), "The element 4 has no {: load the page again."),
        (Pick(4, attribute="\0"), "The element 4 has no \0: load the page again."),
        (Pick(4, text=1, attribute="class"), "A value is taken from a text or from an attribute"),
        (Pick(4, text=1, start=3, end=2), "The text has no part from 3 to 2: give offsets from 0 to 5."),
        (Pick(4, text=1, start=-1), "The text has no part from -1 to 5: give offsets from 0 to 5."),
        (Pick(4, text=1, end=6), "The text has no part from 0 to 6: give offsets from 0 to 5."),
        (Pick(4, text=1, start=4, end=5), "Nothing can be read there"),
        (Pick(4, text=1, start=2, end=2), "Nothing can be read there"),
        (Pick(7), "Nothing can be read there"),
        (Pick(7, text=1), "Nothing can be read there"),
    ],
)
def test_mistakes_are_told(pick: Pick, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        picked(elements(), pick)
    assert str(error.value).startswith(sentence)


def test_half_a_character() -> None:
    with pytest.raises(UsageError, match="cuts a character in two"):
        picked(elements("<p>\U0001f33f"), Pick(2, text=1, start=1))


def test_places_of_values() -> None:
    page = elements()
    numbers = {element: number for number, element in enumerate(page)}
    h1, a, title = (number_of(tag, page) for tag in ("h1", "a", "title"))
    body = "/html[1]/body[1]"
    assert pick_of(page, numbers, f"{body}/h1[1]/text()[1]", "Blue") == Pick(h1, 1)
    assert pick_of(page, numbers, f"{body}/h1[1]", "Blue Fern in \U0001f33f town") == Pick(h1)
    assert pick_of(page, numbers, f"{body}/a[1]", "to us") == Pick(a, start=6, end=11)
    assert pick_of(page, numbers, f"{body}/a[1]/@href", "fern@blue.example") == Pick(a, None, "href", 7, 24)
    assert pick_of(page, numbers, "/html[1]/head[1]/title[1]", "Ferns") == Pick(title)
    raw = page[h1][0].tail or ""
    town = pick_of(page, numbers, f"{body}/h1[1]/text()[2]", "in \U0001f33f town")
    assert town == Pick(h1, 2, None, raw.index("in"), raw.index("town") + 5)
    for node, value in [
        (f"{body}/h1[1]/text()[1]", "Red"),
        (f"{body}/h1[1]/text()[7]", "Blue"),
        (f"{body}/h2[1]", "Blue"),
        (f"{body}/h1[1]/@href", "Blue"),
        (f"{body}/h1[1]", " "),
        ("//h1", "Blue"),
        ("", "Blue"),
    ]:
        assert pick_of(page, numbers, node, value) is None


def assert_round_trips(root: Element, choose: st.DataObject | None = None) -> None:
    """Every text, and a part of it, means the same to whoever points, to learning, and on the way back."""
    page = elements_in_order(root)
    numbers = {element: number for number, element in enumerate(page)}
    places = ValueIndex(root)
    for node in text_nodes(root):
        pick = Pick(numbers[node.parent], node.number)
        whole = picked(page, pick)
        assert whole.text == normalize(node.text)
        words = whole.text.split()
        first = 0 if choose is None else choose.draw(st.integers(0, len(words) - 1))
        last = len(words) - 1 if choose is None else choose.draw(st.integers(first, len(words) - 1))
        for value in (whole.text, " ".join(words[first : last + 1])):
            found = pick_of(page, numbers, whole.node, value)
            place = places.at(whole.node, value)
            if place is None:  # nothing of the value can be seen
                continue
            assert found is not None
            assert picked(page, found).node == place.node
            assert fold(picked(page, found).text) == fold(value)
    for element in page:
        seen = visible_text(element)
        if seen:
            assert picked(page, Pick(numbers[element])) == (seen, node_path(element))
            assert find(root, node_path(element)) is element


@pytest.mark.parametrize("html", BROKEN_PAGES.values(), ids=BROKEN_PAGES)
def test_broken_pages(html: str) -> None:
    assert_round_trips(tree(html))


@given(MARKUP, st.data())
def test_any_markup(html: str, data: st.DataObject) -> None:
    assume(html.strip())
    assert_round_trips(tree("<p>x" + html), data)
