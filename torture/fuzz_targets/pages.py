"""Any bytes as a page: its tree, its signature, its records, and how it is clustered, cleaned and shown."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice, product
from typing import Any, get_args

from lxml import etree

from siteloom.apps.demo.sites import guide_site
from siteloom.core.errors import SiteloomError, UnreadablePage
from siteloom.core.model import Attribute, Example, Failure, Footprint, Page, Record, ValueType
from siteloom.core.values import typed_value
from siteloom.core.values.type_inference import infer_type
from siteloom.core.values.value_types import to_plain
from siteloom.extraction.extractor import Extractor
from siteloom.extraction.main_text import html_of, remove_template, text_of
from siteloom.extraction.record_rows import record_row
from siteloom.extraction.search_documents import common_segments, page_document
from siteloom.html.archived_view.sanitizer import archived_doctype, archived_tree
from siteloom.html.archived_view.stylesheets import harmless_css
from siteloom.html.embedded_data import embedded_records
from siteloom.html.encoding import declared_encoding, decode, in_utf8
from siteloom.html.node_paths import (
    TextPosition,
    elements_in_order,
    elements_with_ids,
    find,
    node_path,
    tag_path,
    texts_from,
)
from siteloom.html.parser import Element, parse
from siteloom.html.tag_scanner import scan_tags
from siteloom.html.visible_text import HIDDEN, normalize, text_nodes, visible_text
from siteloom.learning.induction.learner import learn
from siteloom.learning.induction.learning_session import Method
from siteloom.maintenance.change_tests import monitor
from siteloom.maintenance.repair_result import Outcome
from siteloom.maintenance.watched_pages import Watch, watch
from siteloom.maintenance.wrapper_repair import relearn
from siteloom.templates.clustering.methods import METHODS, cluster
from siteloom.templates.essential_paths import page_paths, path_rows, tag_rows
from siteloom.templates.signature import SIGNATURE_BYTES, scan, signature
from siteloom.templates.template_text import SegmentTable
from siteloom.templates.url_patterns import matches
from siteloom.wrappers.exports import standalone_extractor
from siteloom.wrappers.exports.standalone_matcher import signature as slow_signature
from siteloom.wrappers.exports.xpath_json import as_texts, wrapper_document
from siteloom.wrappers.matching import NamedWrapper
from siteloom.wrappers.rule_features import AttributeRules, Feature, Rule, RuleSupport, ValuePart
from siteloom.wrappers.wrapper import Wrapper
from torture.fuzz_targets.cutting import Cutter
from torture.fuzz_targets.target import Target, is_writable

URL = "http://a.example/page/1"
CHARSETS = (
    *(None, "utf-8", "utf-16", "utf-16le", "windows-1252", "shift_jis", "iso-2022-jp", "gb18030", "big5"),
    *("euc-kr", "koi8-r", "x-user-defined", "replacement", "utf-7", "bogus", ""),
)

# As many nodes as can be looked at while a fuzzer still makes hundreds of runs a second.
_SOME = 60

WORDS = [
    word.replace("~", " ").encode()
    for word in """
    <html> </html> <head> </head> <body> </body> <title> </title> <p> </p> <div~id="x"> </div> <b> </b>
    <i> </i> <a~href="/x?a=1&b=2"> </a> <table> <tr> <td> </table> <form> </form> <input~type=hidden> <br/>
    </br> <ul> <li> <select> <option> <script> </script> <style> </style> <textarea> </textarea> <noscript>
    </noscript> <template> </template> <iframe> <svg> <math> <plaintext> <xmp> <frameset> <frame>
    <!-- --> --!> <!--> <![CDATA[ ]]> <!DOCTYPE~html> <?xml~version="1.0"~encoding="utf-16"?>
    <meta~charset=utf-16> <meta~http-equiv=content-type~content="text/html;charset=koi8-r"> <base~href=
    <link~rel=canonical~href= &amp; &#0; &#x80; &#xD800; &#12; &nbsp; &lt class= id= name= style= href=
    itemprop= property=og: xmlns: o:p onload= javascript: data: url( @import 0x <img~src= <object> <embed>
    """.split()
] + [
    b"\x00",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\x1b$B",
    b"\xed\xa0\x80",
    b"\xc2\xa0",
    b"\x85",
    b"\x01",
    b"\xef\xbf\xbe",
]

PAGES = (
    b"",
    b"<p>Price: <b>$ 12.99</b> &amp; more</p>",
    (
        b"<!DOCTYPE html><html><head><meta charset=windows-1252><title>T\xe9</title></head>"
        b"<body id=a class='b c'><a href=/x name=a>l</a><table><tr><td>1<td>2</table></body></html>"
    ),
    b"<table>loose<tr><div>a</div><td>b</table><p><b>x<i>y</b>z</i><p>n<form><form>m</form>",
    b"<svg><path d='M0'/><foreignObject><p>h</svg><math><mi>x</math><template>t</template>",
    b"<p>a</body></html><p>b<script>'</body>'</script><!-- c --><textarea><b></textarea>d",
    b"\xff\xfe" + "<p>wide \u20ac</p>".encode("utf-16-le"),
    b"<frameset><frame src=a><noframes>old</noframes></frameset><plaintext>x<b>y",
)


def some_pages() -> list[bytes]:
    """Seeds: small pages, and cut parts of larger ones."""
    whole = [_guide()[0].page.html, _guide()[-1].page.html]
    return [bytes([0]) + html for html in (*PAGES, *whole, *(html[:1_500] for html in whole))]


def _all_pages() -> tuple[bytes, ...]:
    return (*PAGES, _guide()[0].page.html, _guide()[-1].page.html)


@cache
def _guide() -> tuple[Any, ...]:
    pages = guide_site()
    return (*pages[:12], *[page for page in pages if page.kind == "list"][:6])


def _page(data: bytes) -> tuple[Page, Element | Failure]:
    cut = Cutter(data)
    page = Page(URL, charset=cut.choice(CHARSETS), html=cut.rest())
    root = parse(page)
    assert not isinstance(root, Failure) or root.reason, root
    return page, root


def page_tree(data: bytes) -> None:
    """A tree or a failure, in any encoding; and all ways to say where a node stands lead back to it."""
    page, root = _page(data)
    html, charset = page.html, page.charset
    declared_encoding(html)
    text = decode(html, charset)
    in_utf8(html, charset).decode()
    assert is_writable(text), "a page was decoded into half characters"
    if isinstance(root, Failure):
        return
    # As extraction parses, which has scanned the page before.
    again = parse(page, scan=scan(html), collect_ids=False)
    assert not isinstance(again, Failure)
    assert etree.tostring(again, with_tail=False) == etree.tostring(root, with_tail=False)
    nodes = list(text_nodes(root))
    read = "".join("".join(node.text.split()) for node in nodes)
    assert "".join(visible_text(root).split()) == read
    spots = [spot.text for spot in texts_from(TextPosition(root, None))]
    assert spots == [node.text for node in nodes]
    for node in nodes[:_SOME]:
        path = f"{node_path(node.parent)}/text()[{node.number}]"
        assert root.getroottree().xpath(path) == [node.text], path
    for element in islice(root.iter(), _SOME):
        assert find(root, node_path(element)) is element, node_path(element)
        assert tag_path(element).startswith(str(root.tag))
    _check_ids(root)


def _check_ids(root: Element) -> None:
    by_id: dict[str, list[Element]] = {}
    for element in root.iter(etree.Element):
        if (value := element.get("id")) is not None:
            by_id.setdefault(value, []).append(element)
    wanted = [value for value in list(by_id)[:10] if value]
    assert elements_with_ids(root, wanted) == {value: by_id[value] for value in wanted}


def page_signature(data: bytes) -> None:
    """The compiled scanner says what plain Python says, and finds tags within the page."""
    found = signature(data)
    assert (found or b"").hex() == slow_signature(data)
    assert found is None or len(found) == SIGNATURE_BYTES
    tags = scan_tags(data)
    assert (tags.start < tags.end).all()
    assert (tags.start[1:] >= tags.end[:-1]).all()
    assert not tags.end.size or tags.end[-1] <= len(data)
    assert all(
        data[start] == ord("<") and data[end - 1] == ord(">") for start, end in zip(*tags[:2], strict=True)
    )
    scanned = scan(data)
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert scanned.most_attributes == max(tags.attributes.tolist(), default=0)


@cache
def _learned() -> tuple[NamedWrapper, ...]:
    """Wrappers of a site: of its pages, of its lists, and one by hand with values of all types."""
    single, lists = _guide()[:12], _guide()[12:]
    return (
        NamedWrapper(
            "page", None, learn([Example(p.page, p.truth) for p in single[:4]], [p.page for p in single])
        ),
        NamedWrapper(
            "list",
            None,
            learn([Example(p.page, records=p.records[:3]) for p in lists[:2]], [p.page for p in lists]),
        ),
        NamedWrapper("any", None, any_wrapper()),
    )


def any_wrapper() -> Wrapper:
    """A wrapper that takes what it can get of any page, as values of all types."""
    places = (
        ("text", "p"),
        ("element", "b"),
        ("@href", "a"),
        ("@src", "img"),
        ("text", "td"),
        ("@title", "p"),
    )
    evidence = RuleSupport(5, 0, 0.9, 0.1)
    attributes = {
        f"{kind}_{number}": AttributeRules(
            Attribute(multi=number % 2 == 0, type=kind),
            (Rule(target, (Feature("tag", 0, tag),), ValuePart(), evidence),),
            (
                Rule(
                    target,
                    (Feature("position", 0, "1"), Feature("tag", 0, tag)),
                    ValuePart(separator=","),
                    evidence,
                ),
            ),
            0.9,
        )
        for kind in get_args(ValueType)
        for number, (target, tag) in enumerate(places)
    }
    return Wrapper(attributes, footprint=Footprint(("a.example",), (r"^https?://a\.example/page/[^/?#]+$",)))


@cache
def _extractor() -> Extractor:
    return Extractor(_learned()[:2])


def page_records(data: bytes) -> None:
    """Records or a failure; and records are JSON without half characters, with nodes that are there."""
    cut = Cutter(data)
    url = cut.choice([p.page.url for p in (_guide()[0], _guide()[-1])])
    named = cut.choice(_learned())
    page = Page(url, cut.rest())
    found = _extractor().extract(page)
    assert found.records or found.failure
    for record in found.records:
        _check_record(record)
    root = parse(page)
    if isinstance(root, Failure):
        return
    for record in named.wrapper.records(root, page.url):
        _check_record(record)
        _check_nodes(record, root)


def _check_record(record: Record) -> None:
    text = json.dumps(record_row(record, "w", 1), ensure_ascii=False, allow_nan=False)
    text.encode()
    for name, values in record.values.items():
        assert values
        assert all(value and value == normalize(value) for value in values), values
        assert len(record.provenance[name]) == len(values)
        assert all(0 <= origin.confidence <= 1 for origin in record.provenance[name])


def _check_nodes(record: Record, root: Element) -> None:
    tree = root.getroottree()
    for origins in islice(record.provenance.values(), 8):
        for origin in origins[:4]:
            path, at, attribute = origin.node.partition("/@")
            found = tree.xpath(path)
            assert isinstance(found, list)
            assert len(found) == 1, origin.node
            if at:
                assert isinstance(found[0], Element)
                assert found[0].get(attribute) is not None, origin.node


@cache
def _documents() -> list[tuple[Wrapper, dict[str, Any]]]:
    return [(as_texts(named.wrapper), wrapper_document(named.wrapper)) for named in _learned()]


def exported_wrapper(data: bytes) -> None:
    """The evaluator that exports carry finds what the wrapper finds."""
    cut = Cutter(data)
    wrapper, document = cut.choice(_documents())
    text = cut.rest().decode("utf-8", "replace")
    page = Page.from_text(URL, text)
    root = parse(page)
    if isinstance(root, Failure):
        return
    native = [
        {name: list(texts) for name, texts in record.values.items()} for record in wrapper.records(root, URL)
    ]
    assert (
        standalone_extractor.records(document, text.removeprefix("\ufeff"), slow_signature(page.html))
        == native
    )


_NEXT = b"<!--next-->"


def clustered_pages(data: bytes) -> None:
    """Every page is in one cluster or in none, and the patterns of a cluster match its addresses."""
    cut = Cutter(data)
    method = cut.choice(METHODS)
    known = [page.page for page in _guide()[:3]] if cut.number(2) else []
    hosts = ("http://a.example", "https://b.example", "file:///tmp")
    pages = [
        Page(f"{hosts[number % 3]}/{html[:9]!r}/{number}", html)
        for number, html in enumerate(cut.rest().split(_NEXT)[:8])
    ]
    pages += known
    found = cluster(pages, method)
    members = sorted([*found.unclustered, *(one for group in found.clusters for one in group.members)])
    assert members == list(range(len(pages)))
    for group in found.clusters:
        for member in group.members:
            assert any(matches(pattern, pages[member].url) for pattern in group.url_patterns), pages[
                member
            ].url
        assert all(map(is_writable, group.template.text))
    roots = [root for page in pages if not isinstance(root := parse(page), Failure)]
    for root in roots:
        page_paths(root)
    path_rows(roots)
    tag_rows(roots)


def learned_from_pages(data: bytes) -> None:
    """From texts of any pages a wrapper is learned that can be kept, or one sentence says why not."""
    cut = Cutter(data)
    method: Method = cut.choice(get_args(Method))
    place = cut.number(256)
    pages = [
        Page(f"http://a.example/{number}", html) for number, html in enumerate(cut.rest().split(_NEXT)[:3])
    ]
    examples = []
    for page in pages:
        root = parse(page)
        texts = [] if isinstance(root, Failure) else [normalize(node.text) for node in text_nodes(root)]
        if texts:
            examples.append(Example(page, {"a": [texts[place % len(texts)]]}))
    with suppress(SiteloomError):
        wrapper = learn(examples, pages, method=method)
        assert Wrapper.from_json(wrapper.to_json()) == wrapper
        wrapper.explain()
        for page in pages:
            with suppress(UnreadablePage):
                for record in wrapper.extract_all(page):
                    _check_record(record)


@cache
def _watched() -> Watch:
    return watch(_learned()[0].wrapper, [one.page for one in _guide()[:6]], k=6)


def _changes() -> list[bytes]:
    """Some of the watched pages are another one now, or all are as after a redesign."""
    redesigned = {one.page.url: one.page.html for one in guide_site("redesign")}
    others = [[PAGES[2]], [_guide()[3].page.html, _guide()[-1].page.html]]
    others.append([redesigned[one.page.url] for one in _guide()[:6]])
    return [bytes([0]) + _NEXT.join(pages) for pages in others]


def changed_pages(data: bytes) -> None:
    """Watched pages that became anything are compared, and a wrapper is mended from them or left as it is."""
    watched = _watched()
    cut = Cutter(data)
    begin = cut.number(3)
    now = dict(enumerate(cut.rest().split(_NEXT)[:6], begin))
    before = [one.page for one in _guide()[:6]]
    fresh = [replace(page, html=now.get(number, page.html)) for number, page in enumerate(before)]
    for change in monitor(watched, fresh):
        assert 0 < change.share <= 1
        assert change.evidence
    wrapper = watched.wrapper
    mended = relearn(wrapper, [wrapper.extract(page) for page in before], fresh)
    assert mended.outcome in get_args(Outcome)
    assert Wrapper.from_json(mended.wrapper.to_json()) == mended.wrapper


def clean_page(data: bytes) -> None:
    """Segments are the texts of the tree, and nothing that is no template is lost by cleaning."""
    cut = Cutter(data)
    times = cut.number(8)
    pages = [Page(URL, html) for html in cut.rest().split(_NEXT)[:4]]
    table = SegmentTable("paper" if times % 2 else "share")
    for page in pages:
        root = parse(page)
        if isinstance(root, Failure):
            continue
        segments = table.segments_of(root)
        assert [text.strip() for text in segments.texts] == [
            _as_written(normalize(node.text)) for node in text_nodes(root)
        ]
        assert "".join(segments.texts).strip() == _as_written(visible_text(root))
        for _ in range(times):
            table.count(segments)
        blocks = table.judged(segments)
        kept = text_of(blocks)
        page_document("a.example", URL, root, table, common_segments(table.counts()))
        remove_template(root, segments, blocks)
        html = html_of(root)
        assert is_writable(html) or _NOT_IN_XML.search(html)
        assert "".join(_as_written(visible_text(root)).split()) == "".join(
            _in_order(segments, blocks).split()
        )
        assert is_writable(kept)
    counts = table.counts()
    assert SegmentTable.from_counts(counts).counts().keys.tolist() == counts.keys.tolist()


def _in_order(segments: Any, blocks: Any) -> str:
    """What cleaning keeps, in the order of the page."""
    marks = [iter(block.are_template) for block in blocks]
    return " ".join(
        text
        for text, block in zip(segments.texts, segments.blocks, strict=True)
        if not (next(marks[block]) and blocks[block].is_template)
    )


_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def _as_written(text: str) -> str:
    return _CONTROLS.sub("\ufffd", text)


_STRICT = etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True)
_ACTING = {
    "script",
    "iframe",
    "frame",
    "object",
    "embed",
    "applet",
    "base",
    "meta",
    "animate",
    "set",
}
_LOADING = ("src", "href", "{http://www.w3.org/1999/xlink}href", "background", "poster", "data", "action")


def archived_page(data: bytes) -> None:
    """What is shown of a page is strict XML with all its texts, and nothing in it acts or loads."""
    _, root = _page(data)
    if isinstance(root, Failure):
        return
    asked: list[str] = []

    def resource(url: str) -> str | None:
        asked.append(url)
        return "/kept?1" if url.endswith(("png", "css", "x")) else None

    shown = etree.fromstring(archived_tree(root, URL, resource=resource), _STRICT)
    is_writable(archived_doctype(root))
    elements = elements_in_order(root)
    for element in shown.iter(etree.Element):
        _check_harmless(element)
        number = element.get("data-siteloom")
        if number is not None:
            original = elements[int(number)]
            if original.tag not in HIDDEN:
                assert _own_texts(element) == [
                    _NOT_IN_XML.sub("\ufffd", text) for text in _own_texts(original)
                ] or (element is shown), original.tag


def _own_texts(element: Element) -> list[str]:
    return [text for text in (element.text, *(child.tail for child in element)) if text]


def _check_harmless(element: Element) -> None:
    name = etree.QName(element).localname
    assert name.lower() not in _ACTING, name
    for key, value in element.attrib.items():
        bare = str(key).lower()
        assert not etree.QName(key).localname.lower().startswith("on"), key
        assert bare not in ("srcdoc", "srcset", "ping", "formaction", "action", "http-equiv", "autofocus"), (
            key
        )
        if bare in _LOADING:
            assert str(value).startswith(("/kept?", "data:image/", "#")), (key, value)
        if bare == "style":
            _check_css(str(value))
    if name == "style":
        _check_css(element.text or "")


def _check_css(css: str) -> None:
    """That which was made harmless once stays as it is, and nothing but what is kept is asked for."""
    asked: list[str] = []

    def ask(address: str) -> str | None:
        asked.append(address)
        return address

    harmless_css(css, ask)
    assert all(one.startswith(("/kept?", "data:")) for one in asked), asked


def stylesheet(data: bytes) -> None:
    """A stylesheet loads only what it is allowed to."""
    css = data.decode("utf-8", "replace").replace("\0", "\ufffd")  # as all readers of CSS do first
    once = harmless_css(css, lambda address: "/kept?1" if address.endswith("x") else None)
    _check_css(once)
    assert harmless_css(once, lambda address: address) == once


def embedded_data(data: bytes) -> None:
    """What a page carries for machines is read, or left."""
    cut = Cutter(data)
    kind = cut.number(3)
    rest = cut.rest()
    if kind == 1:
        rest = b'<script type="application/ld+json">' + rest + b"</script>"
    for record in embedded_records(Page(URL, rest)):
        assert repr(record)


def typed_text(data: bytes) -> None:
    """A text is read as any type or not, and what comes of it is JSON."""
    cut = Cutter(data)
    day_first = cut.choice((None, True, False))
    text = cut.rest().decode("utf-8", "replace")
    for kind in get_args(ValueType):
        value = typed_value(text, kind, URL, {"src": text, "alt": text}, day_first=day_first)
        json.dumps(to_plain(value), allow_nan=False).encode()
    parts = text.split("|")
    assert infer_type(parts, ("@src",)) in get_args(ValueType)


def _pairs_of_pages() -> list[bytes]:
    return [
        bytes([number, 0]) + _NEXT.join([html, *PAGES[1:4]])
        for number in range(len(METHODS))
        for html in (PAGES[2], _guide()[0].page.html[:2_000])
    ]


_CSS_SEEDS = (
    b"p { background: url(x) } @import 'y.css'; @font-face { src: url(z) }",
    b'a{x:\\75 \\52L("b")} a:link[href] {} /* url(b) */ @\\69mport/**/url(b.css);',
    b"a{content:'\nx:url(b)'} b{x:image-set('b' 1x)} c{behavior:url(b)}",
)
_EMBEDDED_SEEDS = (
    (
        b'\x01{"@context":"https://schema.org","@graph":[{"@type":"Product","@id":"#a","name":"N",'
        b'"offers":{"@type":"Offer","price":1.5}},{"@id":"#b","about":{"@id":"#a"}}]}'
    ),
    (
        b"\x00<div itemscope itemtype=https://schema.org/Product><span itemprop=name>N</span>"
        b"<div itemprop=offers itemscope><meta itemprop=price content=3></div></div>"
    ),
    (
        b'\x00<div vocab="http://schema.org/" typeof="Product" resource="#p"><span property="name">N</span>'
        b'</div><meta property="og:title" content="T"><meta property="og:type" content="product">'
    ),
)
_TEXTS = (
    *("$ 12.99", "1.234.567,89 €", "1,5 kr", "-3 1/2", "03/04/2011", "2011-04-03T10:00:00Z", "3. März 2011"),
    *("4.5 of 5 stars", "★★★☆☆", "https://a.example/x.png", "/a b|c", "Tuesday, 5 May 2020 at 5pm", "١٢٣"),
    *("9" * 400, "1e999", "௧௨", "12:61", "0001-01-01", "9999-12-31T23:59:59-23:59", "½", "五"),
)

TARGETS = (
    Target(page_tree, some_pages, WORDS),
    Target(page_signature, lambda: [*PAGES, _guide()[0].page.html], WORDS),
    Target(
        page_records,
        lambda: [bytes(numbers) + html for numbers, html in product(((0, 0), (1, 1), (0, 2)), _all_pages())],
        WORDS,
    ),
    Target(
        exported_wrapper,
        lambda: [bytes([number]) + html for number, html in product(range(3), _all_pages())],
        WORDS,
    ),
    Target(
        learned_from_pages,
        lambda: [
            bytes([method, number]) + _NEXT.join([html, html.replace(b"1", b"2"), html])
            for html in (*PAGES[1:], _guide()[0].page.html[:2_500])
            for method, number in ((0, 0), (1, 3), (0, 7))
        ],
        [*WORDS, _NEXT],
    ),
    Target(changed_pages, _changes, [*WORDS, _NEXT]),
    Target(clustered_pages, _pairs_of_pages, [*WORDS, _NEXT]),
    Target(
        clean_page, lambda: [bytes([5]) + _NEXT.join([html, *PAGES[1:3]]) for html in PAGES], [*WORDS, _NEXT]
    ),
    Target(archived_page, some_pages, WORDS),
    Target(
        stylesheet,
        lambda: _CSS_SEEDS,
        [b"url(", b"@import", b"\\75", b"image-set(", b"/*", b"*/", b"'", b'"'],
    ),
    Target(
        embedded_data,
        lambda: _EMBEDDED_SEEDS,
        [
            b'"@type"',
            b'"@id"',
            b'"@graph"',
            b"itemscope",
            b"itemprop=",
            b"itemref=",
            b"typeof=",
            b"property=",
        ],
    ),
    Target(
        typed_text,
        lambda: [bytes([0]) + text.encode() for text in _TEXTS],
        [b"$", "€".encode(), b"stars", b"/5"],
    ),
)
