"""Links on a page, the next page of a list, links in sitemaps, stylesheets a page needs.

No entity is resolved in their XML, and no more is read than a sitemap may hold: none fills the memory.
A sitemap that is broken gives what stands before the break.
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
"""So many files are read in a crawl: with 2,500,000 addresses, far more than a sample is taken from."""
DEEPEST = 3
"""An index lists sitemaps, and by the protocol nothing else; some list others."""
MOST_BYTES = 52_428_800
"""As large as a sitemap may be by the protocol (50 MiB), packed or not."""

# As many addresses as a sitemap may list by the protocol.
_MOST_ADDRESSES = 50_000
# So many starts and ends of elements are read: ten elements for each address, such as its translations.
_MOST_EVENTS = 20 * _MOST_ADDRESSES
# What lists, and what an address stands in there.
_ENTRIES = {"urlset": "url", "sitemapindex": "sitemap"}
_GZIP = b"\x1f\x8b"


class Listed(NamedTuple):
    """What a sitemap lists: pages, and further sitemaps."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def read_sitemap(body: bytes) -> Listed:
    """What a sitemap lists, be it XML, packed XML or lines of text; nothing if it is none of them."""
    unpacked = _unpacked(body).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not unpacked.startswith(b"<"):
        lines = (line.strip().decode("utf-8", "replace") for line in BytesIO(unpacked))
        urls = (line for line in lines if line.startswith(("http://", "https://")))
        return Listed(pages=tuple(islice(urls, _MOST_ADDRESSES)))
    events = etree.iterparse(
        BytesIO(unpacked),
        events=("start", "end"),
        recover=True,
        resolve_entities=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    found: list[str] = []
    kind = ""
    try:
        _, root = next(events)
        kind = _name(root)
        found.extend(islice(_addresses(events, _ENTRIES.get(kind)), _MOST_ADDRESSES))
    except (etree.LxmlError, StopIteration):
        pass  # what was found before is good
    return Listed(sitemaps=tuple(found)) if kind == "sitemapindex" else Listed(pages=tuple(found))


def _addresses(events: etree.iterparse[tuple[str, etree._Element]], entry: str | None) -> Iterator[str]:
    """The addresses of the entries of a sitemap, as they are read; nothing if it has no such entries."""
    if entry is None:
        return
    for event, element in islice(events, _MOST_EVENTS):
        if event == "end" and _name(element) == entry:
            if address := (element.findtext("{*}loc") or "").strip():
                yield address
            element.clear()


def _name(element: etree._Element) -> str:
    # Broken XML has names that lxml gives but does not take.
    return str(element.tag).rpartition("}")[2]


def _unpacked(body: bytes) -> bytes:
    """The bytes of a sitemap; of one that is packed and too large, its beginning."""
    if not body.startswith(_GZIP):
        return body
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        return reader.decompress(body, MOST_BYTES)
    except zlib.error:
        return b""


_EXTRACTOR = LinkExtractor()
# Where lists say in their head what their next page is.
_NEXT_PAGE = "//link[contains(concat(' ', normalize-space(@rel), ' '), ' next ')]/@href"


def links_of(response: Response) -> Iterator[str]:
    """The addresses that a page links to; those that make no sense are left out."""
    if isinstance(response, TextResponse):
        with suppress(ValueError):  # a base like http://[, with which Scrapy reads nothing
            yield from (link.url for link in _EXTRACTOR.extract_links(response))
            yield from complete(response.xpath(_NEXT_PAGE).getall(), get_base_url(response))


def complete(addresses: Iterable[str], base: str) -> Iterator[str]:
    """Those of the web in full, without fragment."""
    for address in addresses:
        try:
            url = urldefrag(urljoin(base, address.strip().replace(" ", "%20"))).url
            is_of_web = bool(address.strip()) and urlsplit(url).scheme in ("http", "https")
        except ValueError:  # like http://[
            continue
        if is_of_web:
            yield url


REQUISITE = "siteloom_requisite"
"""Under which name a request tells that it is for a stylesheet, and how many imports away from a page."""

STYLESHEET = "text/css"
MOST_STYLESHEETS = 300
"""So many of a crawl are fetched: ten times what large sites have for all their templates."""
LARGEST_STYLESHEET = 5_000_000
"""In bytes; the frameworks that are known for their size have less than a million."""
DEEPEST_IMPORT = 5
"""As many steps as anyone will have made who did not make a circle."""

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
    """The addresses of the stylesheets of a page, as the archive of pages looks them up."""
    if isinstance(response, TextResponse):
        with suppress(ValueError):  # a base like http://[, with which Scrapy reads nothing
            base = get_base_url(response)
            yield from complete(response.xpath(_LINKED).getall(), base)
            for style in response.xpath("//style/text()").getall():
                yield from imports_of(style, base)


def imports_of(css: str, base: str) -> Iterator[str]:
    """The addresses of the stylesheets that another imports."""
    found = _IMPORT.findall(_COMMENT.sub(" ", css))
    yield from complete(("".join(groups) for groups in found), base)
