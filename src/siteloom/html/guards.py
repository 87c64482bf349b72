"""Limit the records of a page in number and in characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.core.errors import TooMuchFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.core.model import Record
    from siteloom.core.settings import ParseSettings

TOO_MANY_RECORDS = "too many records"
RECORDS_TOO_LARGE = "records too large"
"""The reasons of failures of pages that exceed the limits."""


def bounded(records: Iterable[Record], limits: ParseSettings) -> Iterator[Record]:
    """Yield records, and raise TooMuchFound once they exceed the limits of a page, so memory is bounded."""
    characters = 0
    for number, record in enumerate(records, 1):
        if number > limits.max_records:
            raise TooMuchFound(TOO_MANY_RECORDS, f"at most {limits.max_records:,} are taken from a page")
        characters += _characters(record)
        if characters > limits.max_characters:
            detail = f"at most {limits.max_characters:,} characters are taken from a page"
            raise TooMuchFound(RECORDS_TOO_LARGE, detail)
        yield record


def _characters(record: Record) -> int:
    """Estimate the number of characters of a record as written, including its provenance."""
    count = sum(len(text) for texts in record.values.values() for text in texts)
    for origins in record.provenance.values():
        for origin in origins:
            count += len(origin.xpath) + len(origin.node)
    for withheld in record.withheld.values():
        for value in withheld:
            count += len(value.text) + len(value.node)
    return count
