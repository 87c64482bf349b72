"""Records as plain rows, and which of them repeat another."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

from siteloom.typed import to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.model import Record

Row: TypeAlias = dict[str, Any]
"""A record as JSON holds it: see `record_row`."""

_ENOUGH_ATTRIBUTES = 2  # one equal name is no proof


def record_row(record: Record, wrapper: str, version: int | None) -> Row:
    """A record as a row, with the name and the version of the wrapper that found it.

    `values`, `typed`, `confidence`, `provenance` and `withheld` have a list for
    each attribute. `duplicate_of` is None until `flag_duplicates` knows better.
    """
    confidence, provenance = {}, {}
    for attribute, origins in record.provenance.items():
        confidence[attribute] = [origin.confidence for origin in origins]
        # The XPath of a rule is the same in all records, and longer than most of them.
        provenance[attribute] = [{"rule": origin.rule, "node": origin.node} for origin in origins]
    return {
        "url": record.url,
        "wrapper": wrapper,
        "version": version,
        "values": {attribute: list(texts) for attribute, texts in record.values.items()},
        "typed": {attribute: list(map(to_plain, typed)) for attribute, typed in record.typed.items()},
        "confidence": confidence,
        "provenance": provenance,
        "withheld": {
            attribute: [{"text": text.text, "reason": text.reason, "node": text.node} for text in texts]
            for attribute, texts in record.withheld.items()
        },
        "duplicate_of": None,
    }


def flag_duplicates(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows in their order, each with the URL of the first that it repeats as `duplicate_of`.

    A row repeats another of the same wrapper, of any version, if it has exactly the
    same values at another URL. Those with values of fewer than two attributes repeat
    nothing. To know them again takes a digest and an URL for each row.
    """
    first_urls: dict[bytes, str] = {}
    for row in rows:
        if len(row["values"]) >= _ENOUGH_ATTRIBUTES:
            first_url = first_urls.setdefault(_digest(row), row["url"])
            yield row if first_url == row["url"] else {**row, "duplicate_of": first_url}
        else:
            yield row


def _digest(row: Row) -> bytes:
    content = json.dumps([row["wrapper"], row["values"]], sort_keys=True)
    return blake2b(content.encode(), digest_size=16).digest()
