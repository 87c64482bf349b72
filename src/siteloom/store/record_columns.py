"""Records by column, to be filtered and sorted.

All is compared here and not in SQL, so that it means the same on every database: they differ in which letters
are the same but for their case, in how texts are sorted, and in which JSON they can read.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Operator: TypeAlias = Literal[
    "contains", "is", "is not", "is empty", "has a value", "less", "greater", "at most", "at least", "unsure"
]
"""How the values of an attribute are held against a text, whatever the case of its letters. One value of
several is enough, but none may be what `is not` names. Numbers and dates are compared as such; `unsure` are
those of which one has a confidence below a number."""

Sorting: TypeAlias = Literal["page", "url", "confidence", "attribute"]

Cell: TypeAlias = str | tuple[str, ...] | None
"""The values of an attribute: one is by far the most usual, so that it stands for itself."""

_SortKey: TypeAlias = tuple[int, float, str]

_COMPARING = {"less": lt, "greater": gt, "at most": le, "at least": ge}
_DECIMAL = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.+Z-]+)?", re.ASCII)
_SECONDS_OF_A_DAY = 86_400

_READ_TOGETHER = 50
"""The JSON of so many records is read at once: that of each takes half as long again, and that of thousands
keeps the garbage collector busy."""

# How the parts of a record begin. A quote inside a text has a backslash before it, and behind an attribute's
# name stands a list: so they are found nowhere else.
_VALUES, _TYPED = '"values": {', ', "typed": {'
_CONFIDENCE, _PROVENANCE = ', "confidence": {', ', "provenance": {'


@dataclass(frozen=True, slots=True)
class Condition:
    """What the values of an attribute must be like."""

    attribute: str
    operator: Operator
    text: str = ""


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """Which records, and in which order.

    `words` must each stand somewhere in the values or the URL, `url` is a part of the URL, and
    `confidence_below` is for the least sure value. `attribute` is what they are sorted by, if it is one.
    Records without what they are sorted by come last; those that are equal in it stand as their pages do.
    """

    words: str = ""
    url: str = ""
    conditions: tuple[Condition, ...] = ()
    confidence_below: float | None = None
    sort: Sorting = "page"
    attribute: str = ""
    descending: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether no record is left out."""
        return not (self.words.strip() or self.url or self.conditions or self.confidence_below is not None)


class RecordColumns:
    """Some records by column; what is seldom asked for is read when it is.

    Several threads may ask at once: what is read is kept only when it is whole.
    """

    def __init__(self, records: Iterable[tuple[int, str, str]]) -> None:
        """Of records as they are kept: id, URL and JSON."""
        self.ids = array("q")
        self.urls: list[str] = []
        self._values: dict[str, list[Cell]] = {}
        self._typed: list[str] = []  # JSON of several records each, and so are the next
        self._shares: list[str] = []
        self._haystacks: Sequence[str] | None = None
        self._numbers: dict[str, Sequence[tuple[float, ...]]] = {}
        self._confidence: dict[str | None, Sequence[float]] = {}
        records = iter(records)
        while some := list(islice(records, _READ_TOGETHER)):
            self._add(some)

    def _add(self, records: Sequence[tuple[int, str, str]]) -> None:
        parts = [_parts(content) for _, _, content in records]
        values, typed, shares = (f"[{','.join(texts)}]" for texts in zip(*parts, strict=True))
        rows: list[dict[str, list[str]]] = json.loads(values)
        for name in dict.fromkeys(chain.from_iterable(rows)):
            column = self._values.setdefault(name, [])
            column.extend([None] * (len(self) - len(column)))
            column += [
                texts[0] if (texts := row.get(name)) and len(texts) == 1 else tuple(texts) if texts else None
                for row in rows
            ]
        self._typed.append(typed)
        self._shares.append(shares)
        self.ids.extend(record_id for record_id, _, _ in records)
        self.urls += [url for _, url, _ in records]

    def __len__(self) -> int:
        return len(self.ids)

    def values(self, attribute: str) -> Sequence[Cell]:
        """The values of an attribute, for each record."""
        column = self._values.get(attribute, [])
        return column + [None] * (len(self) - len(column))

    def haystacks(self) -> Sequence[str]:
        """All texts of each record, in which words are looked for."""
        if self._haystacks is None:
            columns = [
                [cell if isinstance(cell, str) else "\n".join(cell or ()) for cell in self.values(attribute)]
                for attribute in self._values
            ]
            texts = map("\n".join, zip(self.urls, *columns, strict=True))
            self._haystacks = [text.casefold() for text in texts]
        return self._haystacks

    def numbers(self, attribute: str) -> Sequence[tuple[float, ...]]:
        """The numbers and dates that the values of an attribute are, for each record.

        Where they have no type, only what is plainly a number is one.
        """
        if attribute not in self._numbers:
            cells = zip(self.values(attribute), _items(self._typed), strict=True)
            self._numbers[attribute] = [
                _magnitudes(map(_plain_number, typed[attribute]) if attribute in typed else _texts(cell))
                for cell, typed in cells
            ]
        return self._numbers[attribute]

    def confidence(self, attribute: str | None = None) -> Sequence[float]:
        """The lowest confidence of an attribute's values, or of all; NaN where there is no value."""
        if attribute not in self._confidence:
            found = _items(self._shares)
            asked = (
                chain.from_iterable(shares.values()) if attribute is None else shares.get(attribute, ())
                for shares in found
            )
            self._confidence[attribute] = array("d", [min(shares, default=math.nan) for shares in asked])
        return self._confidence[attribute]


def matching_records(chunks: Iterable[RecordColumns], query: RecordQuery) -> array[int]:
    """The ids of the records that a query is for, in its order; the chunks are in the order of the pages."""
    keys: list[_SortKey] = []
    sortable, others = array("q"), array("q")
    for columns in chunks:
        places = _matching_places(columns, query)
        if query.sort == "page":
            others.extend(columns.ids[place] for place in places)
            continue
        found = _sort_keys(columns, query)
        for place in places:
            if (key := found[place]) is None:
                others.append(columns.ids[place])
            else:
                sortable.append(columns.ids[place])
                keys.append(key)
    if query.sort == "page":
        return others[::-1] if query.descending else others
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=query.descending)
    return array("q", (sortable[place] for place in order)) + others


def _matching_places(columns: RecordColumns, query: RecordQuery) -> Sequence[int]:
    places: Sequence[int] = range(len(columns))
    if words := query.words.casefold().split():
        texts = columns.haystacks()
        places = [place for place in places if all(word in texts[place] for word in words)]
    if part := query.url.casefold():
        places = [place for place in places if part in columns.urls[place].casefold()]
    for condition in query.conditions:
        places = _fulfilling(columns, condition, places)
    if (below := query.confidence_below) is not None:
        lowest = columns.confidence()
        places = [place for place in places if lowest[place] < below]
    return places


def _fulfilling(columns: RecordColumns, condition: Condition, places: Sequence[int]) -> Sequence[int]:
    attribute, wanted = condition.attribute, condition.text.casefold()
    cells = columns.values(attribute)
    match condition.operator:
        case "contains":
            return [place for place in places if _has(cells[place], lambda text: wanted in text.casefold())]
        case "is":
            return [place for place in places if _has(cells[place], lambda text: wanted == text.casefold())]
        case "is not":
            return [
                place for place in places if not _has(cells[place], lambda text: wanted == text.casefold())
            ]
        case "is empty":
            return [place for place in places if cells[place] is None]
        case "has a value":
            return [place for place in places if cells[place] is not None]
        case operator:
            limit = magnitude(condition.text)
            if limit is None:
                return ()
            if operator == "unsure":
                confidence = columns.confidence(attribute)
                return [place for place in places if confidence[place] < limit]
            fits, numbers = _COMPARING[operator], columns.numbers(attribute)
            return [place for place in places if any(fits(number, limit) for number in numbers[place])]


def _has(cell: Cell, fits: Callable[[str], bool]) -> bool:
    return fits(cell) if isinstance(cell, str) else any(map(fits, cell or ()))


def _sort_keys(columns: RecordColumns, query: RecordQuery) -> Sequence[_SortKey | None]:
    """What each record is sorted by: numbers before texts."""
    match query.sort:
        case "url":
            return [(1, 0.0, url.casefold()) for url in columns.urls]
        case "confidence":
            return [None if math.isnan(value) else (0, value, "") for value in columns.confidence()]
        case _:
            numbers = columns.numbers(query.attribute)
            return [
                None if cell is None else (0, known[0], "") if known else (1, 0.0, _texts(cell)[0].casefold())
                for cell, known in zip(columns.values(query.attribute), numbers, strict=True)
            ]


def magnitude(text: str) -> float | None:
    """The number that a text is, or the day that it is in days; None if it is neither."""
    if _DECIMAL.fullmatch(text):
        return float(text)
    if not _DATE.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    seconds = time.hour * 3_600 + time.minute * 60 + time.second
    if (offset := time.utcoffset()) is not None:
        seconds -= int(offset.total_seconds())
    return time.toordinal() + seconds / _SECONDS_OF_A_DAY


def _magnitudes(texts: Iterable[str]) -> tuple[float, ...]:
    return tuple([value for text in texts if (value := magnitude(text)) is not None])


def _plain_number(typed: object) -> str:
    """The text of the number in the JSON form of a typed value: that of a price, of a rating, or itself."""
    if isinstance(typed, dict):
        typed = typed.get("amount") or typed.get("value")
    return typed if isinstance(typed, str) else ""


def _texts(cell: Cell) -> Sequence[str]:
    return (cell,) if isinstance(cell, str) else cell or ()


def _items(groups: Iterable[str]) -> Iterator[Any]:
    """What there is of each record in the JSON of several together."""
    return chain.from_iterable(map(json.loads, groups))


def _parts(content: str) -> tuple[str, str, str]:
    """The JSON of a record's values, of its typed values and of its confidence.

    To read all of a record would take twice as long, most of it for where each value was found.
    """
    values = content.find(_VALUES)
    typed = content.find(_TYPED, values)
    confidence = content.find(_CONFIDENCE, typed)
    end = content.find(_PROVENANCE, confidence)
    if 0 <= values < typed < confidence < end:
        return (
            content[values + len(_VALUES) - 1 : typed],
            content[typed + len(_TYPED) - 1 : confidence],
            content[confidence + len(_CONFIDENCE) - 1 : end],
        )
    row: Mapping[str, Any] = json.loads(content)  # whoever wrote it put its parts in another order
    return json.dumps(row["values"]), json.dumps(row["typed"]), json.dumps(row["confidence"])
