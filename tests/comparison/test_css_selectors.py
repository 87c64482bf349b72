"""The selectors that people would write, as they are learned to be compared with."""

from __future__ import annotations

import pytest
from evals.css_selectors import CssSelectors, css_of

from siteloom.core.model import Example, Failure, Page
from siteloom.html.parser import parse


def page(number: int, body: str) -> Page:
    return Page(f"http://x.example/{number}", body.encode())


def learned(examples: dict[str, list[str]], test: str) -> list[str]:
    """What is found on a page after learning from pages with the values of one attribute."""
    given = [
        Example(page(place, body), {"a": values}) for place, (body, values) in enumerate(examples.items())
    ]
    (found,) = CssSelectors()(given, [], [page(99, test)]).found
    return list(found.values.get("a", []))


@pytest.mark.parametrize(
    ("body", "css"),
    [
        ("<div id=box><p><b>here</b></p></div>", "div#box > p > b"),
        ("<div id=box class=c><b class='x y'>here</b></div>", "b.x.y"),
        ("<b id='1:a'>here</b>", "b#\\31 \\:a"),
        ("<p><b>here</b>", "html > body > p > b"),
    ],
)
def test_the_way_begins_at_the_nearest_id_or_class(body: str, css: str) -> None:
    root = parse(page(0, body))
    assert not isinstance(root, Failure)
    (element,) = root.iter("b")
    assert css_of(element) == css
    assert CssSelectors()._select(css)(root) == [element]  # type: ignore[misc]


def test_the_selector_that_is_right_on_most_examples_is_taken() -> None:
    body = "<p class=crumb>{0}</p><h1 class=name>{0}</h1>"
    other = "<p class=crumb>Shop</p><h1 class=name>{0}</h1>"
    examples = {body.format("Desk"): ["Desk"], other.format("Lamp"): ["Lamp"]}
    assert learned(examples, other.format("Chair")) == ["Chair"]


def test_one_of_several_places_is_taken_where_there_is_one_value() -> None:
    body = "<td class=v>{}</td><td class=v>{}</td>"
    wrapped = f"<table><tr>{body}</tr></table>"
    examples = {wrapped.format("red", "10 kg"): ["10 kg"], wrapped.format("blue", "9 kg"): ["9 kg"]}
    assert learned(examples, wrapped.format("green", "8 kg")) == ["8 kg"]


def test_all_are_taken_where_there_are_several_values() -> None:
    body = "<ul><li class=who>{}<li class=who>{}</ul>"
    assert learned({body.format("Ann", "Bob"): ["Ann", "Bob"]}, body.format("Cy", "Di")) == ["Cy", "Di"]


def test_own_texts_are_read_where_the_whole_is_more() -> None:
    body = "<p class=by><b>by</b> {}</p>"
    assert learned({body.format("Ann"): ["Ann"]}, body.format("Cy")) == ["Cy"]


def test_a_value_that_is_nowhere_gives_nothing() -> None:
    assert learned({"<p>Desk</p>": ["Lamp"]}, "<p>Chair</p>") == []
