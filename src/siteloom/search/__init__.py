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
from siteloom.search.ranking import LOOKED_AT, best_first

__all__ = [
    "LOOKED_AT",
    "AttributeCounts",
    "Highlighted",
    "Hit",
    "Query",
    "best_first",
    "common_segments",
    "page_document",
    "parse_query",
    "record_document",
    "shown_hit",
    "unreadable_document",
]
