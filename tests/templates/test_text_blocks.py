"""Pages as blocks of text segments."""

from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.html.node_paths import tag_path
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import normalize, text_nodes, visible_text
from siteloom.templates.text_blocks import LAYOUT, PageSegments, Segmenter
from tests.html.html_bytes import html_bytes
from tests.html.trees import tree

NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
BLANKS = "\t\n\r \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
NEARLY_BLANK = "\u200b\u180e\ufeff\u2010\xad"


def segments(html: str | bytes) -> PageSegments:
    return Segmenter().segments(tree(html))


def blocks(html: str) -> list[tuple[str, str]]:
    """The path and the text of each block."""
    found = segments(html)
    texts = [""] * len(found.block_paths)
    for block, text in zip(found.blocks, found.texts, strict=True):
        texts[block] += text
    return [(path, text.strip()) for path, text in zip(found.block_paths, texts, strict=True)]


def layout_of(element: Element) -> Element:
    parent = element.getparent()
    return element if parent is None or element.tag in LAYOUT else layout_of(parent)


def written(text: str) -> str:
    """A text as the serializer writes it: XML cannot hold all characters."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def assert_same_as_the_tree(root: Element) -> None:
    """The kernel finds what a walk through the tree finds."""
    found = Segmenter().segments(root)
    nodes = list(text_nodes(root))
    texts = [written(normalize(node.text)) for node in nodes]
    assert [text.strip() for text in found.texts] == texts
    assert found.lengths == [len(text) for text in texts]
    assert "".join(found.texts).strip() == written(visible_text(root))
    layouts = [layout_of(node.parent) for node in nodes]
    assert [found.block_paths[block] for block in found.blocks] == [tag_path(layout) for layout in layouts]
    numbers = {layout: number for number, layout in enumerate(dict.fromkeys(layouts))}
    assert found.blocks == [numbers[layout] for layout in layouts]
    places = [(tag_path(node.parent), text) for node, text in zip(nodes, texts, strict=True)]
    assert len(set(found.keys)) == len(set(places)) == len(set(zip(found.keys, places, strict=True)))
    paths = [path for path, _ in places]
    assert len(set(found.paths)) == len(set(paths)) == len(set(zip(found.paths, paths, strict=True)))


@given(html_bytes)
def test_segments_of_any_page_are_its_texts(html: bytes) -> None:
    root = parse(Page("http://a.example/", html))
    if not isinstance(root, Failure):
        assert_same_as_the_tree(root)


@given(
    st.lists(
        st.sampled_from([*BLANKS, *NEARLY_BLANK, "a", "é", "&amp;", "&lt;b&gt;", "&#13;", "<b>", "</b>"])
    )
)
def test_white_space_is_what_normal_form_takes_for_it(parts: list[str]) -> None:
    assert_same_as_the_tree(tree(f"<body><p>{''.join(parts)}</p></body>"))


def test_scripts_of_xhtml_are_not_read() -> None:
    name = "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd"
    doctype = f'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "{name}">'
    page = (
        f"{doctype}<html><body><script>if (a < b && c > d) '<p>no</p>';</script><p>yes<br/>and</body></html>"
    )
    assert blocks(page) == [("html/body/p", "yes and")]
    assert_same_as_the_tree(tree(page))


def test_a_block_is_the_own_text_of_a_layout_element() -> None:
    page = (
        "<body><div>before <b>the</b> table<table><tr><td>in <i>it</i></td></tr></table> behind</div></body>"
    )
    assert blocks(page) == [
        ("html/body/div", "before the table behind"),
        ("html/body/div/table/tr/td", "in it"),
    ]


def test_any_markup_parts_segments() -> None:
    page = "<body><div>one<b>two</b>three<!-- -->four<?x?>five<br>six <i>seven</i></div></body>"
    assert segments(page).texts == [" one", "two", "three", "four", "five", " six", " seven"]


def test_what_is_not_shown_is_no_text() -> None:
    page = (
        "<head><title>a</title></head><body><script>b</script><style>c</style><noscript><p>d</p></noscript>"
        "<iframe><script>f</script></iframe><noframes>g</noframes><noembed>h</noembed>e"
    )
    assert blocks(page) == [("html/body", "e")]


def test_the_same_text_at_another_path_is_another_segment() -> None:
    first, second, third = segments("<body><p>a</p><p><b>a</b></p><p>a</p></body>").keys
    assert first == third != second


def test_deep_layouts_are_read() -> None:
    deep = 1_500
    page = "<body>" + "<div>x" * deep + "</div>" * deep
    found = segments(page)
    assert len(found.block_paths) == deep
    assert found.block_paths[-1] == "html/body" + "/div" * deep


def test_keys_are_the_same_in_every_process() -> None:
    page = "<body><ul><li>One<li>Two &amp; three</ul>"
    script = (
        "from siteloom.templates.text_blocks import Segmenter; from siteloom.html.parser import parse;"
        f"from siteloom.core.model import Page; root = parse(Page('', {page.encode()!r}));"
        "print([*Segmenter().segments(root).keys, *Segmenter().segments(root).paths])"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    found = segments(page)
    assert told.strip() == str([*found.keys, *found.paths])


def test_lines_that_end_in_what_is_not_shown_part_no_texts() -> None:
    for hidden in (
        "<noscript><p>x</p><br></noscript>",
        "<template><div></div></template>",
        "<noscript><hr></noscript>",
    ):
        root = tree(f"<p>1{hidden}2")
        assert visible_text(root) == "12"
        assert_same_as_the_tree(root)
