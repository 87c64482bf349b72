"""Rows of records to the table `records` of an SQLite or PostgreSQL database.

The table has a row for each record: `url`, `wrapper`, `version`, a column of text
for each attribute, `confidence` (the lowest of the record), `duplicate_of`, and
`record`, the whole row as JSON. A single value stands as it is, several as a JSON
array. What a database refuses (NUL, half of a surrogate pair) becomes the
replacement character.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import Column, Double, Integer, MetaData, Table, Text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from siteloom.core.database import postgres_url, shown_address
from siteloom.core.errors import MissingExtra, OutputError, UsageError
from siteloom.core.sqlite_files import engine_for, journal_fault
from siteloom.core.storable_text import is_storable, storable
from siteloom.extraction.record_rows import column_names, lowest_confidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import URL, Connection

    from siteloom.core.table_files import RowWriter
    from siteloom.extraction.record_rows import Row

_TABLE = "records"
_FIXED = ("url", "wrapper", "version", "confidence", "duplicate_of", "record")
OF_POSTGRES = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
"""Columns that every table of PostgreSQL has."""
LONGEST_NAME = 63
"""Bytes of a name, of which PostgreSQL would cut off the rest."""
_LONGEST_DETAIL = 200  # it may show a whole row
_ROWS_AT_ONCE = 500


def check_database(address: str) -> None:
    """Raise now what would keep records from being written to a database."""
    url = _database_url(address)
    if not _is_new(url):
        with connection_to(url) as connection, table_errors(url, _TABLE):
            _columns_to_replace(connection)


@contextmanager
def open_table(address: str, attributes: Sequence[str]) -> Iterator[RowWriter]:
    """A writer to the table `records`, which is replaced when the block ends well.

    All happens in one transaction: until then, and after an error, the table is as
    it was. One that has the same columns already is emptied rather than made anew,
    so that views of it live on.
    """
    url = _database_url(address)
    is_new = _is_new(url)
    table = _table(attributes)
    try:
        with connection_to(url) as connection:
            with table_errors(url, _TABLE):
                _make_empty(connection, table)
            writer = _TableWriter(connection, table, attributes)
            yield writer
            with table_errors(url, _TABLE):
                writer.flush()
                connection.commit()
    except BaseException:
        if is_new and url.database:
            Path(url.database).unlink(missing_ok=True)
        raise


class _TableWriter:
    def __init__(self, connection: Connection, table: Table, attributes: Sequence[str]) -> None:
        self._connection = connection
        self._insert = table.insert()
        self._keys = {attribute: _key(number) for number, attribute in enumerate(attributes)}
        self._rows: list[dict[str, object]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        self._rows.append(self._cells(dict(row)))
        if len(self._rows) >= _ROWS_AT_ONCE:
            with table_errors(self._connection.engine.url, _TABLE):
                self.flush()

    def flush(self) -> None:
        if self._rows:
            self._connection.execute(self._insert, self._rows)
            self._rows.clear()

    def _cells(self, row: Row) -> dict[str, object]:
        duplicate_of = row["duplicate_of"]
        return {
            "url": storable(row["url"]),
            "wrapper": storable(row["wrapper"]),
            "version": row["version"],
            **{key: _cell(row["values"].get(attribute, [])) for attribute, key in self._keys.items()},
            "confidence": lowest_confidence(row),
            "duplicate_of": duplicate_of and storable(duplicate_of),
            "record": json_text(row),
        }


def _cell(texts: list[str]) -> str | None:
    if len(texts) > 1:
        return json_text(texts)
    return storable(texts[0]) if texts else None


def json_text(value: object) -> str:
    """A value as JSON that databases take."""
    text = json.dumps(value, ensure_ascii=False)
    # JSON may say NUL in other words, but PostgreSQL's own JSON refuses those too.
    is_fine = "\\u0000" not in text and is_storable(text)
    return text if is_fine else json.dumps(_all_storable(value), ensure_ascii=False)


def _all_storable(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_all_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): _all_storable(item) for name, item in value.items()}
    return value


def _table(attributes: Sequence[str]) -> Table:
    names = column_names(attributes, (*_FIXED, *OF_POSTGRES), fitted)
    return Table(
        _TABLE,
        MetaData(),
        Column("url", Text, nullable=False),
        Column("wrapper", Text, nullable=False),
        Column("version", Integer),
        # Keys, because drivers trip over what names of attributes may hold.
        *(Column(name, Text, key=_key(number)) for number, name in enumerate(names)),
        Column("confidence", Double),
        Column("duplicate_of", Text),
        Column("record", Text, nullable=False),
    )


def _key(number: int) -> str:
    return f"attribute_{number}"


def fitted(name: str) -> str:
    """A name that databases take; the end of one that is too long becomes a digest of it."""
    name = storable(name)
    content = name.encode()
    if len(content) <= LONGEST_NAME:
        return name
    end = f"~{blake2b(content, digest_size=4).hexdigest()}"
    return content[: LONGEST_NAME - len(end)].decode(errors="ignore") + end


def _make_empty(connection: Connection, table: Table) -> None:
    columns = _columns_to_replace(connection)
    if columns == [column.name for column in table.columns]:
        if connection.dialect.name == "postgresql":
            # Two that empty it at once would both fill it. Readers are let in.
            connection.exec_driver_sql(f"LOCK TABLE {_TABLE} IN EXCLUSIVE MODE")
        connection.execute(table.delete())
    else:
        table.drop(connection, checkfirst=True)
        table.create(connection)


def _columns_to_replace(connection: Connection) -> list[str]:
    """The columns of the table as it is, none if there is no table; refused if it is someone else's."""
    inspector = sqlalchemy.inspect(connection)
    if not inspector.has_table(_TABLE):
        return []
    columns = [column["name"] for column in inspector.get_columns(_TABLE)]
    if _TABLE not in inspector.get_table_names() or not set(_FIXED) <= set(columns):
        raise OutputError(
            f"The database {shown_address(connection.engine.url)} has a table {_TABLE} that Siteloom did "
            "not make: rename that table, or give another database."
        )
    return columns


def _database_url(address: str) -> URL:
    if not address.startswith("sqlite"):
        return postgres_url(address)
    wanted = "it must look like sqlite:///file.db"
    try:
        url = sqlalchemy.make_url(address)
    except ArgumentError:
        raise UsageError(f"The address {address} cannot be read: {wanted}.") from None
    if not url.database or url.database == ":memory:" or url.host or url.query:
        raise UsageError(f"{address} is no address of an SQLite file: {wanted}.")
    folder = Path(url.database).parent
    if not folder.is_dir():
        raise OutputError(f"There is no folder {folder} to write {address} to: make it first.")
    if fault := journal_fault(Path(url.database)):
        raise _refused(url, fault)
    return url.set(drivername="sqlite")


def _refused(url: URL, fault: str) -> OutputError:
    return OutputError(f"The database {url.database} is not opened: {fault}")


def _is_new(url: URL) -> bool:
    """Whether this is an SQLite file that is not there yet, which reading would make."""
    return url.get_backend_name() == "sqlite" and not Path(url.database or "").exists()


@contextmanager
def connection_to(url: URL, table: str = _TABLE) -> Iterator[Connection]:
    """A connection with a transaction that comes to nothing unless it is committed."""
    try:
        engine = engine_for(url, partial(_refused, url), poolclass=sqlalchemy.NullPool)
    except (ImportError, NoSuchModuleError) as error:
        raise MissingExtra("PostgreSQL", "postgres") from error
    with table_errors(url, table):
        connection = engine.connect()
    with connection:
        if engine.dialect.name == "sqlite":
            with table_errors(url, table):
                # Python would begin it only with the first row, after the table was dropped.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


@contextmanager
def table_errors(url: URL, table: str) -> Iterator[None]:
    """Say which table could not be written, and why."""
    try:
        yield
    except DBAPIError as error:
        raise OutputError(
            f"The table {table} of {shown_address(url)} cannot be written: {_reason(error)}."
        ) from error.orig


def _reason(error: DBAPIError) -> str:
    """What the database complains of, and of which row or column, where PostgreSQL tells that, too."""
    first, *others = str(error.orig).strip().splitlines()
    detail = next((line.removeprefix("DETAIL:") for line in others if line.startswith("DETAIL:")), "")
    told = f" ({shorten(detail, _LONGEST_DETAIL, placeholder=' ...').rstrip('.')})" if detail.strip() else ""
    return first.rstrip(".") + told
