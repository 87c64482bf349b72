"""The stylesheets of pages, and those that they import: what it takes to show pages as they looked."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.http import TextResponse
from scrapy.utils.response import get_base_url

from siteloom.pages.crawl.links import complete

if TYPE_CHECKING:
    from collections.abc import Iterator

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
