"""Rows of records to a table of the user's own in PostgreSQL: those of the same URL are replaced.

The table has a row for each record: `url`, `position` (from 1 on among the records of a page), columns for
each attribute, `wrapper`, `version`, `confidence` (the lowest of the record), `duplicate_of`, `record` (the
whole row as JSON, with texts as seen), `first_written` and `last_written`. A table that is not there is made,
and columns that it lacks are added; what else it has is left alone.

| type | column |
|---|---|
| text, url, image | text |
| number, rating | numeric |
| price | numeric, and `NAME_currency` text |
| date | date |

Attributes with several values have arrays. A column that is there and can hold the values keeps its type;
one of text has them as seen, several as a JSON array.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import Column, Date, Double, Integer, MetaData, String, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.schema import CreateColumn, CreateTable

from siteloom.errors import OutputError, UsageError
from siteloom.record_rows.columns import lowest_confidence
from siteloom.record_rows.database import LONGEST_NAME, connection_to, json_text, table_errors
from siteloom.record_rows.own_columns import (
    Fit,
    FittedColumn,
    OwnTable,
    WantedColumn,
    columns_of_all,
    columns_of_attributes,
    fit_into,
)
from siteloom.store.database import postgres_url, shown_address
from siteloom.store.text import storable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.types import TypeEngine

    from siteloom.model import Attribute, ValueType
    from siteloom.output import RowWriter
    from siteloom.record_rows.rows import Row

_ROWS_AT_ONCE = 500
_LONGEST_KEY = 2_600  # bytes; PostgreSQL has at most 2,704 in a row of an index, which has the position, too

_WAITING = "siteloom_waiting"  # what is written so far, in a table that goes with the connection


def own_table(address: str) -> OwnTable | None:
    """The table that the address of a PostgreSQL database names behind that of the database, if any."""
    if not address.startswith("postgres"):
        return None
    url = postgres_url(address)
    database, slash, name = (url.database or "").partition("/")
    if not slash:
        return None
    schema, _, table = name.rpartition(".")
    if not table or "/" in name or "." in schema or name.startswith("."):
        raise UsageError(
            f"{shown_address(url)} names no table: it must look like postgresql://user@host/name/table, "
            "or .../name/schema.table."
        )
    if too_long := [one for one in (schema, table) if len(one.encode()) > LONGEST_NAME]:
        raise UsageError(
            f"The name {too_long[0]} is too long for PostgreSQL, which takes {LONGEST_NAME} bytes: give a "
            "shorter one."
        )
    return OwnTable(url.set(database=database), schema or None, table)


def check_own_table(table: OwnTable) -> None:
    """Raise now what would keep records from being written, whatever attributes they have."""
    with connection_to(table.url, str(table)) as connection, table_errors(table.url, str(table)):
        fit_into(connection, table, columns_of_all())


@contextmanager
def open_own_table(
    table: OwnTable, attributes: Mapping[str, Attribute], lists: Collection[str] = ()
) -> Iterator[RowWriter]:
    """A writer to the table, in which all happens at once when the block ends well.

    Rows of URLs that are written are replaced, others stay. If a page comes several times, the last one
    counts; the records of a page of the wrappers in `lists` stand one behind the other. What is written
    waits in the database without a lock, so that others can use the table meanwhile, and two that write
    to it at once come one after the other.
    """
    wanted = [*columns_of_all(), *columns_of_attributes(attributes)]
    with connection_to(table.url, str(table)) as connection:
        with table_errors(table.url, str(table)):
            connection.exec_driver_sql("SET TIME ZONE 'UTC'")
            fit = fit_into(connection, table, wanted)
            waiting = _waiting(fit.columns)
            waiting.create(connection)
            connection.commit()
        writer = _OwnTableWriter(connection, table, waiting, fit.columns, lists)
        yield writer
        with table_errors(table.url, str(table)):
            writer.flush()
            _merge(connection, table, waiting, wanted, fit)
            connection.commit()


def _waiting(columns: Sequence[FittedColumn]) -> Table:
    return Table(
        _WAITING,
        MetaData(),
        Column("page", Integer, nullable=False),
        Column("place", Integer, nullable=False),
        *(Column(one.key, _waiting_type(one)) for one in columns if one.wanted.kind != "time"),
        prefixes=["TEMPORARY"],
    )


def _waiting_type(column: FittedColumn) -> TypeEngine[Any]:
    """Texts, that become what the column is when they are put there."""
    if column.wanted.kind == "integer":
        return Integer()
    if column.key == "confidence":
        return Double()
    return ARRAY(Text()) if column.is_array else Text()


class _OwnTableWriter:
    def __init__(
        self,
        connection: Connection,
        table: OwnTable,
        waiting: Table,
        columns: Sequence[FittedColumn],
        lists: Collection[str],
    ) -> None:
        self._connection = connection
        self._table = table
        self._insert = waiting.insert()
        self._columns = [one for one in columns if one.wanted.kind != "time"]
        self._lists = lists
        self._page = self._place = 0
        self._last_url: str | None = None
        self._rows: list[dict[str, object]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        url = storable(row["url"])
        if len(url.encode()) > _LONGEST_KEY:
            raise OutputError(
                f"The address {url[:60]}... has {len(url.encode()):,} bytes, but the key of the table "
                f"{self._table} takes {_LONGEST_KEY:,}: give -o a file, or another form of table."
            )
        is_same_page = url == self._last_url and row["wrapper"] in self._lists
        self._page += not is_same_page
        self._place = self._place + 1 if is_same_page else 1
        self._last_url = url
        self._rows.append({"page": self._page, "place": self._place, **self._cells(dict(row), url)})
        if len(self._rows) >= _ROWS_AT_ONCE:
            with table_errors(self._table.url, str(self._table)):
                self.flush()

    def flush(self) -> None:
        if self._rows:
            self._connection.execute(self._insert, self._rows)
            # Nothing is in the table yet; a transaction that takes hours would only be in the way of others.
            self._connection.commit()
            self._rows.clear()

    def _cells(self, row: Row, url: str) -> dict[str, object]:
        duplicate_of = row["duplicate_of"]
        of_record = {
            "url": url,
            "position": self._place,
            "wrapper": storable(row["wrapper"]),
            "version": row["version"],
            "confidence": lowest_confidence(row),
            "duplicate_of": duplicate_of and storable(duplicate_of),
            "record": json_text(row),
        }
        return {
            one.key: of_record[one.key] if one.wanted.attribute is None else _cell(row, one)
            for one in self._columns
        }


def _cell(row: Row, column: FittedColumn) -> object:
    wanted = column.wanted
    is_as_seen = wanted.type == "text" or (wanted.kind != "text" and isinstance(column.cell_type, String))
    if is_as_seen:
        cells: list[str | None] = list(map(storable, row["values"].get(wanted.attribute, ())))
    else:
        cells = [_typed_text(value, column) for value in row["typed"].get(wanted.attribute, ())]
    if column.is_array:
        return cells or None
    if wanted.is_list and len(cells) > 1:
        return json_text(cells)
    return cells[0] if cells else None


_PARTS: dict[ValueType, str] = {"price": "amount", "rating": "value", "image": "url"}


def _typed_text(value: object, column: FittedColumn) -> str | None:
    """A typed value as a text that the database reads as the type of the column."""
    if isinstance(value, dict):
        value = value.get("currency" if column.wanted.is_currency else _PARTS.get(column.wanted.type))
    if not isinstance(value, str):
        return None
    return value.partition("T")[0] if isinstance(column.cell_type, Date) else storable(value)


def _merge(
    connection: Connection, table: OwnTable, waiting: Table, wanted: Sequence[WantedColumn], before: Fit
) -> None:
    """Put what waits into the table, in one transaction."""
    # Whoever comes second waits here, and finds the table that the first one made.
    connection.execute(sqlalchemy.select(func.pg_advisory_xact_lock(func.hashtextextended(str(table), 0))))
    fit = fit_into(connection, table, wanted)
    if _shape(fit) != _shape(before):
        raise OutputError(f"The table {table} was changed while records were extracted: try again.")
    target = Table(
        table.name,
        MetaData(),
        *(_as_column(one, is_key=one.name in fit.key) for one in fit.columns),
        schema=table.schema,
    )
    if fit.is_new:
        connection.execute(CreateTable(target))
    for one in fit.added:
        column = CreateColumn(target.columns[one.key]).compile(dialect=connection.dialect)
        name = connection.dialect.identifier_preparer.format_table(target)
        connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {column}")
    _keep_last_of_each(connection, waiting)
    if len(fit.key) == 1:
        _check_one_each(connection, table, waiting)
    _upsert(connection, target, waiting, fit)
    if len(fit.key) > 1:
        _remove_gone(connection, target, waiting)


def _shape(fit: Fit) -> list[tuple[str, bool]]:
    """All that matters to what waits."""
    return [(one.key, one.is_array) for one in fit.columns]


def _as_column(one: FittedColumn, *, is_key: bool) -> Column[Any]:
    default = func.now() if one.wanted.kind == "time" else None
    return Column(
        one.name, one.type, key=one.key, primary_key=is_key, server_default=default, autoincrement=False
    )


def _keep_last_of_each(connection: Connection, waiting: Table) -> None:
    """Of a page that came several times only what came last."""
    last = (
        sqlalchemy.select(waiting.c.url, func.max(waiting.c.page).label("page"))
        .group_by(waiting.c.url)
        .subquery("last")
    )
    connection.execute(waiting.delete().where(waiting.c.url == last.c.url, waiting.c.page < last.c.page))


def _check_one_each(connection: Connection, table: OwnTable, waiting: Table) -> None:
    several = sqlalchemy.select(waiting.c.url, func.max(waiting.c.place)).where(waiting.c.place > 1)
    found = connection.execute(several.group_by(waiting.c.url).order_by(waiting.c.url).limit(1)).first()
    if found is not None:
        raise OutputError(
            f"The page {found[0]} has {found[1]} records, but the table {table} has one row a URL: make url "
            "and position its primary key, or give another table."
        )


def _upsert(connection: Connection, target: Table, waiting: Table, fit: Fit) -> None:
    cells: dict[str, Any] = {}
    for one in fit.columns:
        if one.wanted.kind == "time":
            cells[one.key] = func.now()
        elif isinstance(one.cell_type, String):  # without a cast, which would cut off what is too long
            cells[one.key] = waiting.columns[one.key]
        else:
            cells[one.key] = sqlalchemy.cast(waiting.columns[one.key], one.type)
    # In the order of the key: others that change the same rows in another order would wait for each other.
    rows = sqlalchemy.select(*cells.values()).select_from(waiting).order_by(waiting.c.url, waiting.c.place)
    statement = insert(target).from_select(list(cells), rows)
    changed = {
        target.columns[one.key]: statement.excluded[one.key]
        for one in fit.columns
        if one.name not in fit.key and one.key != "first_written"
    }
    keys = [target.columns[one.key] for one in fit.columns if one.name in fit.key]
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed))


def _remove_gone(connection: Connection, target: Table, waiting: Table) -> None:
    """Remove records that pages have no longer."""
    last = (
        sqlalchemy.select(waiting.c.url, func.max(waiting.c.place).label("place"))
        .group_by(waiting.c.url)
        .subquery("last")
    )
    connection.execute(target.delete().where(target.c.url == last.c.url, target.c.position > last.c.place))
