"""Open a table of known records (CSV, JSON Lines, Parquet, SQL) and read it row by row."""

from __future__ import annotations

import csv
import json
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from siteloom.core.errors import MissingExtra, SourceError, UsageError
from siteloom.core.foreign_files import lines_at_most
from siteloom.core.model import Failure
from siteloom.core.remote_files import (
    WEB,
    fetch_needed,
    has_scheme,
    local_path,
    look_up,
    shown,
    source_error,
    without_query,
)
from siteloom.core.settings import without_passwords
from siteloom.core.sqlite_files import engine_for
from siteloom.core.table_files import (
    LARGEST_ROWS,
    in_microseconds,
    load_pyarrow,
    open_parquet,
    rows_at_a_time,
    small_rows,
)
from siteloom.core.wording import some_names
from siteloom.sources.seed_values import normalize_blanks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import URL, Engine


ROWS_AT_A_TIME = 1_000


class BadRow(NamedTuple):
    """A row that cannot be read, with the reason."""

    reason: str
    detail: str = ""


NumberedRows: TypeAlias = "Iterator[tuple[int, Mapping[str, object] | BadRow]]"
"""Rows in order, each with its number, from 1 on, or its line number."""


class Rows(NamedTuple):
    """The numbered rows of a table, the prefix of a row's location, and the name of the table."""

    rows: NumberedRows
    place: str
    name: str


_DELIMITERS = ",;\t"
_LONGEST_LINE = 16_000_000  # bytes


def csv_rows(path: Path) -> NumberedRows:
    """Yield the rows of a CSV file, whatever its delimiter, each with the number of its last line."""
    try:
        # Invalid UTF-8 is decoded to surrogates, so that the error can name its line.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            lines = lines_at_most(file, _LONGEST_LINE)
            first_line = next(lines, "")
            delimiter = max(
                _DELIMITERS, key=lambda mark: len(next(csv.reader([first_line], delimiter=mark), ()))
            )
            rows = _rows_of_cells(chain([first_line], lines), delimiter, path)
            number, header = next(rows, (1, []))
            if isinstance(header, BadRow):
                raise SourceError(f"Line {number} of {path} cannot be read: {header.detail}.")
            names = [normalize_blanks(name) for name in header]
            if not any(names):
                raise SourceError(f"{path} has no names of columns in its first line.")
            if "\0" in first_line or not _is_utf8(names):
                raise SourceError(f"{path} is not written in UTF-8: save it as CSV in UTF-8.")
            for number, cells in rows:
                if isinstance(cells, BadRow):
                    yield number, cells
                elif not _is_utf8(cells):
                    raise SourceError(
                        f"{path} is not written in UTF-8, as line {number} shows: save it as CSV in UTF-8."
                    )
                elif cells:  # else an empty line
                    yield number, _csv_row(names, cells)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}.") from error


def _rows_of_cells(
    lines: Iterable[str], delimiter: str, path: Path
) -> Iterator[tuple[int, list[str] | BadRow]]:
    """Yield the cells of each row, with the number of its last line.

    An unclosed quote makes one value of all following text. Raises SourceError if that extends to the end or
    too far; if another quote ends it, the row is bad.
    """
    row_lines: list[str] = []  # the lines of a row
    is_at_end = False

    def recorded_lines() -> Iterator[str]:
        nonlocal is_at_end
        for line in lines:
            row_lines.append(line)
            yield line
        is_at_end = True

    reader = csv.reader(recorded_lines(), delimiter=delimiter)
    while True:
        row_lines.clear()
        first_line_number = reader.line_num + 1
        try:
            cells: list[str] | BadRow | None = next(reader, None)
        except csv.Error as error:
            cells = BadRow("bad value", str(error))
        if cells is None:
            return
        if is_at_end:
            raise SourceError(
                f"The row that begins in line {first_line_number} of {path} has a quote that is not closed: "
                "close it, or take it out."
            )
        if isinstance(cells, BadRow) and len(row_lines) > 1:  # the reader cannot continue
            raise SourceError(
                f"The row that begins in line {first_line_number} of {path} has a value of more than "
                f"{csv.field_size_limit():,} characters over several lines: close its quote, or take it out."
            )
        if len(row_lines) > 1 and not _is_well_quoted(row_lines, delimiter):
            cells = BadRow(
                "bad value", f"a quote that opens in line {first_line_number} is closed amid a value"
            )
        yield reader.line_num, cells


def _is_well_quoted(lines: Iterable[str], delimiter: str) -> bool:
    try:
        next(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _csv_row(names: list[str], cells: list[str]) -> Mapping[str, object] | BadRow:
    if any(cells[len(names) :]):
        return BadRow("bad value", f"{len(cells)} cells, but {len(names)} columns")
    if len(set(names)) == len(names):
        return dict(zip(names, cells, strict=False))
    row: dict[str, list[str]] = {}
    for name, cell in zip(names, cells, strict=False):
        row.setdefault(name, []).append(cell)
    return row


def _is_utf8(cells: Iterable[str]) -> bool:
    text = "".join(cells)
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_rows(path: Path) -> NumberedRows:
    """Yield the objects of a JSON Lines file, each with its line number."""
    number = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):
                        line = file.readline(_LONGEST_LINE)
                    yield number, BadRow("bad value", f"the line has over {_LONGEST_LINE:,} bytes")
                elif not line.isspace():
                    yield number, _json_row(line)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}.") from error


def _json_row(line: bytes) -> Mapping[str, object] | BadRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadRow("not valid JSON", str(error))
    return row if isinstance(row, dict) else BadRow("not a JSON object")


def parquet_rows(path: Path, pyarrow: Any) -> NumberedRows:
    """Yield the rows of a Parquet file."""
    number = 0
    try:
        with open_parquet(path, pyarrow) as file:
            batch_rows = rows_at_a_time(file, range(file.num_row_groups), None, ROWS_AT_A_TIME)
            for batch in file.iter_batches(batch_rows):
                for rows in small_rows(batch, pyarrow):
                    if rows is None:
                        number += 1
                        yield number, BadRow("bad value", f"the row has over {LARGEST_ROWS:,} bytes")
                        continue
                    columns = [in_microseconds(column, pyarrow) for column in rows.columns]
                    for cells in zip(*columns, strict=True):
                        number += 1
                        yield number, _parquet_row(rows.schema.names, cells)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise SourceError(f"{path} cannot be read beyond row {number}: {error}.") from error


def _parquet_row(names: list[str], cells: tuple[Any, ...]) -> Mapping[str, object] | BadRow:
    try:
        return {name: cell.as_py() for name, cell in zip(names, cells, strict=True)}
    except (KeyError, OverflowError, ValueError) as error:  # no such time zone, no such time, no UTF-8
        return BadRow("bad value", str(error))


def _address_and_table(location: str) -> tuple[str, str]:
    address, mark, table = location.rpartition("#")
    return (address, table) if mark else (location, "")


def sql_table(location: str) -> Rows:
    """Read the rows of a table or view, which is named after the # of its database's address."""
    import sqlalchemy  # noqa: PLC0415 - slow to load, and most seeds are files

    address, table = _address_and_table(location)
    try:
        url = sqlalchemy.make_url(address)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise _bad_address() from None
    if not table:
        raise UsageError(f"Name the table of {_shown_database(url)}: write its name behind a #.")
    engine = _engine(url)
    schema, _, name = table.rpartition(".")
    with _sql_errors(engine):
        inspector = sqlalchemy.inspect(engine)
        if inspector.has_table(table):
            schema, name = "", table
        elif not schema or not inspector.has_table(name, schema):
            existing_tables = sorted([*inspector.get_table_names(), *inspector.get_view_names()])
            raise SourceError(
                f"There is no table {table} in {_shown_database(engine.url)}: "
                f"there are {some_names(existing_tables) or 'none'}."
            )
    return Rows(_sql_rows(engine, name, schema), f"{table}, row ", name)


def _bad_address() -> UsageError:
    # The address is not shown, because a password could be anywhere in it.
    return UsageError(
        "The address of the database cannot be read: it must look like sqlite:///file.db#table "
        "or postgresql://user@host/name#table."
    )


def _shown_database(url: URL) -> str:
    """Return the address of a database without passwords."""
    return without_passwords(url.set(drivername=url.get_backend_name()).render_as_string())


def _engine(url: URL) -> Engine:
    import sqlalchemy  # noqa: PLC0415

    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise SourceError(f"There is no file {url.database}: check the path.")  # SQLite would make one
    try:
        return engine_for(url, partial(_refused, url), poolclass=sqlalchemy.NullPool)
    except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
        if url.get_backend_name() == "postgresql":
            raise MissingExtra("PostgreSQL", "postgres") from error
        raise SourceError(f"{url.drivername} databases need a driver that is not installed.") from error
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise _bad_address() from None


def _refused(url: URL, fault: str) -> SourceError:
    return SourceError(f"The database {url.database} is not opened: {fault}")


def _sql_rows(engine: Engine, name: str, schema: str) -> NumberedRows:
    import sqlalchemy  # noqa: PLC0415

    # Values are not converted to column types, which SQLite does not enforce.
    table = sqlalchemy.table(name, schema=schema or None)
    query = sqlalchemy.select(sqlalchemy.text("*")).select_from(table)
    with _sql_errors(engine), engine.connect() as connection:
        result = connection.execution_options(yield_per=ROWS_AT_A_TIME).execute(query)
        names = list(result.keys())
        for number, row in enumerate(result, 1):
            yield number, dict(zip(names, row, strict=True))


@contextmanager
def _sql_errors(engine: Engine) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise SourceError(f"The database {_shown_database(engine.url)} cannot be read: {reason}.") from error


_JSON_LINES_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_CSV_SUFFIXES = (".csv", ".tsv")
_PARQUET_SUFFIX = ".parquet"


def is_table(name: str) -> bool:
    """Return whether a file has a suffix of tables of known records."""
    return name.lower().endswith((*_CSV_SUFFIXES, *_JSON_LINES_SUFFIXES, _PARQUET_SUFFIX))


def open_table(location: str) -> Rows:
    """Open the table at a location, by its kind and suffix."""
    path = Path(location)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:
        raise SourceError(f"{location} cannot be opened: {error}.") from error
    if not is_file and has_scheme(location) and is_table(without_query(location)):
        local = local_path(location)
        return _remote_rows(location) if local is None else open_table(local)
    if not is_file and location.startswith(WEB):
        raise SourceError(f"{shown(location)} is on the web, and no .csv, .tsv, .jsonl or .parquet file.")
    if not is_file and "://" in location:
        return sql_table(location)
    name = path.name.lower()
    if not is_folder and not is_file:
        raise SourceError(f"There is no file {location}: check the path.")
    if not is_folder and name.endswith(_CSV_SUFFIXES):
        return Rows(csv_rows(path), f"{path}:", path.stem)
    if not is_folder and name.endswith(_JSON_LINES_SUFFIXES):
        return Rows(json_rows(path), f"{path}:", path.stem)
    if not is_folder and name.endswith(_PARQUET_SUFFIX):
        return Rows(parquet_rows(path, load_pyarrow()), f"{path}, row ", path.stem)
    raise SourceError(
        f"Cannot tell what {location} is: known records are a file named .csv, .tsv, .jsonl or .parquet, "
        "or a table such as sqlite:///file.db#table."
    )


def _remote_rows(location: str) -> Rows:
    """Open a remote table, which is copied to a local file while it is read."""
    info = look_up(location)
    if isinstance(info, Failure):
        raise source_error(info)
    name = without_query(location).rpartition("/")[2]

    def rows() -> NumberedRows:
        with TemporaryDirectory(prefix="siteloom-") as folder:
            copy = Path(folder, name)
            fetch_needed(location, copy)
            try:
                yield from open_table(str(copy)).rows
            except SourceError as error:
                raise SourceError(str(error).replace(str(copy), shown(location))) from error

    of_row = ", row " if name.lower().endswith(_PARQUET_SUFFIX) else ":"
    return Rows(rows(), f"{shown(location)}{of_row}", Path(name).stem)
