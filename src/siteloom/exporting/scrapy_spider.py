"""A wrapper as a Scrapy spider: one file, which needs nothing of siteloom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.exporting.python_source import (
    class_name,
    evaluator,
    in_docstring,
    literal,
    module_name,
    rules_of,
)
from siteloom.exporting.xpath_json import wrapper_document

if TYPE_CHECKING:
    from siteloom.wrapper import Wrapper

_SPIDER = '''\
"""A spider for {about}.

    scrapy runspider FILE -O items.json
    scrapy runspider FILE -a start_urls=URL,URL -O items.json
    scrapy runspider FILE -a urls_file=urls.txt -O items.json

The first begins at the home page, the second at the addresses given, and both follow the links of the site;
the third fetches just the addresses of a file, one a line. An item has the address of its page and all
attributes: a text or None, or a list if there may be several values.

Made by siteloom export. The rules are in WRAPPER; all below the spider evaluates them.
"""

from __future__ import annotations

{imports}

import scrapy
from lxml import etree
from scrapy.linkextractors import LinkExtractor

SITES = {sites}
URL_PATTERNS = {url_patterns}
SETTINGS = {{"ROBOTSTXT_OBEY": True, "DOWNLOAD_DELAY": 1, "AUTOTHROTTLE_ENABLED": True}}
WRAPPER = {rules}


class {class_name}Spider(scrapy.Spider):
    """Gives the records of pages whose addresses look like those that the rules were learned from."""

    name = {name}
    allowed_domains = SITES
    custom_settings = SETTINGS

    def __init__(self, start_urls="", urls_file="", **arguments):
        super().__init__(**arguments)
        self.follows_links = bool(SITES) and not urls_file
        self.start_urls = start_urls.replace(",", " ").split()
        if urls_file:
            with open(urls_file, encoding="utf-8") as file:
                self.start_urls += file.read().split()
        elif not self.start_urls:
            self.start_urls = [f"https://{{site}}/" for site in SITES]

    def parse(self, response):
        """The items of a page, and the links on it."""
        if not isinstance(response, scrapy.http.TextResponse):
            return
        if self.has_records(response.url):
            found = records(WRAPPER, response.text)
            if is_page_of(WRAPPER, found):
                for record in found:
                    yield {{"url": response.url, **item(WRAPPER, record)}}
        if self.follows_links:
            yield from response.follow_all(LinkExtractor().extract_links(response))

    def has_records(self, url):
        """Whether an address is like those of pages with records; any is, if nothing is known of them."""
        url = url.partition("#")[0]
        return not URL_PATTERNS or any(re.fullmatch(one, url) for one in URL_PATTERNS)


# What follows is the same in every spider.

{evaluator}
'''


def to_spider(wrapper: Wrapper, name: str) -> str:
    """The source of a spider that gives the records of a wrapper."""
    document = wrapper_document(wrapper)
    imports, source = evaluator()
    sites = document["sites"]
    return _SPIDER.format(
        about=in_docstring(f"{name} on {', '.join(sites)}" if sites else name),
        imports=imports,
        rules=literal(rules_of(document), taken=len("WRAPPER = ")),
        class_name=class_name(name),
        name=literal(module_name(name)),
        sites=literal(sites, taken=len("SITES = ")),
        url_patterns=literal(document["url_patterns"], taken=len("URL_PATTERNS = ")),
        evaluator=source,
    )
