"""Records as plain rows for output; which rows repeat another."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

from siteloom.core.model import Attribute
from siteloom.core.values.value_types import to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Record


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
    first_urls = FirstUrls()
    for row in rows:
        first_url = first_urls.repeated(row_digest(row), row["url"])
        yield row if first_url is None else {**row, "duplicate_of": first_url}


def row_digest(row: Row) -> bytes | None:
    """Equal for rows of one wrapper with the same values; None for one with too few to repeat another."""
    if len(row["values"]) < _ENOUGH_ATTRIBUTES:
        return None
    content = json.dumps([row["wrapper"], row["values"]], sort_keys=True)
    return blake2b(content.encode(), digest_size=16).digest()


class FirstUrls:
    """The URL at which each record came first."""

    def __init__(self) -> None:
        self._urls: dict[bytes, str] = {}

    def repeated(self, digest: bytes | None, url: str) -> str | None:
        """The URL of the record that the one at this URL repeats; None if it is the first, or at that URL."""
        if digest is None:
            return None
        first = self._urls.setdefault(digest, url)
        return None if first == url else first


def column_names(
    attributes: Sequence[str], taken: Iterable[str], fitted: Callable[[str], str] = str
) -> list[str]:
    """The names of the attributes' columns: their own, or `values.NAME` where another column has that one.

    Names that differ only in case are the same, as they are to most databases.
    `fitted` is what becomes of a name that is not possible as it is.
    """
    known = {"", *(name.lower() for name in taken)}
    names = []
    for attribute in attributes:
        name = attribute
        while fitted(name).lower() in known:
            name = f"values.{name}"
        known.add(fitted(name).lower())
        names.append(fitted(name))
    return names


def lowest_confidence(row: Row) -> float | None:
    """The confidence of the least sure value; None if there is no value."""
    return min((value for values in row["confidence"].values() for value in values), default=None)


def common_schema(schemas: Iterable[Mapping[str, Attribute]]) -> dict[str, Attribute]:
    """What holds of attributes of one name in several schemas: where their types differ, they are text."""
    common: dict[str, Attribute] = {}
    for schema in schemas:
        for name, one in schema.items():
            other = common.get(name, one)
            is_one_type = (one.type or "text") == (other.type or "text")
            common[name] = Attribute(
                multi=bool(one.multi or other.multi), type=one.type if is_one_type else "text"
            )
    return common
