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
from siteloom.sources.seed_values import normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import URL, Engine


ROWS_AT_A_TIME = 1_000


class BadRow(NamedTuple):
    """A row that cannot be read, and why."""

    reason: str
    detail: str = ""


NumberedRows: TypeAlias = "Iterator[tuple[int, Mapping[str, object] | BadRow]]"
"""Rows as they come, each with its number, from 1 on or that of its line."""


class Rows(NamedTuple):
    """The numbered rows of something, how a place in it is named, and what it is called."""

    rows: NumberedRows
    place: str
    name: str


_DELIMITERS = ",;\t"
_LONGEST_LINE = 16_000_000  # bytes


def csv_rows(path: Path) -> NumberedRows:
    """The rows of a CSV file, whatever separates its cells, each with the number of its last line."""
    try:
        # What is no UTF-8 comes as half characters, so that the line where it stands can be told.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            lines = lines_at_most(file, _LONGEST_LINE)
            first = next(lines, "")
            delimiter = max(_DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), ())))
            rows = _rows_of_cells(chain([first], lines), delimiter, path)
            number, header = next(rows, (1, []))
            if isinstance(header, BadRow):
                raise SourceError(f"Line {number} of {path} cannot be read: {header.detail}.")
            names = [normal(name) for name in header]
            if not any(names):
                raise SourceError(f"{path} has no names of columns in its first line.")
            if "\0" in first or not _is_utf8(names):
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
    """The cells of each row, with the number of its last line.

    A quote that is not closed makes one value of all that follows. Raises SourceError if it goes on to the
    end, or too far; if another quote ends it, the row is bad.
    """
    taken: list[str] = []  # the lines of a row
    is_at_end = False

    def taking() -> Iterator[str]:
        nonlocal is_at_end
        for line in lines:
            taken.append(line)
            yield line
        is_at_end = True

    reader = csv.reader(taking(), delimiter=delimiter)
    while True:
        taken.clear()
        first = reader.line_num + 1
        try:
            cells: list[str] | BadRow | None = next(reader, None)
        except csv.Error as error:
            cells = BadRow("bad value", str(error))
        if cells is None:
            return
        if is_at_end:
            raise SourceError(
                f"The row that begins in line {first} of {path} has a quote that is not closed: close it, "
                "or take it out."
            )
        if isinstance(cells, BadRow) and len(taken) > 1:  # the reader has lost its place
            raise SourceError(
                f"The row that begins in line {first} of {path} has a value of more than "
                f"{csv.field_size_limit():,} characters over several lines: close its quote, or take it out."
            )
        if len(taken) > 1 and not _is_well_quoted(taken, delimiter):
            cells = BadRow("bad value", f"a quote that opens in line {first} is closed amid a value")
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
    """The objects of a JSON Lines file, each with the number of its line."""
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
    """The rows of a Parquet file."""
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
    """The rows of a table, or of a view, that is named behind the address of its database."""
    import sqlalchemy  # noqa: PLC0415 - slow to load, and most seeds are files

    address, table = _address_and_table(location)
    try:
        url = sqlalchemy.make_url(address)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise _bad_address() from None
    if not table:
        raise UsageError(f"Name the table of {_place(url)}: write its name behind a #.")
    engine = _engine(url)
    schema, _, name = table.rpartition(".")
    with _sql_errors(engine):
        inspector = sqlalchemy.inspect(engine)
        if inspector.has_table(table):
            schema, name = "", table
        elif not schema or not inspector.has_table(name, schema):
            known = sorted([*inspector.get_table_names(), *inspector.get_view_names()])
            raise SourceError(
                f"There is no table {table} in {_place(engine.url)}: there are {some_names(known) or 'none'}."
            )
    return Rows(_sql_rows(engine, name, schema), f"{table}, row ", name)


def _bad_address() -> UsageError:
    # It is not shown, because no one can tell where in it a password stands.
    return UsageError(
        "The address of the database cannot be read: it must look like sqlite:///file.db#table "
        "or postgresql://user@host/name#table."
    )


def _place(url: URL) -> str:
    """A database as it may be shown."""
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

    # Values are taken as the driver gives them: SQLite holds in a column what its type does not allow.
    table = sqlalchemy.table(name, schema=schema or None)
    query = sqlalchemy.select(sqlalchemy.text("*")).select_from(table)
    with _sql_errors(engine), engine.connect() as connection:
        found = connection.execution_options(yield_per=ROWS_AT_A_TIME).execute(query)
        names = list(found.keys())
        for number, row in enumerate(found, 1):
            yield number, dict(zip(names, row, strict=True))


@contextmanager
def _sql_errors(engine: Engine) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise SourceError(f"The database {_place(engine.url)} cannot be read: {reason}.") from error


_JSON_LINES_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_CSV_SUFFIXES = (".csv", ".tsv")
_PARQUET_SUFFIX = ".parquet"


def is_table(name: str) -> bool:
    """Whether the name of a file ends as those of known records do."""
    return name.lower().endswith((*_CSV_SUFFIXES, *_JSON_LINES_SUFFIXES, _PARQUET_SUFFIX))


def opened(location: str) -> Rows:
    """The rows at a location, told by what it is and what its name ends in."""
    path = Path(location)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:
        raise SourceError(f"{location} cannot be opened: {error}.") from error
    if not is_file and has_scheme(location) and is_table(without_query(location)):
        local = local_path(location)
        return _elsewhere(location) if local is None else opened(local)
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


def _elsewhere(location: str) -> Rows:
    """The rows of a file elsewhere, of which there is a copy while they are read."""
    found = look_up(location)
    if isinstance(found, Failure):
        raise source_error(found)
    name = without_query(location).rpartition("/")[2]

    def rows() -> NumberedRows:
        with TemporaryDirectory(prefix="siteloom-") as folder:
            copy = Path(folder, name)
            fetch_needed(location, copy)
            try:
                yield from opened(str(copy)).rows
            except SourceError as error:
                raise SourceError(str(error).replace(str(copy), shown(location))) from error

    of_row = ", row " if name.lower().endswith(_PARQUET_SUFFIX) else ":"
    return Rows(rows(), f"{shown(location)}{of_row}", Path(name).stem)
