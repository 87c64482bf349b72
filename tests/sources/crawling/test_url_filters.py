"""Which addresses are wanted: patterns as people write them."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import UsageError
from siteloom.sources.crawling.url_filters import UrlPatterns, checked_pattern, matches


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("https://x.example/products/1", "/products/*"),
        ("https://x.example/products/1?a=b", "/products/*?a=*"),
        ("https://x.example/products/1#top", "/products/1"),
        ("https://x.example", "/"),
        ("https://x.example/a/calendar/2026", "*/calendar/*"),
        ("https://x.example/a?sort=price", "*?sort=*"),
        ("https://shop.x.example/a", "https://shop.*/a"),
        ("https://x.example/caf%C3%A9", checked_pattern("/café")),
        ("https://x.example/anything", "*"),
    ],
)
def test_addresses_that_match(url: str, pattern: str) -> None:
    assert matches(url, pattern)


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("https://x.example/shop/products/1", "/products/*"),
        ("https://x.example/products", "/products/*"),
        ("https://x.example/xhtml", "*.html"),  # a dot is a dot
        ("https://x.example/ab", "/ab*b"),  # no character counts twice
        ("https://x.example/b/a", "*/a*/b*"),
    ],
)
def test_addresses_that_do_not(url: str, pattern: str) -> None:
    assert not matches(url, pattern)


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_a_star_stands_for_anything(pattern: str, text: str) -> None:
    as_regex = ".*".join(map(re.escape, pattern.split("*")))
    assert matches(f"http://x/{text}", f"/{pattern}") == bool(re.fullmatch(as_regex, text))


def test_no_pattern_takes_long() -> None:
    begin = time.process_time()
    assert not matches("http://x.example/" + "a" * 2_000, "*a" * 500 + "*b")
    assert time.process_time() - begin < 5  # if stars tried all lengths, it would not end


def test_what_is_kept_and_what_is_not_fetched() -> None:
    patterns = UrlPatterns(("/a/*", "/b/*"), ("*/c/*",))
    assert patterns.includes("http://x.example/b/1")
    assert not patterns.includes("http://x.example/")
    assert patterns.excludes("http://x.example/a/c/1")
    assert UrlPatterns().includes("http://x.example/")
    assert not UrlPatterns().excludes("http://x.example/")


@pytest.mark.parametrize(
    ("written", "hint"), [("", "empty"), ("calendar", "'*calendar*'"), ("x/*", "'*x/*'")]
)
def test_a_pattern_that_nothing_matches_is_told_of(written: str, hint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(hint)):
        checked_pattern(written)
