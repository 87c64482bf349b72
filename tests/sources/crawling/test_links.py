"""What sitemaps list, whatever they are like."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.sources.crawling import links
from siteloom.sources.crawling.links import SitemapLinks, read_sitemap

OPEN = b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
URLS = OPEN + b"<url><loc> http://x.example/1?a=b&amp;c </loc><lastmod>2026-01-01</lastmod></url>"
ONE = SitemapLinks(pages=("http://x.example/1?a=b&c",))


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        (URLS + b"</urlset>", ONE),
        (gzip.compress(URLS + b"</urlset>"), ONE),
        (URLS + b"<url><lo", ONE),  # cut off
        (b"\n" + URLS + b"</urlset>", ONE),
        (
            b"<sitemapindex><sitemap><loc>http://x.example/a.xml</loc></sitemap></sitemapindex>",
            SitemapLinks(sitemaps=("http://x.example/a.xml",)),
        ),
        (
            b"\xef\xbb\xbfhttp://x.example/1\r\nno address\nhttps://x.example/2",
            SitemapLinks(("http://x.example/1", "https://x.example/2")),
        ),
        (b"<html><body><p>not found", SitemapLinks()),
        (b"", SitemapLinks()),
        (b"<", SitemapLinks()),
        (b"\x1f\x8b\x08broken", SitemapLinks()),
        (b"<urlset><url></url><url><loc/></url></urlset>", SitemapLinks()),
        # Names that no XML has: lxml gives them, but does not take them.
        (b"<sit:xm:lns><url><loc>http://x.example/</loc></url>", SitemapLinks()),
        (b"<urlset><a:b:c/><url><loc>http://x.example/</loc></url>", SitemapLinks(("http://x.example/",))),
        (
            b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset><url><loc>&a;</loc></url></urlset>',
            SitemapLinks(),
        ),
    ],
)
def test_a_sitemap_gives_what_it_lists(body: bytes, listed: SitemapLinks) -> None:
    assert read_sitemap(body) == listed


def test_one_that_unpacks_to_ever_more_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MOST_BYTES", len(URLS) + 1_000)
    bomb = gzip.compress(URLS + b" " * 10_000_000)
    assert len(bomb) < 20_000
    assert read_sitemap(bomb) == ONE


def test_one_of_ever_more_elements_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_MOST_ADDRESSES", 5)
    monkeypatch.setattr(links, "_MOST_EVENTS", 100)
    entry = b"<url><loc>http://x.example/</loc></url>"
    assert len(read_sitemap(b"<urlset>" + entry * 60).pages) == 5
    assert len(read_sitemap(b"http://x.example/\n" * 60).pages) == 5
    assert len(read_sitemap(b"<urlset>" + b"<a/>" * 40 + entry).pages) == 1
    assert read_sitemap(b"<urlset>" + b"<a/>" * 60 + entry) == SitemapLinks()


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda some: URLS + some))
def test_no_sitemap_raises(body: bytes) -> None:
    read_sitemap(body)
