"""Any bytes as addresses, as what lists them or asks for them: patterns, sitemaps, robots.txt, queries."""

from __future__ import annotations

import gzip
import socket
import time
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from protego import Protego
from scrapy.http import HtmlResponse

from siteloom.core.errors import UsageError
from siteloom.core.model import IndexDocument, Passage
from siteloom.core.urls import site_of, url_shape
from siteloom.core.word_tokenizer import terms, words
from siteloom.extraction.search_query import parse_query, places_in, shown_hit
from siteloom.sources.crawling.links import MOST_BYTES, complete, links_of, read_sitemap
from siteloom.sources.crawling.public_addresses import is_public
from siteloom.sources.crawling.url_filters import UrlPatterns, checked_pattern, checked_url
from siteloom.templates.url_patterns import PatternSet, matches, url_patterns
from siteloom.wrappers.safe_patterns import tells_pages_apart, url_pattern_fault
from torture.fuzz_targets.cutting import Cutter
from torture.fuzz_targets.target import Target, is_writable

URL = "http://a.example/page/1"

# To match so many characters takes a millisecond where time is linear, and minutes where it is not.
_LONG = 20_000
_SECONDS = 2.0


def learned_url_patterns(data: bytes) -> None:
    """Patterns match what they were learned from, may stand in a wrapper, and never take long."""
    cut = Cutter(data)
    times = 1 + cut.number(12)
    urls = cut.rest().decode("utf-8", "replace").split("\n")[:200]
    # Fuzzers repeat little by themselves, and what is learned depends on how many addresses there are.
    urls = [f"{url}{'' if number == 0 else number}" for number in range(times) for url in urls[:10]] + urls[
        10:
    ]
    patterns = url_patterns(urls)
    assert 1 <= len(patterns) <= 3
    assert patterns == url_patterns(reversed(urls))
    for pattern in patterns:
        assert not url_pattern_fault(pattern), pattern
        tells_pages_apart(pattern)
    for url in urls:
        assert any(matches(pattern, url) for pattern in patterns), url
        url_shape(url)
        site_of(url)
    together = PatternSet(patterns)
    start = time.process_time()
    for url in urls[:2]:
        for piece in (url[-1:] or "a", url[-8:] or "a/", "?&"):
            long = url + piece * (_LONG // len(piece))
            found = together.matching(long)
            assert found == {number for number, pattern in enumerate(patterns) if matches(pattern, long)}
    taken = time.process_time() - start
    assert taken < _SECONDS, f"{taken:.1f} s for {patterns}"


_URLS = (
    b"http://a.example/p/1.html\nhttps://a.example/p/22.html\nhttp://A.example/p/x-3.html#y",
    b"http://a.example/?id=1&b=2\nhttp://b.example/?id=3&b=\nfile:///x\n\n//c/d?e",
    b"http://a.example/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s\nhttp://a.example/a//b?x?y&&z=[]()*+^$\\",
)


def sitemap(data: bytes) -> None:
    """What a sitemap lists, or nothing."""
    cut = Cutter(data)
    is_packed = cut.number(2) == 1
    content = cut.rest()
    found = read_sitemap(gzip.compress(content) if is_packed else content)
    assert not (found.pages and found.sitemaps)
    for address in (*found.pages, *found.sitemaps):
        assert len(address) <= MOST_BYTES
        assert is_writable(address)
    for address in complete(found.pages, URL):
        assert address.startswith(("http:", "https:")), address
        site_of(address)


_SITEMAPS = (
    (
        b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>'
        b"<loc> http://a.example/1 </loc></url><url><loc>http://a.example/2</loc></url></urlset>"
    ),
    b"<sitemapindex><sitemap><loc>http://a.example/s.xml</loc></sitemap></sitemapindex>",
    b"\xef\xbb\xbfhttp://a.example/1\nftp://x\nhttps://a.example/2\r\n",
    b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>',
)


def page_links(data: bytes) -> None:
    """The addresses on a page are complete, and rules of hosts and people say yes or no to each."""
    cut = Cutter(data)
    robots = cut.piece().decode("utf-8-sig", "ignore")
    written = cut.piece().decode("utf-8", "replace")
    response = HtmlResponse(URL, body=cut.rest(), encoding="utf-8")
    rules = Protego.parse(robots)
    patterns = UrlPatterns()
    with suppress(UsageError):
        patterns = UrlPatterns((checked_pattern(written),), (checked_pattern(written),))
    with suppress(UsageError):
        assert checked_url(written).lower().startswith(("http://", "https://"))
    rules.crawl_delay("Siteloom")
    list(rules.sitemaps)
    for link in links_of(response):
        assert is_writable(link)
        patterns.includes(link)
        patterns.excludes(link)
        rules.can_fetch(link, "Siteloom")
        site_of(link)
    for address in complete(written.split(), URL):
        assert address.startswith(("http:", "https:"))


_LINKS = (
    (
        b"\x2eUser-agent: *\nDisallow: /x*y$\nCrawl-delay: 2.5\n\x09/p/*/x?y=*<base href=http://a.example/b/>"
        b"<a href='x y'>1</a><a href=http://[>2</a><link rel=next href=?p=2><a href=\xff>"
    ),
    b"\0\0<a href=javascript:x><a href='http://a.example/%zz\xc3\xa9?a=1&amp;b'><area href=//c/d>",
)


# Where people have machines that others must not reach.
_PRIVATE = tuple(
    ip_network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
        *("224.0.0.0/4", "::/127", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    )
)
_TRANSLATED = int(IPv6Address("64:ff9b::"))
_MAPPED = int(IPv6Address("::ffff:0:0"))


def ip_addresses(data: bytes) -> None:
    """No host is one of a private network, in whatever notation, nor what stands for such an address."""
    number = int.from_bytes(data[:16].ljust(16, b"\0"))
    wide, narrow = IPv6Address(number), IPv4Address(number >> 96)
    found = {str(wide), str(narrow)}
    with suppress(OSError, ValueError):  # it is no number, and only a name server could tell
        host = data.decode("utf-8", "replace")
        found |= {str(one[4][0]) for one in socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)}
    for address in found:
        if is_public(address):
            one = ip_address(address)
            inner = getattr(one, "ipv4_mapped", None) or one
            assert not any(inner in network for network in _PRIVATE), address
    for outer in (_TRANSLATED, _MAPPED):
        assert is_public(str(IPv6Address(outer + int(narrow)))) == is_public(str(narrow)), narrow
    assert is_public(f"{wide}%1") == is_public(str(wide)), wide


_HOSTS = (
    b"127.0.0.1",
    b"0x7f.1",
    b"2130706433",
    b"0300.0250.1",
    b"::ffff:10.0.0.1",
    b"64:ff9b::c0a8:1",
    b"fe80::1%1",
    b"2606:4700::1111",
    *(
        ip_address(one).packed
        for one in ("192.0.0.192", "8.8.8.8", "fe80::1", "2001:1::1", "::ffff:a9fe:a9fe")
    ),
)


def search_query(data: bytes) -> None:
    """A query is read, and what it finds in a text stands there."""
    query_text, _, text = data.decode("utf-8", "replace").partition("\n")
    for one in (query_text, text):
        spoken = [term for word in words(one) for term in word.terms]
        assert terms(one) == spoken, one
        assert all(0 <= word.start < word.end <= len(one) for word in words(one))
    try:
        query = parse_query(query_text)
    except UsageError:
        return
    assert query.wanted
    assert all(phrase and all(phrase) for phrase in (*query.wanted, *query.unwanted))
    passages = (Passage(text[:30], "title"), Passage(text, "text"), Passage(text, "heading", "name"))
    for kind in ("page", "record"):
        document = IndexDocument(kind, "a.example", URL, passages)
        hit = shown_hit(document, None, 1.0, query.wanted)
        for shown in (hit.title, hit.snippet):
            ends = [0, *(place for both in shown.places for place in both), len(shown.text)]
            assert ends == sorted(ends), (shown.places, len(shown.text))
            assert shown.marked("", "") == shown.text
    for start, end in places_in(text, query.wanted):
        assert terms(text[start:end])


_QUERIES = (
    "blue fern -red \"in quotes\"\nBlue Fern, in quotes; O'Brien's café".encode(),
    "\u201eümlaut\u201c 東京 ½ -\u0e01\u0e32\n東京都 ½ \u0e01\u0e32\u0e23 e\u0301t\u00e9 ß İ ﬁ ﷺ".encode(),
)

TARGETS = (
    Target(
        learned_url_patterns,
        lambda: [bytes([n]) + urls for urls in _URLS for n in (0, 11)],
        [b"http://", b"https://", b"?id=", b"&", b"\n", b"/", b"#", b".html", b"\\", b"[", b"%"],
    ),
    Target(
        sitemap,
        lambda: [bytes([n]) + one for one in _SITEMAPS for n in (0, 1)],
        [b"<url>", b"<loc>", b"</loc>", b"<sitemap>", b"<![CDATA[", b"<!DOCTYPE", b"&#", b"xmlns:"],
    ),
    Target(
        page_links,
        lambda: _LINKS,
        [b"<a href=", b"<base href=", b"Disallow: ", b"Allow: ", b"*", b"$", b"http://["],
    ),
    Target(
        ip_addresses,
        lambda: _HOSTS,
        [b"0x", b"127.", b"192.168.", b"::", b"::ffff:", b"64:ff9b::", b"%1", b"."],
    ),
    Target(search_query, lambda: _QUERIES, [b'"', b" -", b"\n", "é".encode(), "東".encode(), "½".encode()]),
)
