"""Pages from the web: those of a list of addresses, or of a site from a start page on."""

from siteloom.pages.crawl.addresses import ALLOWING_PRIVATE, PRIVATE, checked_url
from siteloom.pages.crawl.journal import Journal
from siteloom.pages.crawl.patterns import UrlPatterns, checked_pattern
from siteloom.pages.crawl.progress import Done, Found, Links, Progress
from siteloom.pages.crawl.public_addresses import is_public
from siteloom.pages.crawl.source import FORBIDDEN, NOT_MODIFIED, WALKED, Crawl, Ended

__all__ = [
    "ALLOWING_PRIVATE",
    "FORBIDDEN",
    "NOT_MODIFIED",
    "PRIVATE",
    "WALKED",
    "Crawl",
    "Done",
    "Ended",
    "Found",
    "Journal",
    "Links",
    "Progress",
    "UrlPatterns",
    "checked_pattern",
    "checked_url",
    "is_public",
]
