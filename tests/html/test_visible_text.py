"""The text that a person sees, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.html.parser import parse
from siteloom.html.visible_text import normalize, text_nodes, visible_text
from tests.html.html_bytes import html_bytes
from tests.html.trees import tree


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("  a \n b\u00a0\u00a0c\t", "a b c"),
        ("a\u2003b\u3000c", "a b c"),
        ("a\u200bb", "a\u200bb"),  # of no width, and no white space to Unicode
    ],
)
def test_white_space_is_one_blank_and_none_at_the_ends(text: str, normal: str) -> None:
    assert normalize(text) == normal


@given(st.text())
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@given(html_bytes)
def test_visible_text_is_in_normal_form(html: bytes) -> None:
    root = parse(Page("u", html))
    if not isinstance(root, Failure):
        text = visible_text(root)
        assert text == normalize(text)


@given(html_bytes)
def test_visible_text_is_what_the_text_nodes_hold(html: bytes) -> None:
    root = parse(Page("u", html))
    if not isinstance(root, Failure):
        parts = [text for _, _, text in text_nodes(root)]
        assert "".join("".join(parts).split()) == "".join(visible_text(root).split())
        assert not any(part.isspace() for part in parts)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a</p><p>b</p>", "a b"),
        ("a<br>b<br/>c", "a b c"),
        ("a<b>b</b><i>c</i>", "abc"),
        ("<span>a</span> <span>b</span>", "a b"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b c"),
        ("<ul><li>a<li>b</ul>c", "a b c"),
        ("<dl><dt>a<dd>b</dl>", "a b"),
        ("<select><option>a<option>b</select>", "a b"),
        ("a<div>b</div>c", "a b c"),
        ("a<!-- x -->b", "ab"),
        ("a<wbr>b<span hidden></span>c", "abc"),
        ("caf&eacute; &amp;&nbsp;bar &lt;3 &#8364;", "café & bar <3 €"),
        ("<h1>a</h1>b<hr>c<blockquote>d</blockquote>", "a b c d"),
        ("<textarea>a <b></textarea>", "a <b>"),
    ],
)
def test_line_ends_count_as_blanks_and_inline_elements_do_not(html: str, text: str) -> None:
    assert visible_text(tree(html)) == text


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>x</script>",
        "<style>x</style>",
        "<noscript>x <p>x</p></noscript>",
        "<template><p>x</p></template>",
        "<iframe><p>x</p></iframe>",
        "<noframes><p>x</p></noframes>",
        "<noembed><p>x</p></noembed>",
        "<!-- x -->",
        "<script><!-- x --></script>",
    ],
)
def test_what_nobody_sees_is_left_out_and_what_follows_is_not(hidden: str) -> None:
    root = tree(f"<body><p>a</p>{hidden}b<p>c{hidden}d</p>")
    assert "x" not in visible_text(root)
    assert [node.text for node in text_nodes(root)] == ["a", "b", "c", "d"]


def test_the_head_is_hidden_but_can_be_asked_for() -> None:
    root = tree("<head><title>t</title></head><body>a")
    assert visible_text(root) == "a"
    assert visible_text(root[0][0]) == "t"
    assert visible_text(root[0]) == "t"


def test_a_script_can_be_asked_for() -> None:
    (script,) = tree("<p>x</p><script>a = 1</script>").iter("script")
    assert visible_text(script) == "a = 1"


def test_the_text_of_an_element_ends_with_the_element() -> None:
    (bold,) = tree("<p>a <b>b<i>c</i>d</b> e</p>").iter("b")
    assert visible_text(bold) == "bcd"
    assert [node.text for node in text_nodes(bold)] == ["b", "c", "d"]


def test_texts_are_numbered_among_the_texts_of_their_parent() -> None:
    (paragraph,) = tree("<p>a<b>b</b> <i></i>c<!-- x -->d</p>").iter("p")
    places = [(node.parent.tag, node.number, node.text) for node in text_nodes(paragraph)]
    assert places == [("p", 1, "a"), ("b", 1, "b"), ("p", 3, "c"), ("p", 4, "d")]


def test_text_nodes_keep_their_white_space() -> None:
    assert [node.text for node in text_nodes(tree("<p> a\n b </p>\n\n<p>\u00a0</p>"))] == [" a\n b "]


def test_numbers_inside_a_part_of_the_page_are_those_of_the_page() -> None:
    root = tree("<div>a<b>b</b>c</div>")
    (div,) = root.iter("div")
    assert list(text_nodes(div)) == list(text_nodes(root))
