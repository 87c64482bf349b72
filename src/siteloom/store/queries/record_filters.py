"""Filter, sort and page records with the database's own JSON functions.

All is compared here and not in SQL, so that it means the same on every database: they differ in which letters
are the same but for their case, in how texts are sorted, and in which JSON they can read.

What a page of the table shows is read by the ids of its records, so that the last of many thousand pages is
as near as the first. Which ids these are is found once for a query: see `record_columns`.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import and_, func, select, tuple_

from siteloom.core.errors import NotFound
from siteloom.core.sequences import row_batches
from siteloom.core.storable_text import storable
from siteloom.store import schema
from siteloom.store.queries.records import ActiveRuns, active_runs, is_not_withdrawn, single_run
from siteloom.store.queries.runs import erasure_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Engine


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
    """A condition on the values of an attribute."""

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
        while batch := list(islice(records, _READ_TOGETHER)):
            self._add(batch)

    def _add(self, records: Sequence[tuple[int, str, str]]) -> None:
        sections = [_json_sections(content) for _, _, content in records]
        values, typed, shares = (f"[{','.join(texts)}]" for texts in zip(*sections, strict=True))
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
            shares_of_records = _items(self._shares)
            selected = (
                chain.from_iterable(shares.values()) if attribute is None else shares.get(attribute, ())
                for shares in shares_of_records
            )
            self._confidence[attribute] = array("d", [min(shares, default=math.nan) for shares in selected])
        return self._confidence[attribute]


def matching_records(chunks: Iterable[RecordColumns], query: RecordQuery) -> array[int]:
    """The ids of the records that a query is for, in its order; the chunks are in the order of the pages."""
    keys: list[_SortKey] = []
    sortable, unsortable = array("q"), array("q")
    for columns in chunks:
        rows = _matching_places(columns, query)
        if query.sort == "page":
            unsortable.extend(columns.ids[row] for row in rows)
            continue
        sort_keys = _sort_keys(columns, query)
        for row in rows:
            if (key := sort_keys[row]) is None:
                unsortable.append(columns.ids[row])
            else:
                sortable.append(columns.ids[row])
                keys.append(key)
    if query.sort == "page":
        return unsortable[::-1] if query.descending else unsortable
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=query.descending)
    return array("q", (sortable[row] for row in order)) + unsortable


def _matching_places(columns: RecordColumns, query: RecordQuery) -> Sequence[int]:
    places: Sequence[int] = range(len(columns))
    if words := query.words.casefold().split():
        texts = columns.haystacks()
        places = [place for place in places if all(word in texts[place] for word in words)]
    if url_part := query.url.casefold():
        places = [place for place in places if url_part in columns.urls[place].casefold()]
    for condition in query.conditions:
        places = _fulfilling(columns, condition, places)
    if (threshold := query.confidence_below) is not None:
        lowest = columns.confidence()
        places = [place for place in places if lowest[place] < threshold]
    return places


def _fulfilling(columns: RecordColumns, condition: Condition, places: Sequence[int]) -> Sequence[int]:
    attribute, operand = condition.attribute, condition.text.casefold()
    cells = columns.values(attribute)
    match condition.operator:
        case "contains":
            return [place for place in places if _has(cells[place], lambda text: operand in text.casefold())]
        case "is":
            return [place for place in places if _has(cells[place], lambda text: operand == text.casefold())]
        case "is not":
            return [
                place for place in places if not _has(cells[place], lambda text: operand == text.casefold())
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
    """Return the sort key of each record; numbers sort before texts."""
    match query.sort:
        case "url":
            return [(1, 0.0, url.casefold()) for url in columns.urls]
        case "confidence":
            return [None if math.isnan(value) else (0, value, "") for value in columns.confidence()]
        case _:
            numbers = columns.numbers(query.attribute)
            return [
                None
                if cell is None
                else (0, record_numbers[0], "")
                if record_numbers
                else (1, 0.0, _texts(cell)[0].casefold())
                for cell, record_numbers in zip(columns.values(query.attribute), numbers, strict=True)
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
    """Yield the item of each record from JSON arrays of several records."""
    return chain.from_iterable(map(json.loads, groups))


def _json_sections(content: str) -> tuple[str, str, str]:
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


_RECORDS_AT_A_TIME = 1_000  # of more, the garbage collector looks through all that there is again and again
_CONTENTS_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class RecordScope:
    """Which records there are to choose from: those that hold now, or those of one run.

    Those that are equal have the same records. `runs` has what each run was asked for, a site or None, and
    `sites` the site of each wrapper; `extent` is how many records a run that is not done has so far, and the
    greatest id. `forgetting` tells when records were removed.
    """

    runs: tuple[tuple[str | None, int], ...]
    sites: tuple[tuple[str, str], ...]
    is_one_run: bool
    extent: tuple[int, int] | None
    forgetting: tuple[int, str] | None

    @property
    def in_force(self) -> ActiveRuns:
        """Which record is of which site, if it is among them."""
        return ActiveRuns(dict(self.runs), dict(self.sites))


class RecordCount(NamedTuple):
    """The number of records of a site from a wrapper."""

    site: str
    wrapper: str
    records: int


class TableRow(NamedTuple):
    """A record of a table; `place` is its number among those of its page, from 0."""

    id: int
    site: str
    url: str
    wrapper: str
    version: int | None
    values: Mapping[str, Sequence[str]]
    confidence: Mapping[str, Sequence[float]]
    place: int


@dataclass(frozen=True, slots=True)
class RecordTable:
    """The records of a store as a table."""

    engine: Engine

    def scope(self, run_id: int | None = None) -> RecordScope:
        """The records to choose from: those that hold now, or those of a run of extract."""
        with self.engine.connect() as connection:
            forgetting = erasure_mark(connection)
        in_force = active_runs(self.engine) if run_id is None else single_run(self.engine, run_id)
        if in_force is None:
            raise NotFound(f"There is no run {run_id} of extract.")
        runs, sites = in_force
        extent = None if run_id is None else self._extent(run_id)  # what holds is of runs that are done
        known_sites = tuple(sorted(sites.items()))
        return RecordScope(tuple(runs.items()), known_sites, run_id is not None, extent, forgetting)

    def _extent(self, run_id: int) -> tuple[int, int] | None:
        runs, records = schema.runs.c, schema.records.c
        with self.engine.connect() as connection:
            if connection.execute(select(runs.status).where(runs.id == run_id)).scalar() == "done":
                return None
            query = select(func.count(), func.coalesce(func.max(records.id), 0))
            count, last_id = connection.execute(query.where(records.run_id == run_id)).one()
        return count, last_id

    def counts(self, scope: RecordScope) -> list[RecordCount]:
        """How many records there are of each site by each wrapper, most first."""
        columns = schema.records.c
        in_force = scope.in_force
        counts: Counter[tuple[str, str]] = Counter()
        for asked_for, run_id in scope.runs:
            counted = select(columns.wrapper, func.count()).where(_is_in_scope(scope, run_id))
            with self.engine.connect() as connection:
                wrappers = connection.execute(counted.group_by(columns.wrapper)).all()
            for wrapper, records in wrappers:
                urls = {"": records}
                if asked_for is None and wrapper not in in_force.sites:
                    # It is none of the workspace, or no longer: the URLs tell of which sites its records are.
                    of_wrapper = and_(_is_in_scope(scope, run_id), columns.wrapper == wrapper)
                    batches = self._in_batches(of_wrapper, columns.url)
                    urls = Counter(row.url for rows in batches for row in rows)
                for url, count in urls.items():
                    site = in_force.site_of(asked_for, wrapper, url)
                    if site is not None:
                        counts[site, wrapper] += count
        return [RecordCount(*key, records) for key, records in counts.most_common()]

    def ids(self, scope: RecordScope, site: str | None = None, wrapper: str | None = None) -> array[int]:
        """The ids of all records, of a site or by a wrapper, in the order of their pages."""
        ids = array("q")
        for rows in self._batches(scope, site, wrapper):
            ids.extend(row[0] for row in rows)
        return ids

    def chunks(
        self, scope: RecordScope, site: str | None = None, wrapper: str | None = None
    ) -> Iterator[RecordColumns]:
        """Yield all records, of a site or by a wrapper, as columns of some thousand records."""
        content = schema.records.c.content
        for rows in self._batches(scope, site, wrapper, content):
            if rows:
                yield RecordColumns((row[0], row[1], row[2]) for row in rows)

    def rows(self, scope: RecordScope, ids: Sequence[int]) -> list[TableRow]:
        """The records of some ids, in the same order; those that are gone by now are left out."""
        columns, same_page = schema.records.c, schema.records.alias("beside").c
        earlier_records = select(func.count()).where(
            same_page.url_key == columns.url_key,
            same_page.run_id == columns.run_id,
            tuple_(same_page.shard, same_page.place) < tuple_(columns.shard, columns.place),
        )
        query = select(
            columns.id,
            columns.run_id,
            columns.url,
            columns.wrapper,
            columns.wrapper_version,
            columns.content,
            earlier_records.scalar_subquery().label("place"),
        )
        with self.engine.connect() as connection:
            rows_by_id = {row.id: row for row in connection.execute(query.where(columns.id.in_(ids)))}
        in_force = scope.in_force
        asked_for = {run_id: site for site, run_id in scope.runs}
        rows = []
        for row in (rows_by_id[record_id] for record_id in ids if record_id in rows_by_id):
            content = json.loads(row.content)
            rows.append(
                TableRow(
                    row.id,
                    in_force.site_of(asked_for[row.run_id], row.wrapper, row.url) or "",
                    row.url,
                    row.wrapper,
                    row.wrapper_version,
                    content["values"],
                    content["confidence"],
                    row.place,
                )
            )
        return rows

    def contents(self, ids: Sequence[int]) -> Iterator[str]:
        """The JSON of the records of some ids, in the same order; those that are gone by now are left out."""
        columns = schema.records.c
        for start in range(0, len(ids), _CONTENTS_AT_A_TIME):
            batch = ids[start : start + _CONTENTS_AT_A_TIME]
            query = select(columns.id, columns.content).where(columns.id.in_(batch))
            with self.engine.connect() as connection:
                contents_by_id = {row.id: row.content for row in connection.execute(query)}
            yield from (contents_by_id[record_id] for record_id in batch if record_id in contents_by_id)

    def _batches(
        self, scope: RecordScope, site: str | None, wrapper: str | None, *further_columns: ColumnElement[Any]
    ) -> Iterator[Sequence[Any]]:
        """Id, URL and more of the records of a scope in the order of their pages, some thousand at a time."""
        columns = schema.records.c
        in_force = scope.in_force
        for asked_for, run_id in scope.runs:
            condition = _is_in_scope(scope, run_id)
            if wrapper is not None:
                condition = and_(condition, columns.wrapper == storable(wrapper))
            batches = self._in_batches(condition, columns.id, columns.url, *further_columns, columns.wrapper)
            if asked_for is not None or wrapper in in_force.sites:  # then all are of one site
                if (home := in_force.site_of(asked_for, wrapper or "", "")) and site in (None, home):
                    yield from batches
                continue
            for rows in batches:
                sites = (in_force.site_of(asked_for, row.wrapper, row.url) for row in rows)
                yield [row for row, home in zip(rows, sites, strict=True) if home and site in (None, home)]

    def _in_batches(
        self, condition: ColumnElement[bool], *columns: ColumnElement[Any]
    ) -> Iterator[Sequence[Any]]:
        order = [schema.records.c.shard, schema.records.c.place]
        return row_batches(self.engine, select(*columns, *order).where(condition), order, _RECORDS_AT_A_TIME)


def _is_in_scope(scope: RecordScope, run_id: int) -> ColumnElement[bool]:
    """Whether a record is of a run and, unless the scope is a single run, of a wrapper in force."""
    is_of_run = schema.records.c.run_id == run_id
    return is_of_run if scope.is_one_run else and_(is_of_run, is_not_withdrawn())
