"""Write records to a table of the user's own in PostgreSQL.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import sqlalchemy
from sqlalchemy import (
    Column,
    Date,
    DateTime,
    Double,
    Float,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB, insert
from sqlalchemy.schema import CreateColumn, CreateTable

from siteloom.core.database import postgres_url, shown_address
from siteloom.core.errors import OutputError, UsageError
from siteloom.core.storable_text import storable
from siteloom.extraction.record_rows import column_names, lowest_confidence
from siteloom.extraction.records_to_database import (
    LONGEST_NAME,
    OF_POSTGRES,
    connection_to,
    fitted,
    json_text,
    table_errors,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy import URL, Connection, Dialect
    from sqlalchemy.types import TypeEngine

    from siteloom.core.model import Attribute, ValueType
    from siteloom.core.table_files import RowWriter
    from siteloom.extraction.record_rows import Row


class OwnTable(NamedTuple):
    """A table of a database, which may be in a schema that is named, too."""

    url: URL
    schema: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


Kind = Literal["text", "number", "day", "integer", "time", "JSON"]

_DEFAULT_TYPES: dict[Kind, TypeEngine[Any]] = {
    "text": Text(),
    "number": Numeric(),
    "day": Date(),
    "integer": Integer(),
    "time": DateTime(timezone=True),
    "JSON": JSONB(),
}

# Integers would take numbers, too, but round them. Texts take anything, as it was seen.
_FITTING_TYPES: dict[Kind, tuple[type[TypeEngine[Any]], ...]] = {
    "text": (String,),
    "number": (Numeric, Float, String),
    "day": (Date, DateTime, String),
    "integer": (Integer,),
    "time": (DateTime,),
    "JSON": (JSON, String),
}

_KIND_OF: dict[ValueType, Kind] = {"number": "number", "price": "number", "rating": "number", "date": "day"}


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column that the table should have: of an attribute, or of all records."""

    name: str
    kind: Kind
    attribute: str | None = None
    type: ValueType = "text"
    is_list: bool = False
    is_currency: bool = False

    @property
    def column_type(self) -> TypeEngine[Any]:
        """The type of the column where it is made."""
        return ARRAY(_DEFAULT_TYPES[self.kind]) if self.is_list else _DEFAULT_TYPES[self.kind]


class FittedColumn(NamedTuple):
    """A wanted column as the table has it, or will have it."""

    wanted: WantedColumn
    name: str
    type: TypeEngine[Any]
    key: str  # what it is called here, as drivers trip over what names of attributes may hold

    @property
    def is_array(self) -> bool:
        """Whether it has several values in a row."""
        return isinstance(self.type, ARRAY)

    @property
    def cell_type(self) -> TypeEngine[Any]:
        """The type of a single value."""
        return self.type.item_type if isinstance(self.type, ARRAY) else self.type


class Fit(NamedTuple):
    """How records fit into the table: its columns, those to be added, and by which rows are known."""

    columns: list[FittedColumn]
    added: list[FittedColumn]
    key: tuple[str, ...]
    is_new: bool


def columns_of_all() -> list[WantedColumn]:
    """The columns of all records, whatever attributes they have."""
    return [
        WantedColumn("url", "text"),
        WantedColumn("position", "integer"),
        WantedColumn("wrapper", "text"),
        WantedColumn("version", "integer"),
        WantedColumn("confidence", "number"),
        WantedColumn("duplicate_of", "text"),
        WantedColumn("record", "JSON"),
        WantedColumn("first_written", "time"),
        WantedColumn("last_written", "time"),
    ]


def columns_of_attributes(attributes: Mapping[str, Attribute]) -> list[WantedColumn]:
    """A column for each attribute, and one for the currency of each price."""
    prices = [name for name, one in attributes.items() if one.type == "price"]
    taken = (*(one.name for one in columns_of_all()), *OF_POSTGRES)
    names = column_names([*attributes, *(f"{name}_currency" for name in prices)], taken, fitted)
    types: dict[str, ValueType] = {name: one.type or "text" for name, one in attributes.items()}
    values = [
        WantedColumn(
            name, _KIND_OF.get(types[attribute], "text"), attribute, types[attribute], bool(one.multi)
        )
        for name, (attribute, one) in zip(names, attributes.items(), strict=False)
    ]
    currencies = [
        WantedColumn(name, "text", price, "price", bool(attributes[price].multi), is_currency=True)
        for name, price in zip(names[len(attributes) :], prices, strict=True)
    ]
    return values + currencies


def fit_into(connection: Connection, table: OwnTable, wanted: Sequence[WantedColumn]) -> Fit:
    """How records fit into the table as it is now; refused if they do not."""
    inspector = sqlalchemy.inspect(connection)
    if table.schema is not None and not inspector.has_schema(table.schema):
        raise OutputError(f"There is no schema {table.schema} in {shown_address(table.url)}: make it first.")
    if not inspector.has_table(table.name, table.schema):
        made = [
            FittedColumn(one, one.name, one.column_type, _key(one, number))
            for number, one in enumerate(wanted)
        ]
        return Fit(made, [], ("url", "position"), is_new=True)
    if table.name not in inspector.get_table_names(table.schema):
        raise OutputError(f"{table} of {shown_address(table.url)} is a view: give the name of a table.")
    there = {column["name"]: column for column in inspector.get_columns(table.name, table.schema)}
    in_any_case = {name.lower(): name for name in there}
    key = _key_of(inspector, table, in_any_case)
    columns, added = [], []
    for number, one in enumerate(wanted):
        name = one.name if one.name in there else in_any_case.get(one.name.lower())
        if name is not None:
            if there[name].get("computed"):
                raise OutputError(
                    f"The column {name} of the table {table} is computed by the database, so nothing can be "
                    "written to it: rename it, or give another table."
                )
            found = FittedColumn(one, name, there[name]["type"], _key(one, number))
            _check_type(table, found, connection.dialect)
            columns.append(found)
        elif one.name != "position" or len(key) > 1:
            columns.append(FittedColumn(one, one.name, one.column_type, _key(one, number)))
            added.append(columns[-1])
    used = {one.name for one in columns}
    for name, column in there.items():
        is_filled = column["nullable"] or any(column.get(how) for how in ("default", "identity", "computed"))
        if name not in used and not is_filled:
            raise OutputError(
                f"The column {name} of the table {table} must have a value, but records have none for it: "
                "give it a default, or let it be empty."
            )
    return Fit(columns, added, key, is_new=False)


def _key(wanted: WantedColumn, number: int) -> str:
    return wanted.name if wanted.attribute is None else f"attribute_{number}"


def _key_of(inspector: Any, table: OwnTable, in_any_case: Mapping[str, str]) -> tuple[str, ...]:
    """The columns by which rows are known: `url`, or `url` and `position`."""
    place = (table.name, table.schema)
    keys = [inspector.get_pk_constraint(*place)["constrained_columns"]]
    keys += [one["column_names"] for one in inspector.get_unique_constraints(*place)]
    keys += [
        one["column_names"]
        for one in inspector.get_indexes(*place)
        if one["unique"] and not one.get("dialect_options", {}).get("postgresql_where")
    ]
    known = [set(key) for key in keys if key]
    for names in (("url",), ("url", "position")):
        columns = tuple(in_any_case.get(name, name) for name in names)
        if set(columns) in known:
            return columns
    raise OutputError(
        f"The table {table} of {shown_address(table.url)} has no key by which records are known: make url, "
        "or url and position together, its primary key, or give another table."
    )


def _check_type(table: OwnTable, found: FittedColumn, dialect: Dialect) -> None:
    wanted = found.wanted
    # A single value is an array of one where there is one; of columns for one, those of text take several.
    is_room = (
        found.is_array or isinstance(found.type, String)
        if wanted.is_list
        else wanted.attribute is not None or not found.is_array
    )
    # To SQLAlchemy a type that has a list of values is one of texts.
    is_listed = isinstance(found.cell_type, sqlalchemy.Enum)
    if is_room and not is_listed and isinstance(found.cell_type, _FITTING_TYPES[wanted.kind]):
        return
    there, needed = (one.compile(dialect=dialect).lower() for one in (found.type, wanted.column_type))
    raise OutputError(
        f"The column {found.name} of the table {table} is {there}, but records need {needed}: "
        "change its type, rename it, or give another table."
    )


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
