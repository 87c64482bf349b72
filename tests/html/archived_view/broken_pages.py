"""Pages that a browser reads otherwise than lxml does, or that are hard to write as XML."""

from __future__ import annotations

BROKEN_PAGES: dict[str, str] = {
    "a table without rows' ends": (
        "<!DOCTYPE html><table><tr><td>Name<td>Blue Fern<tr><td>Phone<td>555 0100</table><p>after"
    ),
    "text and a block directly in a table": (
        "<!DOCTYPE html><table>loose<tr>in the row<td>cell</td>behind<div>a block</div></tr>below</table>"
    ),
    "tables in tables without ends": (
        "<table><tr><td>outer<table><tr><td>inner<table><tr><td>inmost</table>rest</table>end</table>"
    ),
    "cells without a table": "<div><tr><td>one</td><td>two</td></tr></div><tbody><tr><td>three",
    "a caption, a head and a foot out of order": (
        "<table><tfoot><tr><td>foot</tfoot>x<thead><tr><th>head</thead><caption>late</caption>"
        "<col><tr><td>body</table>"
    ),
    "a form around rows": (
        "<table><form action=/buy><tr><td>Price <input name=price value=3></td></form>"
        "<td>$ 12.99</tr></table>"
    ),
    "misnested formatting": "<p><b>bold <i>both</b> slanted</i> plain <u>under<p>line</u> end</p>",
    "blocks in paragraphs": "<p>before<div>inside</div>after<p>next<ul><li>item</ul>last</p>end",
    "links in links": (
        '<a href="/one">one <a href="/two">two <span>deep <a href="/three">three</a></span></a> rest</a>'
    ),
    "forms in forms": (
        "<form id=outer>outer<form id=inner>inner<input id=childNodes><img id=parentNode></form>"
        "after<button>go</button></form>end"
    ),
    "unclosed paragraphs and items": (
        "<p>one<p>two<ul><li>a<li>b<ul><li>c</ul>d<li>e</ul><dl><dt>k<dd>v<dt>l<dd>w"
    ),
    "several bodies and heads": (
        "<html><head><title>First</title></head><body class=one>one</body><head><title>Second</title></head>"
        "<body id=two>two</body></html>three<body>four</body>"
    ),
    "comments between texts": (
        "<p>one<!-- a --> two <!-- -- > -->three<!---->four<!--> five<!-- unclosed --!> six</p>"
    ),
    "scripts and styles between texts": (
        "<p>one<script>document.write('<b>x</b>')</script>two<style>p > b { color: red }</style>three"
        "<noscript><img src=x><p>no</p></noscript>four<template><i>t</i></template>five</p>"
    ),
    "line ends and odd blanks": (
        "<pre>\r\n first\r\nsecond\rthird&#13;fourth\t</pre><p>a\u00a0b&nbsp;c \u2003 d\u200be&shy;f\x0cg</p>"
    ),
    "characters outside the first plane": (
        "<p>\U0001f33f Blue \U0001f1e9\U0001f1ea Fern \U00020bb7\u91ce\u5bb6 &#x1F600;"
        "<b>\U0001f468\u200d\U0001f469</b> e\u0301te\u0301</p>"
    ),
    "names that XML cannot say": (
        '<o:p>office</o:p><a"b c"d=1>quoted</a"b><x<y>angle</x<y>'
        '<v:shape xmlns:v="urn:x" v:on=1>shape</v:shape>'
        "<p xmlns='urn:other' xml:lang=de 1a=2 @click=go() :href=x {{y}}>text</p>"
        "<custom-card>card</custom-card>"
    ),
    "characters that XML cannot say": (
        "<p title='a\x01b'>one\x01two&#1;three&#xFFFE;four&#xD800;five\ufffe</p><?php echo 1 ?>"
        "<![CDATA[ six ]]>seven<p>eight]]&gt;nine</p>&nosuch;&amp;amp;"
    ),
    "drawings and formulas": (
        "<p>before<svg viewBox='0 0 9 9'><defs><linearGradient id=g><stop offset=1></linearGradient></defs>"
        "<path d='M0 0'/><text>drawn</text><foreignObject><p>html</p></foreignObject></svg>between"
        "<math><mi>x</mi><mo>=</mo><mn>1</mn></math>after"
    ),
    "a drawing that is never closed": (
        "<svg width=9><path d='M0 0'><div>the rest <p>of the page</div><table><tr><td>x"
    ),
    "frames and old content": (
        "<p>one<iframe src=//other.example/><b>x</b></iframe>two<object data=x.swf><p>instead</p></object>"
        "<embed src=y>three<noframes><p>old</noframes><marquee>moving</marquee><plaintext>four<b>not bold"
    ),
    "fields and choices": (
        "<select><option>one<option selected>two<optgroup label=x><option>three</select>"
        "<textarea>\n first\n<b>second</textarea><label>Name <input type=password autofocus></label>"
        "<button><p>go</button><details open><summary>more</summary>hidden</details>"
    ),
}
"""Each by what is odd about it."""
