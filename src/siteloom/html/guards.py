"""How much may come of a page: so many records, and so many characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.core.errors import TooMuchFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.core.model import Record
    from siteloom.core.settings import ParseSettings

TOO_MANY_RECORDS = "too many records"
RECORDS_TOO_LARGE = "records too large"
"""The reasons of pages that give more than they may."""


def bounded(records: Iterable[Record], limits: ParseSettings) -> Iterator[Record]:
    """Records as they come; TooMuchFound once they are more than a page may give. So memory is bounded."""
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
    """About how many characters a record has where it is written, with where its values stood."""
    count = sum(len(text) for texts in record.values.values() for text in texts)
    for origins in record.provenance.values():
        for origin in origins:
            count += len(origin.xpath) + len(origin.node)
    for withheld in record.withheld.values():
        for value in withheld:
            count += len(value.text) + len(value.node)
    return count
