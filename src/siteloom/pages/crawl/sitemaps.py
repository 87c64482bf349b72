"""The addresses that hosts list in sitemaps.

Scrapy reads the XML of them, in which no entity is resolved. A sitemap that is broken gives what stands
before the break.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from lxml.etree import LxmlError
from scrapy.utils.sitemap import Sitemap

MOST_SITEMAPS = 50
"""So many files are read in a crawl: with 2,500,000 addresses, far more than a sample is taken from."""
DEEPEST = 3
"""An index lists sitemaps, and by the protocol nothing else; some list others."""
MOST_BYTES = 52_428_800
"""As large as a sitemap may be by the protocol (50 MiB), packed or not."""

_GZIP = b"\x1f\x8b"


class Listed(NamedTuple):
    """What a sitemap lists: pages, and further sitemaps."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def read_sitemap(body: bytes) -> Listed:
    """What a sitemap lists, be it XML, packed XML or lines of text; nothing if it is none of them."""
    unpacked = _unpacked(body).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not unpacked.startswith(b"<"):
        lines = unpacked.decode("utf-8", "replace").splitlines()
        return Listed(pages=tuple(line.strip() for line in lines if line.startswith(("http://", "https://"))))
    found: list[str] = []
    kind = ""
    try:
        sitemap = Sitemap(unpacked)
        kind = sitemap.type
        found.extend(entry["loc"] for entry in sitemap if entry["loc"])
    except (LxmlError, StopIteration):
        pass  # what was found before is good
    if kind == "sitemapindex":
        return Listed(sitemaps=tuple(found))
    return Listed(pages=tuple(found)) if kind == "urlset" else Listed()


def _unpacked(body: bytes) -> bytes:
    """The bytes of a sitemap; of one that is packed and too large, its beginning."""
    if not body.startswith(_GZIP):
        return body
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        return reader.decompress(body, MOST_BYTES)
    except zlib.error:
        return b""
