"""Links on a page, the next page of a list, links in sitemaps, stylesheets a page needs.

XML entities in sitemaps are not resolved, and no more is read than a sitemap may hold, so memory is bounded.
A broken sitemap gives the addresses before the break.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml import etree
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.response import get_base_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy.http import Response


MOST_SITEMAPS = 50
"""The limit per crawl: with 2,500,000 addresses, far more than a sample is chosen from."""
DEEPEST = 3
"""The deepest nesting of sitemap indexes: by the protocol an index lists only sitemaps; some list indexes."""
MOST_BYTES = 52_428_800
"""The largest sitemap by the protocol (50 MiB), compressed or not."""

# The most addresses in a sitemap by the protocol.
_MOST_ADDRESSES = 50_000
# The limit of element starts and ends: ten elements for each address, such as its translations.
_MOST_EVENTS = 20 * _MOST_ADDRESSES
# The root element and its entry element.
_ENTRIES = {"urlset": "url", "sitemapindex": "sitemap"}
_GZIP = b"\x1f\x8b"


class SitemapLinks(NamedTuple):
    """The addresses in a sitemap: pages, and further sitemaps."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def read_sitemap(body: bytes) -> SitemapLinks:
    """Read a sitemap in XML, compressed XML or lines of text; empty if it is none of them."""
    unpacked = _unpacked(body).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not unpacked.startswith(b"<"):
        lines = (line.strip().decode("utf-8", "replace") for line in BytesIO(unpacked))
        pages = (line for line in lines if line.startswith(("http://", "https://")))
        return SitemapLinks(pages=tuple(islice(pages, _MOST_ADDRESSES)))
    events = etree.iterparse(
        BytesIO(unpacked),
        events=("start", "end"),
        recover=True,
        resolve_entities=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    urls: list[str] = []
    kind = ""
    try:
        _, root = next(events)
        kind = _name(root)
        urls.extend(islice(_addresses(events, _ENTRIES.get(kind)), _MOST_ADDRESSES))
    except (etree.LxmlError, StopIteration):
        pass  # the addresses before the error are valid
    return SitemapLinks(sitemaps=tuple(urls)) if kind == "sitemapindex" else SitemapLinks(pages=tuple(urls))


def _addresses(events: etree.iterparse[tuple[str, etree._Element]], entry: str | None) -> Iterator[str]:
    """Yield the addresses of the entries of a sitemap as they are read; none if it has no such entries."""
    if entry is None:
        return
    for event, element in islice(events, _MOST_EVENTS):
        if event == "end" and _name(element) == entry:
            if address := (element.findtext("{*}loc") or "").strip():
                yield address
            element.clear()


def _name(element: etree._Element) -> str:
    # In broken XML, lxml returns names that it does not accept itself.
    return str(element.tag).rpartition("}")[2]


def _unpacked(body: bytes) -> bytes:
    """Decompress a sitemap; if it is too large, return its beginning."""
    if not body.startswith(_GZIP):
        return body
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        return reader.decompress(body, MOST_BYTES)
    except zlib.error:
        return b""


_EXTRACTOR = LinkExtractor()
# The link to the next page in the head of a list page.
_NEXT_PAGE = "//link[contains(concat(' ', normalize-space(@rel), ' '), ' next ')]/@href"


def links_of(response: Response) -> Iterator[str]:
    """Yield the addresses that a page links to, without malformed ones."""
    if isinstance(response, TextResponse):
        with suppress(ValueError):  # a base like http://[, with which Scrapy reads nothing
            yield from (link.url for link in _EXTRACTOR.extract_links(response))
            yield from complete(response.xpath(_NEXT_PAGE).getall(), get_base_url(response))


def complete(addresses: Iterable[str], base: str) -> Iterator[str]:
    """Yield the web addresses among these as absolute URLs without fragments."""
    for address in addresses:
        try:
            url = urldefrag(urljoin(base, address.strip().replace(" ", "%20"))).url
            is_of_web = bool(address.strip()) and urlsplit(url).scheme in ("http", "https")
        except ValueError:  # like http://[
            continue
        if is_of_web:
            yield url


REQUISITE = "siteloom_requisite"
"""The metadata key of requests for stylesheets: the URL, and how many imports it is away from a page."""

STYLESHEET = "text/css"
MOST_STYLESHEETS = 300
"""The limit per crawl: ten times what large sites have for all their templates."""
LARGEST_STYLESHEET = 5_000_000
"""In bytes; frameworks known for their size have less than a million."""
DEEPEST_IMPORT = 5
"""Deeper imports are probably circular."""

_LINKED = (
    "//link[contains(concat(' ', translate(normalize-space(@rel), 'EHLSTY', 'ehlsty'), ' '), ' stylesheet ')]"
    "/@href"
)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_IMPORT = re.compile(
    r"""@import\s*+(?:url\(\s*+)?+(?: "([^"\n]*+)" | '([^'\n]*+)' | (?<=\()\s*+([^)\s"']++) )""",
    re.IGNORECASE | re.VERBOSE,
)


def stylesheets_of(response: Response) -> Iterator[str]:
    """Yield the addresses of the stylesheets of a page, as the archived view looks them up."""
    if isinstance(response, TextResponse):
        with suppress(ValueError):  # a base like http://[, with which Scrapy reads nothing
            base = get_base_url(response)
            yield from complete(response.xpath(_LINKED).getall(), base)
            for style in response.xpath("//style/text()").getall():
                yield from imports_of(style, base)


def imports_of(css: str, base: str) -> Iterator[str]:
    """Yield the addresses of the stylesheets that another one imports."""
    matches = _IMPORT.findall(_COMMENT.sub(" ", css))
    yield from complete(("".join(groups) for groups in matches), base)
