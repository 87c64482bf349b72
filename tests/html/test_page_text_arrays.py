"""The texts of pages, held against lxml's own XPath and against what is visible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree, html

from siteloom.core.model import Failure, Page
from siteloom.html.node_paths import find
from siteloom.html.page_text_arrays import (
    ATTRIBUTE,
    INNER,
    LONGEST_TEXT,
    TEXT,
    Numbered,
    PageTexts,
    TextCollector,
)
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import normalize, text_nodes, visible_text
from tests.html.trees import tree
from tests.learning.known_records.sites import pages, texts_of


class Row(NamedTuple):
    text: str
    path: str
    styled_path: str
    label: str | None
    form: int


def collected(*roots: Element) -> PageTexts:
    collector = TextCollector()
    for root in roots:
        collector.add(root)
    return collector.collected()


def rows_of(texts: PageTexts, page: int = 0) -> list[Row]:
    return [
        Row(
            texts.texts[texts.text[row]],
            texts.path_text(int(texts.path[row])),
            texts.styled_path_text(int(texts.styled_path[row])),
            None if texts.label[row] < 0 else texts.texts[texts.label[row]],
            int(texts.form[row]),
        )
        for row in np.flatnonzero(texts.page == page).tolist()
    ]


def rows(markup: str) -> list[Row]:
    return rows_of(collected(tree(markup)))


def of_form(found: list[Row], form: int) -> list[str]:
    return [row.text for row in found if row.form == form]


def check_against_xpath(root: Element) -> None:
    """What rows say of a page is what XPath and the visible text say of it."""
    found = rows_of(collected(root))
    seen = [normalize(node.text) for node in text_nodes(root)]
    assert of_form(found, TEXT) == [text for text in seen if len(text) <= LONGEST_TEXT]
    for row in found:
        if row.form == INNER:
            element = find(root, row.path)
            assert element is not None
            assert visible_text(element) == row.text
            assert len(list(text_nodes(element))) > 1
        else:
            at = root.getroottree().xpath(row.path)
            assert isinstance(at, list)
            assert [normalize(str(text)) for text in at] == [row.text]
    whole = {row.path for row in found if row.form == INNER}
    tree_of = root.getroottree()
    for element in root.iter():
        if isinstance(element.tag, str) and not is_hidden(element) and len(list(text_nodes(element))) == 2:
            path = "".join(f"/{step}" for step in full_steps(tree_of.getpath(element)))
            assert (path in whole) == (len(visible_text(element)) <= LONGEST_TEXT)


def full_steps(path: str) -> list[str]:
    return [step if step.endswith("]") else f"{step}[1]" for step in path.strip("/").split("/")]


def is_hidden(element: Element) -> bool:
    hidden = {"head", "script", "style", "noscript", "template", "iframe"}
    return any(one.tag in hidden for one in (element, *element.iterancestors()))


BLANKS_AND_WORDS = st.lists(
    st.sampled_from(["a", "Golden Goose", " ", "\n\t", "\u00a0", "x" * 160, "é", "12"]), max_size=3
).map("".join)
LEAVES = st.one_of(
    BLANKS_AND_WORDS,
    st.sampled_from(
        [
            "<br>",
            "<!-- aside -->",
            "<script>var a = 1</script>",
            "<noscript>No <b>scripts</b></noscript>",
            "<iframe>No <b>frames</b></iframe>",
            '<img alt="A  view" src="view.png">',
            '<a href="https://x.example/">x</a>',
        ]
    ),
)


def _element(parts: tuple[str, str, list[str]]) -> str:
    tag, style, content = parts
    return f"<{tag}{style}>{''.join(content)}</{tag}>"


MARKUP = st.recursive(
    LEAVES,
    lambda inner: st.tuples(
        st.sampled_from(["div", "span", "b", "section"]),
        st.sampled_from(["", " class='a'", " class='b c'"]),
        st.lists(inner, max_size=4),
    ).map(_element),
    max_leaves=20,
)


@given(st.lists(MARKUP, min_size=1, max_size=5).map("".join))
def test_every_row_is_found_again_by_its_path(markup: str) -> None:
    root = parse(Page.from_text("u", f"<html><head><title>t</title></head><body>{markup}</body></html>"))
    assert not isinstance(root, Failure)
    check_against_xpath(root)


def test_rows_are_in_the_order_of_the_page() -> None:
    found = rows("<h1>Golden Goose</h1><p>at <b>12 Oak</b> since 1999</p><p>Italian</p>")

    assert [(row.text, row.form) for row in found] == [
        ("Golden Goose", TEXT),
        ("at", TEXT),
        ("12 Oak", TEXT),
        ("since 1999", TEXT),
        ("at 12 Oak since 1999", INNER),  # when all in it was seen
        ("Italian", TEXT),
        ("Golden Goose at 12 Oak since 1999 Italian", INNER),
        ("Golden Goose at 12 Oak since 1999 Italian", INNER),
    ]
    assert [row.path for row in found if row.form == INNER][1:] == ["/html[1]/body[1]", "/html[1]"]


def test_paths_are_absolute_and_count_what_stands_between() -> None:
    found = rows("<body><p>a</p><!-- b --> <p>c<br>d<!-- e -->f</p></body>")

    assert {row.text: row.path for row in found if row.form == TEXT} == {
        "a": "/html[1]/body[1]/p[1]/text()[1]",
        "c": "/html[1]/body[1]/p[2]/text()[1]",
        "d": "/html[1]/body[1]/p[2]/text()[2]",
        "f": "/html[1]/body[1]/p[2]/text()[3]",
    }


def test_styled_paths_have_tags_and_classes() -> None:
    found = rows('<div class="card big"><p>a</p><p class="x">b</p></div>')

    assert [row.styled_path for row in found if row.form == TEXT] == [
        "html > body > div.card big > p",
        "html > body > div.card big > p.x",
    ]


@pytest.mark.parametrize("tag", ["script", "style", "noscript", "template", "iframe", "noframes"])
def test_what_is_not_shown_is_left_out_but_not_what_follows(tag: str) -> None:
    found = rows(f"<p>a<{tag}>hidden</{tag}>b</p>")

    assert of_form(found, TEXT) == ["a", "b"]
    assert "ab" in of_form(found, INNER)


def test_the_head_is_left_out() -> None:
    assert of_form(rows("<head><title>Eat out</title></head><body>a</body>"), TEXT) == ["a"]


def test_attributes_that_may_be_values() -> None:
    found = rows(
        '<p>Golden Goose</p><img alt="Our  terrace" src="/goose.png" title="t">'
        '<time datetime="2008-05-01"></time>'
        '<a href="https://goose.example/">Site</a><a href="tel:+14155551212">Call</a><a href="/more">More</a>'
        '<img alt="" src=" ">'
    )

    assert [(row.text, row.path.rpartition("/")[2], row.label) for row in found if row.form == ATTRIBUTE] == [
        ("Our terrace", "@alt", "Golden Goose"),
        ("/goose.png", "@src", "Golden Goose"),
        ("2008-05-01", "@datetime", "Golden Goose"),
        ("https://goose.example/", "@href", "Golden Goose"),
        ("tel:+14155551212", "@href", "Site"),
    ]


def test_a_label_is_the_text_before() -> None:
    found = rows("<p><b>Phone</b> 555-1212</p><div><i>Cuisine</i><span>Thai</span></div>")
    labels = {(row.text, row.form): row.label for row in found}

    assert labels["Phone", TEXT] is None
    assert labels["555-1212", TEXT] == "Phone"
    assert labels["Cuisine", TEXT] == "555-1212"
    assert labels["Thai", TEXT] == "Cuisine"
    assert labels["Phone 555-1212", INNER] is None  # before the element, not in it
    assert labels["CuisineThai", INNER] == "555-1212"


def test_long_texts_are_prose_and_label_nothing() -> None:
    longest, longer = "x" * LONGEST_TEXT, "y" * (LONGEST_TEXT + 1)
    found = rows(f"<p>a</p><p>{longer}</p><p>b</p><p>{longest}</p><img alt='{longer}' src='{longest}'>")

    assert [(row.text, row.label) for row in found if row.form == TEXT] == [
        ("a", None),
        ("b", None),
        (longest, "b"),
    ]
    assert of_form(found, ATTRIBUTE) == [longest]
    assert of_form(found, INNER) == []


def test_lines_are_apart_and_what_stands_in_a_line_is_not() -> None:
    found = rows("<p>12 Oak Street<br>Oakdale</p><p>Golden<b>Goose</b></p><p><i>a</i> <i>b</i></p>")

    inner = of_form(found, INNER)
    assert inner[:3] == ["12 Oak Street Oakdale", "GoldenGoose", "a b"]


def test_elements_with_very_many_texts_are_no_values() -> None:
    found = rows("<ul>" + "<li>a</li>" * 50 + "</ul>")

    assert of_form(found, TEXT) == ["a"] * 50
    assert of_form(found, INNER) == []


def test_equal_texts_and_paths_of_pages_have_one_number() -> None:
    texts = collected(tree("<p>a</p><p>b</p>"), tree("<p>b</p><p>c</p>"))
    first, second = (
        texts.path[(texts.page == page) & (texts.form == TEXT)].tolist() for page in range(texts.pages)
    )

    assert first == second
    assert texts.texts.count("b") == 1
    assert texts.pages == 2


def test_pages_without_body_or_texts_are_counted() -> None:
    headless = etree.Element("html")
    etree.SubElement(headless, "head").text = "a"
    texts = collected(headless, tree("<p>b</p>"), tree("<p></p>"))

    assert (texts.pages, texts.page.tolist()) == (3, [1])


def test_nothing_taken_in_is_nothing_collected() -> None:
    texts = collected()

    assert (texts.pages, texts.texts, len(texts.page), len(texts.form)) == (0, (), 0, 0)


def test_deep_trees_are_read() -> None:
    root = deepest = etree.Element("html")
    for _ in range(5_000):
        deepest = etree.SubElement(deepest, "div")
    deepest.text, deepest.tail = "down", "next to it"
    texts = collected(root)

    shown = np.flatnonzero(texts.form == TEXT)
    assert [texts.texts[text] for text in texts.text[shown].tolist()] == ["down", "next to it"]
    path = texts.path_text(int(texts.path[shown[0]]))
    assert path == "/html[1]" + "/div[1]" * 5_000 + "/text()[1]"


def test_a_site_is_read_as_xpath_does() -> None:
    for page in pages()[:3]:
        root = parse(page)
        assert not isinstance(root, Failure)
        check_against_xpath(root)
    texts = texts_of(pages())
    assert len(np.unique(texts.page)) == texts.pages == len(pages())


def test_a_tree_that_was_not_parsed_here_is_read_alike() -> None:
    assert [row.text for row in rows_of(collected(html.fromstring("<p>a<b>b</b></p>")))] == ["a", "b", "ab"]


def test_numbers_are_given_in_the_order_of_asking() -> None:
    numbers = Numbered()

    assert [numbers[key] for key in ("b", "a", "b", (1, "c"))] == [0, 1, 0, 2]
    assert list(numbers) == ["b", "a", (1, "c")]
