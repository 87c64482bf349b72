"""Export a wrapper as a Scrapy spider: a single file that does not need siteloom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from siteloom.wrappers.exports import standalone_extractor, standalone_matcher
from siteloom.wrappers.exports.python_source import (
    class_name,
    evaluator,
    in_docstring,
    literal,
    module_name,
    rules_of,
    shared_by_name,
)
from siteloom.wrappers.exports.web_poet_page import url_matcher_patterns
from siteloom.wrappers.exports.xpath_json import wrapper_document
from siteloom.wrappers.matching import bytes_needed

if TYPE_CHECKING:
    from siteloom.core.model import Footprint
    from siteloom.wrappers.wrapper import Wrapper

_SPIDER = '''\
"""A spider for {about}.

    scrapy runspider FILE -O items.json
    scrapy runspider FILE -a start_urls=URL,URL -O items.json
    scrapy runspider FILE -a urls_file=urls.txt -O items.json

The first begins at the home pages, the second at the addresses given, and both follow the links of the site;
the third fetches just the addresses of a file, one a line. An item has the address of its page and all
attributes: a text or None, or a list if there may be several values.

Made by siteloom export. The rules are in WRAPPER; all below the spider evaluates them.
"""

from __future__ import annotations

{imports}

import scrapy
from lxml import etree
from scrapy.linkextractors import LinkExtractor

# The addresses of pages that have records, and how many of the eight bytes of a signature must be those of a
# page that is known. A signature tells which tags follow each other; ** is any byte.
PAGES = {pages}

{shared}
WRAPPER = {rules}


class {class_name}Spider(scrapy.Spider):
    """Gives the records of pages that look like those that the rules were learned from."""

    name = {name}
    allowed_domains = {sites}
    start_urls = {home_pages}
    # Ten links from the start lead to most pages of a site, and not for ever into a calendar.
    custom_settings = {{
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 1,
        "AUTOTHROTTLE_ENABLED": True,
        "DEPTH_LIMIT": 10,
    }}

    def __init__(self, start_urls="", urls_file="", **arguments):
        super().__init__(**arguments)
        self.follows_links = bool(self.allowed_domains) and not urls_file
        if start_urls or urls_file:
            self.start_urls = start_urls.replace(",", " ").split()
        if urls_file:
            with open(urls_file, encoding="utf-8") as file:
                self.start_urls += file.read().split()

    def parse(self, response):
        """The items of a page, and the links on it."""
        if not isinstance(response, scrapy.http.TextResponse):
            return
        page_signature = signature(response.body)
        page_fit = fit(PAGES, response.url, page_signature)
        if page_fit:
            found = records(WRAPPER, response.text, page_signature)
            if is_page_of(WRAPPER, found, page_fit):
                for record in found:
                    yield {{"url": response.url, **item(WRAPPER, record)}}
        if self.follows_links:
            yield from response.follow_all(LinkExtractor().extract_links(response))


# What follows is the same in every spider.

{evaluator}
'''


def to_spider(wrapper: Wrapper, name: str) -> str:
    """Return the source of a spider that extracts the records of a wrapper."""
    document = wrapper_document(wrapper)
    imports, source = evaluator(standalone_extractor, standalone_matcher)
    rules = literal(rules_of(document), reserved=len("WRAPPER = "))
    sites = document["sites"]
    return _SPIDER.format(
        about=in_docstring(f"{name} on {', '.join(sites)}" if sites else name),
        imports=imports,
        pages=literal(known_pages(wrapper), reserved=len("PAGES = ")),
        shared=shared_by_name(rules),
        rules=rules,
        class_name=class_name(name),
        name=literal(module_name(name)),
        sites=literal(sites, indent=1, reserved=len("allowed_domains = ")),
        home_pages=literal(_home_pages(wrapper.footprint), indent=1, reserved=len("start_urls = ")),
        evaluator=source,
    )


def _home_pages(footprint: Footprint) -> list[str]:
    """Return the home pages of the hosts of a footprint; those with a port are probably not encrypted."""
    hosts = (re.split("[/?|]", pattern)[0] for pattern in url_matcher_patterns(footprint))
    return [
        f"{'http' if ':' in host else 'https'}://{host}/" for host in dict.fromkeys(hosts) if "*" not in host
    ]


def known_pages(wrapper: Wrapper) -> dict[str, Any]:
    """Return the patterns and signatures that identify the pages of a wrapper."""
    footprint = wrapper.footprint
    return {
        "url_patterns": {pattern: bytes_needed(pattern) for pattern in footprint.url_patterns},
        "masks": [mask for mask, _ in footprint.masks],
        "accepted": list(footprint.accepted),
    }
