"""The stylesheets of pages, and those that they import: what it takes to show pages as they looked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

from scrapy.http import TextResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy.http import Response

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
    """The addresses of the stylesheets of a page, as they stand on it."""
    if isinstance(response, TextResponse):
        base = urljoin(response.url, response.xpath("string(//base/@href)").get("").strip())
        yield from _absolute(response.xpath(_LINKED).getall(), base)
        for style in response.xpath("//style/text()").getall():
            yield from imports_of(style, base)


def imports_of(css: str, base: str) -> Iterator[str]:
    """The addresses of the stylesheets that another imports."""
    found = _IMPORT.findall(_COMMENT.sub(" ", css))
    yield from _absolute(("".join(groups) for groups in found), base)


def _absolute(addresses: Iterable[str], base: str) -> Iterator[str]:
    """Those of the web, as the archive of pages looks them up: in full, without fragment."""
    for address in addresses:
        try:
            url = urldefrag(urljoin(base, address.strip().replace(" ", "%20"))).url
            is_of_web = bool(address.strip()) and urlsplit(url).scheme in ("http", "https")
        except ValueError:  # like http://[
            continue
        if is_of_web:
            yield url
