"""Search over pages and records: what of them is searched, what is asked for, and how finds are shown."""

from siteloom.search.documents import (
    AttributeCounts,
    common_segments,
    page_document,
    record_document,
    unreadable_document,
)
from siteloom.search.highlights import Highlighted, Hit, shown_hit
from siteloom.search.queries import Query, parse_query

__all__ = [
    "AttributeCounts",
    "Highlighted",
    "Hit",
    "Query",
    "common_segments",
    "page_document",
    "parse_query",
    "record_document",
    "shown_hit",
    "unreadable_document",
]
