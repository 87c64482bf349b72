"""Elements are found by their id as a search of the whole tree finds them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.html.node_paths import elements_with_ids
from siteloom.html.parser import parse

IDS = ["a", "b", "A", "a b", "", "ä", "a&amp;b"]
pieces = st.lists(
    st.sampled_from(
        [f'<p id="{value}">x' for value in IDS]
        + [
            '<a name="a">y</a>',
            "<div>",
            "</div>",
            "</foo>",
            "<table><tr><td>",
            "<!-- <p id=a> -->",
            "<script>",
        ]
    ),
    max_size=12,
)


@given(pieces, st.sampled_from([0, 50, 99, 100, 101, 150]), st.booleans())
def test_all_elements_with_an_id_are_found(parts: list[str], errors: int, first: bool) -> None:
    """The parser tells of repeated ids, but of no more than a hundred errors."""
    noise = "</nonsense>" * errors
    html = (noise if first else "") + "".join(parts) + ("" if first else noise) + "<b id=a>"
    root = parse(Page.from_text("u", html))
    assert not isinstance(root, Failure)
    values = ("a", "b", "A", "a b", "", "ä", "a&b", "missing")
    expected = {value: [e for e in root.iter("*") if e.get("id") == value] for value in values}
    assert elements_with_ids(root, values) == expected


def test_an_id_that_xpath_cannot_say_is_found() -> None:
    root = parse(Page.from_text("u", "<p id='a\x01'>1<p id='\ufffe'>2<p id='a\x01'>3"))
    assert not isinstance(root, Failure)
    found = elements_with_ids(root, ["a\x01", "\ufffe", "\ud800", "\0"])
    assert {value: [element.text for element in elements] for value, elements in found.items()} == {
        "a\x01": ["1", "3"],
        "\ufffe": ["2"],
        "\ud800": [],
        "\0": [],
    }
