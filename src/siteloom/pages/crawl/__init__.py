"""Pages from the web: those of a list of addresses, or of a site from a start page on."""

from siteloom.pages.crawl.addresses import checked_url, is_public
from siteloom.pages.crawl.source import Crawl

__all__ = ["Crawl", "checked_url", "is_public"]
