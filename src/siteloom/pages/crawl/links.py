"""The addresses of other pages that stand on a page, and how addresses are made complete."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.response import get_base_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy.http import Response

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
