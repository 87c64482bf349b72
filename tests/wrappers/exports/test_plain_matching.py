"""Exported spiders take the pages that siteloom takes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.core.model import Attribute, Footprint, Page
from siteloom.extraction.extractor import Extractor
from siteloom.templates.signature import signature as native_signature
from siteloom.wrappers.exports import standalone_extractor
from siteloom.wrappers.exports.scrapy_spider import known_pages
from siteloom.wrappers.exports.standalone_matcher import fit, is_page_of, signature
from siteloom.wrappers.exports.xpath_json import to_xpath_json
from siteloom.wrappers.matching import NamedWrapper
from siteloom.wrappers.rule_features import AttributeRules, Feature, Rule, RuleSupport, ValuePart
from siteloom.wrappers.wrapper import Wrapper
from tests.apps.demo.sites import all_sites
from tests.html.html_bytes import html_like


@given(html_like)
@example(b"")
@example(b"<p>x")
@example("<p><b>x</b>".encode("utf-16"))
@example(b"<plaintext><p>x")
@example(b"<p\x0ca=b><\xc0 x><A\xc0><p" + b"<b>" * 12)
@example(b"<script><!-- <script></script><p> --></script><p><title><b></title><i>")
@example(
    b"<input type=hidden><input type='HIDDEN'/><input type = \"hidden\"><input type=hidden'><input a type>"
    b"<input type=text type=hidden><input =type=hidden><input a='type=hidden'><INPUT TYPE=hidden></input>"
)
def test_any_page_has_the_same_signature(html: bytes) -> None:
    assert signature(html) == (native_signature(html) or b"").hex()


def test_the_built_in_pages_have_the_same_signatures() -> None:
    for site in all_sites().values():
        for one in site[::15]:
            assert signature(one.page.html) == (native_signature(one.page.html) or b"").hex()


def wrapper(*mandatory: str) -> Wrapper:
    evidence = RuleSupport(1, 0, 1.0, 0.0)
    attributes = {
        name: AttributeRules(
            Attribute(mandatory=name in mandatory),
            (Rule("text", (Feature("tag", 0, name),), ValuePart(), evidence),),
            (),
            1.0,
        )
        for name in ("b", "i", "u")
    }
    return Wrapper(attributes)


PATTERNS = (r"^https?://a\.example/p/[^/?#]+$", r"^https?://a\.example/[^/?#]+/[^/?#]+$")
URLS = ("http://a.example/p/1#x", "http://a.example/q/1", "http://a.example/")
HTML = b"<b>1</b><i>2</i><u>3</u>"


@given(
    st.sampled_from(URLS),
    st.sampled_from([HTML, b"<b>1</b><i>2</i>", b"<b>1", b"<p>x", b"x", b"<u>1</u>"]),
    st.integers(0, 8),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from([(), ("b",), ("b", "i"), ("b", "i", "u")]),
)
def test_the_pages_are_taken_that_siteloom_takes(
    url: str, html: bytes, agreeing: int, wildcards: int, is_mask: bool, mandatory: tuple[str, ...]
) -> None:
    own = signature(html) or "00" * 8
    other = bytes(byte ^ (0xFF if place >= agreeing else 0) for place, byte in enumerate(bytes.fromhex(own)))
    mask = "**" * wildcards + other.hex()[2 * wildcards :]
    masks = ((mask, 3),) if is_mask else ()
    known = replace(wrapper(*mandatory), footprint=Footprint(("a.example",), PATTERNS, masks, (other.hex(),)))
    extracted = Extractor([NamedWrapper("x", None, known)]).extract(Page(url, html, charset="utf-8"))
    page_fit = fit(known_pages(known), url, signature(html))
    document = json.loads(to_xpath_json(known))
    found = standalone_extractor.records(document, html.decode()) if page_fit else []
    assert is_page_of(document, found, page_fit) == (extracted.failure is None)


@pytest.mark.parametrize("footprint", [Footprint(), Footprint(("a.example",), PATTERNS)])
def test_where_no_signature_is_known_any_will_do(footprint: Footprint) -> None:
    pages = known_pages(replace(wrapper(), footprint=footprint))
    assert fit(pages, URLS[0], signature(HTML)) == "good"
    assert fit(pages, "http://a.example/", signature(HTML)) == ("" if footprint.url_patterns else "good")
