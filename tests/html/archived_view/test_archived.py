"""Archived pages as they are shown: the same elements and texts, and nothing that acts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.core.model import Failure, Page
from siteloom.html.archived_view.allowed_markup import (
    MATHML_ATTRIBUTES,
    MATHML_ELEMENTS,
    SVG_ATTRIBUTES,
    SVG_ELEMENTS,
)
from siteloom.html.archived_view.sanitizer import NEUTRAL, archived_css, archived_doctype, archived_tree
from siteloom.html.node_paths import elements_in_order
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import FRAMES, NOT_CONTENT
from tests.html.archived_view.broken_pages import BROKEN_PAGES

URL = "https://shop.example/p/1"
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

TAGS = """
    <table> <tr> <td> </td> </tr> </table> <p> </p> <div> </div> <a~href=x> </a> <li> <ul> </ul> <b> </b>
    <i> </i> <form> </form> <input> <br> <br/> <script> </script> <style> </style> <noscript> </noscript>
    <svg> </svg> <math> </math> <foreignObject> <title> </title> <head> </head> <body> </body> </html>
    <!-- --> <!--> <? ?> <![CDATA[ ]]> <iframe> </iframe> <object> </object> <o:p> </o:p> <a"b> <textarea>
    </textarea> <select> <option> </select> <frameset> <template> </template> <plaintext> &amp; &lt; &#1;
    &#xFFFE; &#13; & < > " ' <p~xmlns=a~xmlns:b=c~b:d=e> <base~href=z> <link~rel=stylesheet~href=y>
    <img~id=a~src=b~onerror=c~@d=e~f"g=h~style='x:url(y)'>
"""
PIECES = st.one_of(
    st.sampled_from([*TAGS.replace("~", "\t").split(), "\x01", "\ufffe", "\u00a0", "\r\n", "\U0001f33f"]),
    st.text(max_size=8),
)
MARKUP = st.lists(PIECES, max_size=25).map("".join)


def tree(html: str | bytes) -> Element:
    page = Page(URL, html) if isinstance(html, bytes) else Page.from_text(URL, html)
    root = parse(page)
    assert not isinstance(root, Failure)
    return root


def shown(html: str, *, kept: bool = False, remote: bool = False) -> Element:
    """The page as a strict reader of XML sees it."""

    def resource(url: str) -> str | None:
        return f"/kept?{url}" if kept else None

    return etree.fromstring(archived_tree(tree(html), URL, resource=resource, remote=remote), _strict())


def _strict() -> etree.XMLParser:
    return etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True)


def numbered_ones(shown_root: Element) -> list[Element]:
    """The elements that are the page's own: one more makes its links look like links."""
    (added,) = (
        element for element in shown_root.iter(etree.Element) if "data-siteloom" not in element.attrib
    )
    assert added is shown_root[0]
    return [element for element in shown_root.iter(etree.Element) if element is not added]


def texts(element: Element) -> list[str]:
    return [text for text in [element.text, *(child.tail for child in element)] if text]


def assert_same_texts(root: Element) -> None:
    """Every element is there under its number, with its texts; or it stands in one that is not shown."""
    xml = etree.fromstring(archived_tree(root, URL, resource=lambda _: None), _strict())
    by_number = {int(element.get("data-siteloom") or ""): element for element in numbered_ones(xml)}
    elements = elements_in_order(root)
    left_out = set(_insides(root))
    assert set(by_number) == {n for n, element in enumerate(elements) if element not in left_out}
    assert list(by_number) == sorted(by_number)
    for number, element in by_number.items():
        original = elements[number]
        if original.tag not in NOT_CONTENT | FRAMES:
            assert texts(element) == [NOT_XML.sub("\ufffd", text) for text in texts(original)]
        parent, original_parent = element.getparent(), original.getparent()
        if parent is not None and original_parent is not None:
            assert elements[int(parent.get("data-siteloom") or "")] is original_parent


def _insides(root: Element) -> Iterator[Element]:
    for hidden in root.iter(*(NOT_CONTENT | FRAMES)):
        yield from hidden.iterdescendants(etree.Element)


@pytest.mark.parametrize("html", BROKEN_PAGES.values(), ids=BROKEN_PAGES)
def test_broken_pages_keep_their_texts(html: str) -> None:
    assert_same_texts(tree(html))


@given(MARKUP)
def test_any_markup_keeps_its_texts(html: str) -> None:
    root = parse(Page.from_text(URL, html))
    if not isinstance(root, Failure):
        assert_same_texts(root)


@given(st.binary(max_size=200))
def test_any_bytes_become_xml(body: bytes) -> None:
    root = parse(Page(URL, b"<p>" + body))
    if not isinstance(root, Failure):
        assert_same_texts(root)


def test_deep_and_large_pages() -> None:
    assert_same_texts(tree("<div>" * 2_000 + "deep"))
    assert_same_texts(tree("<svg>" * 1_000 + "<g>" * 900 + "<p>x"))
    large = tree("<p>" + "x" * 12_000_000)
    assert len(archived_tree(large, URL, resource=lambda _: None)) > 12_000_000


HOSTILE = """
<html onload=steal()><head>
<base href="https://shop.example/base/"><meta http-equiv=refresh content="0;url=https://evil.example/">
<link rel=stylesheet href=https://evil.example/a.css><link rel=prefetch href=https://evil.example/b>
<style>@import "https://evil.example/c.css"; p { background: url(https://evil.example/d) }</style>
<script src=https://evil.example/e.js></script>
</head><body onclick=steal() background=https://evil.example/f>
<a href="javascript:steal()" ping=https://evil.example/g target=_top>link</a>
<a href="java&#10;script:steal()">link</a><a href="data:text/html,<script>steal()</script>">link</a>
<form action=https://evil.example/h>
<input type=image src=https://evil.example/i formaction=javascript:steal()>
<input type=password name=password><button formaction=https://evil.example/j>go</button></form>
<iframe src=https://evil.example/k srcdoc="<script>steal()</script>"></iframe>
<object data=https://evil.example/l><embed src=https://evil.example/m></object>
<img src=https://evil.example/n srcset="https://evil.example/o 2x" onerror=steal()
     style="background:\\75rl(https://evil.example/p)">
<video src=https://evil.example/q poster=https://evil.example/r autoplay><source src=https://evil.example/s></video>
<svg onload=steal()><script>steal()</script><use xlink:href=https://evil.example/t#x />
<image href=https://evil.example/u /><a xlink:href=javascript:steal()><text fill="url(https://evil.example/v)">x</text></a>
<animate attributeName=href to=javascript:steal() /></svg>
<div contenteditable autofocus accesskey=x tabindex=1 data-siteloom=99 data-siteloom-href=x is=evil>x</div>
<math href=javascript:steal()><mi xlink:href=https://evil.example/w>x</mi></math>
</body></html>
"""


def test_nothing_of_a_hostile_page_acts() -> None:
    root = shown(HOSTILE)
    tags = {etree.QName(element).localname for element in root.iter(etree.Element)}
    assert not tags & {"script", "iframe", "object", "embed", "base", "meta", "link", "animate", "noscript"}
    for element in root.iter(etree.Element):
        for name, value in element.items():
            if not name.startswith("data-siteloom-"):
                assert "evil" not in value
                assert "steal" not in value
            assert not name.startswith("on")
            assert name not in {
                "action",
                "formaction",
                "ping",
                "target",
                "srcset",
                "srcdoc",
                "name",
                "accesskey",
            }
    links = [element.get("href") for element in root.iter(XHTML + "a")]
    assert links == [None] * 3
    assert [element.get("type") for element in root.iter(XHTML + "input")] == ["image", "text"]
    assert "evil" not in "".join(root.itertext(XHTML + "style"))
    numbers = [element.get("data-siteloom") for element in numbered_ones(root)]
    assert len(set(numbers)) == len(numbers)


def test_controls_belong_to_no_form() -> None:
    root = shown(BROKEN_PAGES["forms in forms"])
    assert [element.get("form") for element in root.iter(XHTML + "input", XHTML + "button")] == ["", ""]
    assert [element.get("id") for element in root.iter(XHTML + "img")] == [None]


def test_images_and_stylesheets_of_the_archive_are_loaded() -> None:
    html = (
        "<base href=/media/><link rel=stylesheet href=' a.css ' media=print>"
        "<link rel='alternate stylesheet' href=b.css>"
        "<style>p { background: url(c.png) }</style><img src='d 1.png#x'><table background=e.gif><tr><td>"
        "<p style='background:URL(\"f.png\")'>x<svg><image xlink:href=g.png /></svg>"
        "<img src=data:image/gif;base64,AA>"
    )
    root = shown(html, kept=True)
    base = "/kept?https://shop.example/media/"
    links = [(link.get("href"), link.get("media")) for link in root.iter(XHTML + "link")]
    assert links == [(base + "a.css", "print")]
    assert [style.text for style in root.iter(XHTML + "style")][
        1
    ] == f'p {{ background: url("{base}c.png") }}'
    assert [image.get("src") for image in root.iter(XHTML + "img")] == [
        base + "d%201.png",
        "data:image/gif;base64,AA",
    ]
    assert [table.get("background") for table in root.iter(XHTML + "table")] == [base + "e.gif"]
    assert [p.get("style") for p in root.iter(XHTML + "p")] == [f'background:url("{base}f.png")']
    assert [image.get("href") for image in root.iter(SVG + "image")] == [base + "g.png"]


def test_the_web_is_loaded_from_only_if_allowed() -> None:
    html = "<img src=/a.png><img src=ftp://x.example/b.png><img src=javascript:x()><img src=http://[>"
    sources = [image.get("src") for image in shown(html, remote=True).iter(XHTML + "img")]
    assert sources == ["https://shop.example/a.png", None, None, None]
    assert not any(image.get("src") for image in shown(html).iter(XHTML + "img"))


def test_what_looks_stays() -> None:
    look = "class=a id=b style='color:red' title='x &quot; y' data-c=d aria-label=e hidden"
    paragraph = shown(f"<p {look}>x<font color=blue>y</font>")[1][0]
    assert dict(paragraph.items()) == {
        "data-siteloom": "2",
        "class": "a",
        "id": "b",
        "style": "color:red",
        "title": 'x " y',
        "data-c": "d",
        "aria-label": "e",
        "hidden": "",
    }
    assert paragraph[0].tag == XHTML + "font"
    assert paragraph[0].get("color") == "blue"


@pytest.mark.parametrize(
    ("look", "style"),
    [
        ("link=#0000ee", "--siteloom-link:#0000ee;"),
        ("link=003366 style='color:red'", "--siteloom-link:#003366;color:red"),
        ("link='red;x:y'", None),
    ],
)
def test_the_color_of_links(look: str, style: str | None) -> None:
    assert shown(f"<body {look}><a href=x>x</a>")[1].get("style") == style


def test_values_in_attributes_that_are_not_shown_are_told() -> None:
    root = shown(
        "<meta name=price content=12><a href='mailto:a@b.example'>x</a><iframe src=/film width=400></iframe>"
    )
    assert next(root.iter(XHTML + NEUTRAL)).get("data-siteloom-content") == "12"
    assert [e.get("data-siteloom-href") for e in root.iter(XHTML + "a")] == ["mailto:a@b.example"]
    film = list(root.iter(XHTML + NEUTRAL))[-1]
    assert film.get("data-siteloom-src") == "/film"
    assert "width:400px" in (film.get("style") or "")


def test_drawings_have_their_names_back() -> None:
    root = shown("<svg viewBox='0 0 1 1'><linearGradient id=g gradientUnits=x /><path fill='url(#g)'/></svg>")
    drawing = root[1][0]
    assert [etree.QName(e).localname for e in drawing.iter()] == ["svg", "linearGradient", "path"]
    assert drawing.get("viewBox") == "0 0 1 1"
    assert drawing[1].get("fill") == 'url("#g")'


def test_names_of_attributes_are_whole() -> None:
    for names in (SVG_ATTRIBUTES, SVG_ELEMENTS, MATHML_ATTRIBUTES, MATHML_ELEMENTS):
        assert all(re.fullmatch("[A-Za-z0-9]+(-[a-z]+)*", name) for name in names.values())
    root = shown("<svg><text font-stretch=condensed letter-spacing=2 text-rendering=auto>x")
    (text,) = root.iter(SVG + "text")
    assert {"font-stretch", "letter-spacing", "text-rendering"} <= set(text.attrib)


def test_copies_of_drawings_are_few() -> None:
    def copied(html: str) -> list[str]:
        return [use.get("href") or "" for use in shown(html).iter(SVG + "use")]

    icon = "<symbol id=i><path d=x /></symbol>"
    assert copied(f"<svg>{icon}<use xlink:href=#i /><use href=#gone /><use href=x.svg#i /></svg>") == [
        "#i",
        "",
        "",
    ]
    nested = "".join(f"<g id=g{n}><use href=#g{n - 1} /><use href=#g{n - 1} /></g>" for n in range(1, 30))
    assert not any(copied(f"<svg>{icon}{nested}</svg>")[2:])
    assert copied("<svg><use id=u href=#u /></svg>") == [""]
    large = "<g id=large>" + "<path d=x />" * 1_000 + "</g>"
    assert 0 < sum(map(bool, copied(f"<svg>{large}{'<use href=#large />' * 1_000}</svg>"))) < 100


def test_a_drawing_that_swallowed_the_page_is_none() -> None:
    root = shown(BROKEN_PAGES["a drawing that is never closed"])
    assert root[1][0].tag == XHTML + NEUTRAL
    assert next(root.iter(XHTML + "td")).text == "x"


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (
            "",
            '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.0 Transitional//EN" "http://www.w3.org/TR/REC-html40/loose.dtd">',
        ),
        ("<!doctype html>", "<!DOCTYPE html>"),
        ("<!DOCTYPE foo>", ""),
        (
            '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01//EN">',
            '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01//EN">',
        ),
        ("<!DOCTYPE html PUBLIC '\"><script>x</script>'>", ""),
        ('<!DOCTYPE html SYSTEM "about:legacy-compat">', '<!DOCTYPE html SYSTEM "about:legacy-compat">'),
    ],
)
def test_doctypes(declared: str, told: str) -> None:
    assert archived_doctype(tree(declared + "<p>x")) == told


def test_stylesheets_start_from_their_own_address() -> None:
    css = archived_css(
        "@import 'b.css'; a { x: url(c.png) }", "https://cdn.example/s/a.css", resource=lambda url: url
    )
    assert css == '@import url("https://cdn.example/s/b.css"); a { x: url("https://cdn.example/s/c.png") }'
