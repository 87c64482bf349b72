"""Learned wrappers as what other programs run: XPath as JSON, a Scrapy spider, a web-poet page object."""

from siteloom.exporting.scrapy_spider import to_spider
from siteloom.exporting.web_poet import check_folder, page_object, write_page_object
from siteloom.exporting.xpath_json import as_texts, to_xpath_json, wrapper_document

__all__ = [
    "as_texts",
    "check_folder",
    "page_object",
    "to_spider",
    "to_xpath_json",
    "wrapper_document",
    "write_page_object",
]
