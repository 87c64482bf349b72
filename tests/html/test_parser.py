"""Any bytes give a tree or a Failure, soon, and with all that a browser would show."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.core.settings import ParseSettings
from siteloom.html.parser import PARSER, Element, parse
from siteloom.html.tag_scanner import name_hash, scan_tags
from siteloom.html.visible_text import visible_text
from tests.html.html_bytes import html_bytes, html_like
from tests.html.trees import tree

URL = "http://a.example/"
MEGABYTE = 1_000_000
ODD_BLANKS = "\x0b\x0c\x1c\x1d\x1e\x1f"  # white space that XML cannot hold
IMPLIED = {"html", "head", "body", "p"}  # elements that parsers add on their own


def reason(html: bytes, limits: ParseSettings = ParseSettings()) -> str:
    result = parse(Page(URL, html), limits)
    assert isinstance(result, Failure)
    assert result.url == URL
    return result.reason


def seconds_to_parse(html: bytes) -> float:
    parse(Page(URL, b"<p></body>x"))  # compiles the scanner
    start = time.process_time()
    parse(Page(URL, html))
    return time.process_time() - start


@given(html_bytes, st.none() | st.sampled_from(["utf-8", "utf-16", "shift_jis", "iso-2022-jp", "bogus"]))
def test_any_bytes_give_a_tree_or_a_failure(html: bytes, charset: str | None) -> None:
    result = parse(Page(URL, html, charset=charset))
    assert isinstance(result, Element | Failure)


@given(html_like)
def test_the_same_bytes_give_the_same_tree(html: bytes) -> None:
    first, second = parse(Page(URL, html)), parse(Page(URL, html))
    if isinstance(first, Failure):
        assert first == second
    else:
        assert isinstance(second, Element)
        assert [(e.tag, e.text, e.tail, e.items()) for e in first.iter("*")] == [
            (e.tag, e.text, e.tail, e.items()) for e in second.iter("*")
        ]


@given(html_like.map(lambda html: html.replace(b"\0", b"").decode("utf-8", "ignore").encode()))
def test_the_parser_sees_no_tag_that_the_scanner_does_not(html: bytes) -> None:
    """Or else the limits, which the scanner checks, would not hold for the parser."""
    root = parse(Page(URL, html, charset="utf-8"))
    if isinstance(root, Failure):
        return
    tags = scan_tags(html.translate(bytes.maketrans(ODD_BLANKS.encode(), b" " * len(ODD_BLANKS))))
    scanned = set(tags.name[~tags.is_end].tolist())
    seen = {str(element.tag) for element in root.iter("*")} - IMPLIED
    assert {int(name_hash(name)) for name in seen} <= scanned


# White space that XML cannot hold


def everything(root: Element) -> str:
    texts = [text for node in root.iter() for text in (node.text, node.tail)]
    values = [value for element in root.iter("*") for value in element.attrib.values()]
    names = [str(name) for element in root.iter("*") for name in (element.tag, *element.attrib)]
    return "|".join([*(text or "" for text in texts), *values, *names])


odd_blanks = st.sampled_from(ODD_BLANKS)
references = st.builds(
    lambda sign, zeros, end: f"{sign[0]}{'0' * zeros}{sign[1]}{end}",
    st.builds(
        lambda blank, form: (form[0], format(ord(blank), form[1])),
        odd_blanks,
        st.sampled_from([("&#", "d"), ("&#x", "x"), ("&#X", "X"), ("&#x", "X")]),
    ),
    st.integers(0, 9),
    st.sampled_from([";", ""]),
)


@given(html_like, st.lists(odd_blanks | references), html_like)
def test_no_tree_holds_white_space_that_xml_cannot(before: bytes, blanks: list[str], after: bytes) -> None:
    root = parse(Page(URL, before + "".join(blanks).encode() + after, charset="windows-1252"))
    if not isinstance(root, Failure):
        assert not set(everything(root)) & set(ODD_BLANKS)


@given(odd_blanks | references, st.sampled_from(["", " ", "G", "<b>", "&", "&#60;"]))
def test_it_becomes_a_blank_and_what_is_around_it_stays(blank: str, behind: str) -> None:
    html = "<p title='x%s%sy'>x%s%sy"
    odd, plain = (tree(html % (text, behind, text, behind)) for text in (blank, " "))
    assert everything(odd) == everything(plain)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a&#12b", "a b"),
        ("a&#0000012;b", "a b"),
        ("a&#x1F;b", "a b"),
        ("a&#123;b&#128;", "a{b€"),
        ("a&#112;b&#312;&#1200;", "apbĸҰ"),
        ("a&#xC1;b&#x1C1;", "aÁbǁ"),
        ("&amp;#12;&#9;&#10;&#65;", "&#12; A"),
        ("#12;#&#32;&#35;12", "#12;# #12"),
        ("#" * 3_000 + "&#12;b", "#" * 3_000 + " b"),
    ],
)
def test_only_references_to_white_space_are_replaced(html: str, text: str) -> None:
    assert visible_text(tree(f"<p>{html}")) == text


# What follows the end of the document


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (b"<html></html><head><title>t</title></head><body><p>x", "x"),
        (b"<html><body><p>a</p></body></html><p>b</p>", "a b"),
        (b"<body>a</body>b</html>c", "abc"),
        (b"<body><p>a</body></html>\n<div>b</div></body></html>\n<!-- c -->", "a b"),
        (b"<p>a</BODY\n>b</HTML/>c", "abc"),
        (b"<p>a</body x='</html>'>b", "ab"),
        (b"<p>a</p></html><!-- end --><table><tr><td>b</table>", "a b"),
    ],
)
def test_content_after_an_early_end_stays(html: bytes, text: str) -> None:
    assert visible_text(tree(html)) == text


def test_a_head_after_an_early_end_is_still_the_head() -> None:
    root = tree(b"<html></html><head><title>t</title></head><body class=b><p>x")
    assert root.xpath("/html/head/title/text()") == ["t"]
    assert root.xpath("/html/body[@class='b']/p/text()") == ["x"]


@pytest.mark.parametrize(
    "html",
    [
        b"<html><body><p>a</p></body></html>",
        b"<html><body><p>a</p></body>\n</html>\n<!-- made in 3 ms -->\n",
        b"<body><p>a</p></html x",
    ],
)
def test_nothing_changes_where_the_end_is_the_end(html: bytes) -> None:
    root = tree(html)
    assert [element.tag for element in root.iter("*")] == ["html", "body", "p"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (b"<p>a <</body>b>c</p>", "a <b>c"),
        (b"<p>a &</body>amp; b", "a &amp; b"),
        (b"<p>a <</html>script>b</p>", "a <script>b"),
        (b"<p>a &#3</body>8; b", "a \x038; b"),
    ],
)
def test_taking_an_early_end_out_makes_no_new_markup(html: bytes, text: str) -> None:
    root = tree(html)
    assert [element.tag for element in root.iter("*")] == ["html", "body", "p"]
    assert root.xpath("string(//p)") == text


@pytest.mark.parametrize(
    "html",
    [
        b"<script>var a = '</body>';</script><p>x",
        b"<!-- </body></html> --><p>x",
        b"<textarea></body></textarea><p title='</html>'>x",
    ],
)
def test_an_end_that_is_no_tag_stays_as_it_is(html: bytes) -> None:
    root = tree(html)
    assert root.xpath("string(//p)") == "x"
    everything = "".join(
        map(str, root.xpath("//script/text() | //comment() | /comment() | //textarea/text() | //@title"))
    )
    assert "</body>" in everything or "</html>" in everything


words_and_ends = st.lists(
    st.sampled_from(
        [b"<p>", b"</p>", b"<div>", b"</div>", b"<b>", b"</body>", b"</html>", b"</body></html>", b"<body>"]
    )
    | st.integers(1, 99).map(lambda number: b" w%d " % number),
    max_size=20,
)


@given(words_and_ends)
def test_no_word_is_lost_wherever_the_document_ends(parts: list[bytes]) -> None:
    words = [part.decode().strip() for part in parts if part.startswith(b" w")]
    if words:
        assert visible_text(tree(b"".join(parts))).split() == words


# Limits


def test_a_page_over_the_limit_is_not_parsed() -> None:
    limits = ParseSettings(max_bytes=10)
    assert reason(b"<p>12345678", limits) == "page too large"
    assert isinstance(parse(Page(URL, b"<p>1234567"), limits), Element)


def test_a_page_of_too_many_tags_is_not_parsed() -> None:
    limits = ParseSettings(max_tags=3)
    assert reason(b"<p>" * 4, limits) == "too many tags"
    assert isinstance(parse(Page(URL, b"<p>" * 3), limits), Element)


def test_tags_are_counted_in_the_text_and_not_in_the_bytes() -> None:
    html = "<p>".encode("utf-16-le") * 4
    assert reason(b"\xff\xfe" + html, ParseSettings(max_tags=3)) == "too many tags"


def test_a_page_nested_too_deeply_is_a_failure() -> None:
    assert reason(b"<div>" * 3_000) == "nested too deeply"
    assert reason(b"<div>" * 3_000 + b"x" + b"</div>" * 3_000) == "nested too deeply"


def test_a_page_nested_deeply_is_parsed() -> None:
    root = tree(b"<div>" * 1_000 + b"x")
    assert visible_text(root) == "x"
    assert len(root.findall(".//div")) == 1_000


@pytest.mark.parametrize("html", [b"", b"  \n", b"<!-- x -->", b"<!doctype html>", b"\xef\xbb\xbf", b"</p"])
def test_a_page_of_nothing_is_a_failure(html: bytes) -> None:
    assert reason(html) == "empty page"


@pytest.mark.parametrize(
    "html",
    [
        b"<a " + b" ".join(b"a%d" % number for number in range(MEGABYTE // 7)) + b">x</a>",
        b"<p><</body>a " + b" ".join(b"a%d" % number for number in range(MEGABYTE // 7)) + b">x</a>",
        b"<p" + b" a='b'" * (MEGABYTE // 6) + b">",
    ],
    ids=["attributes", "attributes behind an early end", "the same attribute"],
)
def test_an_attribute_bomb_does_not_go_off(html: bytes) -> None:
    assert seconds_to_parse(html) < 2


def test_a_tag_of_a_megabyte_of_attributes_is_a_failure() -> None:
    html = b"<a " + b" ".join(b"a%d" % number for number in range(MEGABYTE // 7)) + b">x</a>"
    assert len(html) > 900_000
    assert reason(html) == "too many attributes in one tag"


def test_a_large_page_of_ordinary_tags_is_parsed() -> None:
    html = b"<p class=a id=b title='c d'>x</p>\n" * 10_000
    assert len(tree(html).findall(".//p")) == 10_000


@pytest.mark.parametrize(
    "html",
    [
        b"<div>" * 200_000,
        b"<b><i>" * 100_000,
        b"<p></body>" * 100_000,
        b"<table><tr><td>" * 60_000,
        b"&amp;" * 200_000,
        b"<" * 900_000,
        b"#" * 10 * MEGABYTE,
        b"&#" + b"0" * MEGABYTE,
        b"&#0" * 300_000,
        b"<!--" * 250_000,
        b"</p>" * 250_000,
        b"<a>" * 300_000,
        b"\0" * MEGABYTE,
        b"\xff" * MEGABYTE,
        (b"<a " + b" ".join(b"a%d" % number for number in range(1_000)) + b">") * 100,
    ],
    ids=lambda html: html[:12].decode("latin-1"),
)
def test_a_hostile_page_is_parsed_or_refused_soon(html: bytes) -> None:
    assert seconds_to_parse(html) < 5  # on a slow machine; quadratic code takes minutes


BILLION_LAUGHS = (
    b'<!DOCTYPE html [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    + b"]><p>&a11;</p>"
)


@pytest.mark.parametrize(
    "html",
    [
        BILLION_LAUGHS,
        b'<?xml version="1.0"?>' + BILLION_LAUGHS,
        b'<!DOCTYPE html [<!ENTITY a SYSTEM "file:///etc/passwd">]><p>&a;</p>',
        b'<!DOCTYPE html SYSTEM "file:///etc/passwd"><p>&a;</p>',
    ],
)
def test_entities_that_a_page_defines_mean_nothing(html: bytes) -> None:
    root = tree(html)
    text = str(root.xpath("string(//p)"))
    assert text in ("&a11;", "&a;")
    assert len(visible_text(root)) < 2_000


@example(b"<p>\0</p>")
@given(st.binary(max_size=30))
def test_nul_bytes_do_not_end_the_page(between: bytes) -> None:
    html = b"<div>" + between.replace(b"<", b"").replace(b"&", b"") + b"\0</div><p>after</p>"
    assert tree(html, "windows-1252").xpath("string(//p)") == "after"


def test_the_parser_is_named_with_its_versions() -> None:
    assert PARSER.startswith("lxml ")
    assert "libxml2 2." in PARSER


def test_a_failure_can_cross_processes() -> None:
    failure = parse(Page(URL, b""))
    assert pickle.loads(pickle.dumps(failure)) == failure
