"""Stylesheets that load nothing but what they are allowed to."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.html.archived_view.stylesheets import harmless_css

GONE = "-siteloom-removed"


def nothing(address: str) -> str | None:
    return None


@pytest.mark.parametrize(
    ("css", "harmless"),
    [
        ("p { color: red }", "p { color: red }"),
        ("p { color: rgb(1, 2, 3) }", "p { color: rgb(1, 2, 3) }"),
        ("a{x:url(b)}", 'a{x:url("data:,")}'),
        ("a{x:URL( 'b' )}", 'a{x:url("data:,")}'),
        ('a{x:\\75 \\52L("b")}', 'a{x:url("data:,")}'),
        ("a{x:\u00d7url(b)}", 'a{x:\u00d7url("data:,")}'),
        ("a{x:url(#shade)}", 'a{x:url("#shade")}'),
        ("a{x:url(b", 'a{x:url("data:,")'),
        ('a{x:url("b', 'a{x:url("data:,")'),
        ("/* url(b) */ a", "/* url(b) */ a"),
        ("a::after { content: 'url(b)' }", "a::after { content: 'url(b)' }"),
        ("a{content:'\nx:url(b)'}", "a{content:'\nx:url(\"data:,\")'}"),
        ("@import 'b.css' screen; p {}", "/**/ p {}"),
        ("@import/**/url(b.css);p{}", "/**/p{}"),
        ("@\\69mport 'b.css';p{}", "/**/p{}"),
        ("@import", "/**/"),
        # What stands around a rule that is left out does not grow together to another.
        ("@@import;import 'b.css'", "@/**/import 'b.css'"),
        ("a{x:u@import;rl(b)}", "a{x:u/**/rl(b)}"),
        ("a{x:u@import 'c.css';rl('b')}", "a{x:u/**/rl('b')}"),
        ("a{x:image-@import;set('b' 1x)}", "a{x:image-/**/set('b' 1x)}"),
        ("/@import;* a */ url(b)", '//**/* a */ url("data:,")'),
        ("url(@import;b)", 'url("data:,")'),
        ("a{x:image-set('b' 1x)}", "a{x:-siteloom-removed('b' 1x)}"),
        ("a{width:expression(b())}", "a{width:-siteloom-removed(b())}"),
        ("a{behavior:url(b)}", 'a{-siteloom-removed:url("data:,")}'),
        ("a{-moz-binding: url(b)}", 'a{-siteloom-removed: url("data:,")}'),
        ("@font-face{src:url(a)} p{x:url(b)}", f'@font-face{{src:local("{GONE}")}} p{{x:url("data:,")}}'),
        ("a:LINK, a:visited {}", "a[data-siteloom-href], a:visited {}"),
        ("a:not(:any-link) {}", "a:not([data-siteloom-href]) {}"),
        ("a[href^='http'] b[title] {}", "a[data-siteloom-href^='http'] b[title] {}"),
        ("@media print { a { x: url(b) } }", '@media print { a { x: url("data:,") } }'),
    ],
)
def test_without_an_archive(css: str, harmless: str) -> None:
    assert harmless_css(css, nothing) == harmless


@pytest.mark.parametrize(
    ("css", "harmless"),
    [
        ("a{x:url(b.png)}", 'a{x:url("/kept/b.png")}'),
        ("a{x:url('b\\'.png')}", 'a{x:url("/kept/b\'.png")}'),
        ("a{x:url(b\\).png)}", 'a{x:url("/kept/b).png")}'),
        ("a{x:url('b\".png')}", 'a{x:url("/kept/b\\22 .png")}'),
        ("@import url( b.css ) screen and (color);", '@import url("/kept/b.css") screen and (color);'),
        ("@IMPORT 'b.css' layer(x);", '@import url("/kept/b.css") layer(x);'),
    ],
)
def test_with_an_archive(css: str, harmless: str) -> None:
    assert harmless_css(css, lambda address: f"/kept/{address}") == harmless


CSS = st.lists(
    st.sampled_from(
        [
            *"url( URL( \\75rl( @import ) ; { } ' \" \\ /* */ x y.css a: image-set( src( # , é \\a".split(),
            *"u rl( @ import".split(),
            " ",
            "\n",
            "\r\n",
        ]
    ),
    max_size=15,
).map("".join)


@given(CSS)
def test_what_is_harmless_stays_as_it_is(css: str) -> None:
    once = harmless_css(css, nothing)
    asked: set[str] = set()

    def ask(address: str) -> str | None:
        asked.add(address)
        return None

    assert harmless_css(once, ask) == once
    assert asked <= {"data:,"}


@pytest.mark.parametrize(
    "piece", ["url(", "@import ", "/*", "'", '"\\', "\\7", "u", "@", "url('", "a(", "/* */", "@import/*"]
)
def test_time_is_linear(piece: str) -> None:
    css = piece * (1_000_000 // len(piece))
    start = time.process_time()
    harmless_css(css, nothing)
    assert time.process_time() - start < 10


def test_names_are_seen_however_they_are_written() -> None:
    for letter in "url":
        for escape in (f"\\{ord(letter):x} ", f"\\{ord(letter):06X}", f"\\{ord(letter.upper()):x}\t"):
            css = f"a{{x:{'url'.replace(letter, escape)}(b)}}"
            assert re.search(r'url\("data:,"\)', harmless_css(css, nothing)), css
