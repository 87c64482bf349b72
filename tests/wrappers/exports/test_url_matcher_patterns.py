"""Patterns for url-matcher match all addresses that the wrapper's own match."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from url_matcher.patterns import PatternMatcher

from siteloom.core.model import Footprint
from siteloom.core.urls import site_of
from siteloom.templates.url_patterns import url_patterns
from siteloom.wrappers.exports.web_poet_page import url_matcher_patterns


@pytest.fixture(autouse=True, scope="module")
def no_web() -> Iterator[None]:
    """url-matcher asks the web for a list of domains, and does without if there is none."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("https_proxy", "http://127.0.0.1:9")
        yield


def patterns(*urls: str) -> list[str]:
    sites = tuple(sorted({site_of(url) for url in urls}))
    return url_matcher_patterns(Footprint(sites, url_patterns(urls)))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"^https?://www\.shop\.example/product/[^/?#]+\.html$", ["www.shop.example/product/*.html|"]),
        (r"^https?://shop\.example/p\?id=[^&#]*&lang=en$", ["shop.example/p|?id=*&lang=en"]),
        (r"^https?://shop\.example/p\?[^&#]*&id=1$", ["shop.example/p|?id=1"]),
        (r"^https?://(?:a\.example|b\.example)/x/[^?#]*$", ["a.example/x/*|", "b.example/x/*|"]),
        (r"^https?://(?:[^/?#]*\.)?shop\.example/x$", ["shop.example"]),
        (r"^https?://[^/?#]*/x$", ["shop.example"]),
        (r"^https?://shop\.example(?:/[^/?#]+)?$", ["shop.example"]),
        (r"^https?://shop\.example/x(?:\?id=[^&#]*)?$", ["shop.example/x"]),
        (r"^https?://shop\.example/x\(\*[^/?#]+\)$", ["shop.example/x(**)|"]),
        (r"^https?://127\.0\.0\.1:8000/x$", ["127.0.0.1:8000/x|"]),
    ],
)
def test_a_pattern_is_translated_as_far_as_it_can_be(pattern: str, expected: list[str]) -> None:
    assert url_matcher_patterns(Footprint(("shop.example",), (pattern,))) == expected


def test_without_patterns_the_sites_count() -> None:
    assert url_matcher_patterns(Footprint(("shop.example",))) == ["shop.example"]
    assert url_matcher_patterns(Footprint()) == []


_HOSTS = st.sampled_from(["shop.example", "www.shop.example", "de.shop.example", "127.0.0.1"])
_NAMES = st.sampled_from(["x", "Y1", "product-7", "a.html", "b.html", "(c)"])
_QUERIES = st.sampled_from(["", "?id=1", "?id=2", "?id=3&lang=en", "?q", "?id="])
_URLS = st.builds(
    lambda host, path, query: f"https://{host}/{'/'.join(path)}{query}",
    _HOSTS,
    st.lists(_NAMES, max_size=3),
    _QUERIES,
)


@given(st.lists(_URLS, min_size=1, max_size=6))
def test_no_address_is_lost(urls: list[str]) -> None:
    found = patterns(*urls)
    matchers = [PatternMatcher(one) for one in found]
    assert all(any(one.match(url) for one in matchers) for url in urls), found
