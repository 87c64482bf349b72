"""Seeds as people have them: CSV, JSON Lines, Parquet and SQL tables, read row by row, and mappings.

A column or key is an attribute, but for `_source`, `_url` and `_confidence`; others that begin with `_` are
no part of a seed. Lists are several values of an attribute, and what is nested has the names of both, such as
`address.street`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.arrow import in_microseconds, load_pyarrow
from siteloom.config import without_passwords
from siteloom.errors import MissingExtra, SourceError, UsageError
from siteloom.filesystems import (
    WEB,
    fetch_needed,
    has_scheme,
    local_path,
    look_up,
    shown,
    source_error,
    without_query,
)
from siteloom.model import LONGEST_SOURCE, Failure, Seed, Skipped
from siteloom.telling import some_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sqlalchemy import URL, Engine

SOURCE_KEY = "_source"
URL_KEY = "_url"
CONFIDENCE_KEY = "_confidence"

WITHOUT_VALUES = "no values"

_JSON_LINES_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_CSV_SUFFIXES = (".csv", ".tsv")
_PARQUET_SUFFIX = ".parquet"
_DELIMITERS = ",;\t"
_OF_EXTRACTED = ("url", "wrapper", "values")
_LONGEST_LINE = 16_000_000  # bytes
_ROWS_AT_A_TIME = 1_000
_WHOLE_BELOW = 1e15  # floats beyond that are no longer exact
_LONGEST_SHOWN = 60

# What tables write where nothing is known, in any case. Not "na", which is Namibia, nor 0 and "unknown".
_NO_VALUES = frozenset(
    ("n/a", "#n/a", "<na>", "nan", "null", "none", "-", "--", "\N{EN DASH}", "\N{EM DASH}")
)


class _Bad(NamedTuple):
    """A row that cannot be read, and why."""

    reason: str
    detail: str = ""


class _Rows(NamedTuple):
    """The numbered rows of something, how a place in it is named, and what it is called."""

    rows: Iterator[tuple[int, Mapping[str, object] | _Bad]]
    place: str
    name: str


def is_table(name: str) -> bool:
    """Whether the name of a file ends as those of known records do."""
    return name.lower().endswith((*_CSV_SUFFIXES, *_JSON_LINES_SUFFIXES, _PARQUET_SUFFIX))


def read_seeds(
    location: str,
    source: str = "",
    several: Mapping[str, str] = MappingProxyType({}),
    on_problem: Callable[[Failure | Skipped], None] | None = None,
) -> Iterator[Seed]:
    """The seeds of a file or of an SQL table, such as `sqlite:///file.db#table`.

    `source` names where they are known from; without, it is what a row has as
    `_source`, else the name of the file or the table. `several` has separators by
    attribute, for values that stand in one text. Rows that cannot be read and those
    without values are left out, and `on_problem` is told of each.
    """
    opened = _opened(location)
    return _seeds(opened, source, several, on_problem or (lambda _: None))


def seed_of(row: Mapping[Any, object], source: str = "") -> Seed:
    """A row or another mapping as a seed, even if it has no values; it may be one of `siteloom extract`.

    Values are read as a page might show them: None and NaN are missing, and so are texts such as `n/a`, `-`
    and `null`; 4.0 is `4`, since gaps in a table make floats of whole numbers, and True is `true`. Raises
    UsageError if it is no mapping, or says of itself what cannot be.
    """
    try:
        if not isinstance(row, Mapping):
            raise UsageError(f"A known record must be a mapping of attributes, not {_shown(row)}.")
        if all(key in row for key in _OF_EXTRACTED) and isinstance(values := row["values"], Mapping):
            return Seed(_texts(values), source, _text(row["url"]), _lowest(row.get("confidence")))
        attributes = {key: value for key, value in row.items() if not _is_no_attribute(key)}
        if len(attributes) == len(row):
            return Seed(_texts(row), source)
        return Seed(
            _texts(attributes),
            _source(row.get(SOURCE_KEY)) or source,
            _only_text(row.get(URL_KEY), URL_KEY),
            _confidence(row.get(CONFIDENCE_KEY)),
        )
    except RecursionError:
        raise UsageError("A known record is nested too deeply.") from None


def _is_no_attribute(key: object) -> bool:
    return isinstance(key, str) and key.startswith("_")


def reshaped(seed: Seed, several: Mapping[str, str], renamed: Mapping[str, str]) -> Seed:
    """The seed with some values split at separators by attribute, and then with other names for attributes.

    Attributes that get the same name become one.
    """
    values: dict[str, tuple[str, ...]] = {}
    for name, texts in seed.values.items():
        new = renamed.get(name, name)
        parts = texts
        if separator := several.get(name):
            parts = tuple(filter(None, (_value(part) for text in texts for part in text.split(separator))))
        if new in values or separator:
            parts = tuple(dict.fromkeys((*values.get(new, ()), *parts)))
        if parts:
            values[new] = parts
    return Seed(values, seed.source, seed.url, seed.confidence)


def _address_and_table(location: str) -> tuple[str, str]:
    address, mark, table = location.rpartition("#")
    return (address, table) if mark else (location, "")


def _seeds(
    opened: _Rows, source: str, several: Mapping[str, str], on_problem: Callable[[Failure | Skipped], None]
) -> Iterator[Seed]:
    for number, row in opened.rows:
        try:
            seed = row if isinstance(row, _Bad) else seed_of(row, source or opened.name)
        except UsageError as error:
            seed = _Bad("bad value", str(error).removesuffix("."))
        if isinstance(seed, _Bad):
            on_problem(Failure(f"{opened.place}{number}", seed.reason, seed.detail))
            continue
        if several:
            seed = reshaped(seed, several, {})
        if source and seed.source != source:
            seed = Seed(seed.values, source, seed.url, seed.confidence)
        if seed.values:
            yield seed
        else:
            on_problem(Skipped(f"{opened.place}{number}", WITHOUT_VALUES))


def _opened(location: str) -> _Rows:
    """The rows at a location, told by what it is and what its name ends in."""
    path = Path(location)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:
        raise SourceError(f"{location} cannot be opened: {error}.") from error
    if not is_file and has_scheme(location) and is_table(without_query(location)):
        local = local_path(location)
        return _elsewhere(location) if local is None else _opened(local)
    if not is_file and location.startswith(WEB):
        raise SourceError(f"{shown(location)} is on the web, and no .csv, .tsv, .jsonl or .parquet file.")
    if not is_file and "://" in location:
        return _sql_table(location)
    name = path.name.lower()
    if not is_folder and not is_file:
        raise SourceError(f"There is no file {location}: check the path.")
    if not is_folder and name.endswith(_CSV_SUFFIXES):
        return _Rows(_csv_rows(path), f"{path}:", path.stem)
    if not is_folder and name.endswith(_JSON_LINES_SUFFIXES):
        return _Rows(_json_rows(path), f"{path}:", path.stem)
    if not is_folder and name.endswith(_PARQUET_SUFFIX):
        return _Rows(_parquet_rows(path, load_pyarrow()), f"{path}, row ", path.stem)
    raise SourceError(
        f"Cannot tell what {location} is: known records are a file named .csv, .tsv, .jsonl or .parquet, "
        "or a table such as sqlite:///file.db#table."
    )


def _elsewhere(location: str) -> _Rows:
    """The rows of a file elsewhere, of which there is a copy while they are read."""
    found = look_up(location)
    if isinstance(found, Failure):
        raise source_error(found)
    name = without_query(location).rpartition("/")[2]

    def rows() -> Iterator[tuple[int, Mapping[str, object] | _Bad]]:
        with TemporaryDirectory(prefix="siteloom-") as folder:
            copy = Path(folder, name)
            fetch_needed(location, copy)
            try:
                yield from _opened(str(copy)).rows
            except SourceError as error:
                raise SourceError(str(error).replace(str(copy), shown(location))) from error

    of_row = ", row " if name.lower().endswith(_PARQUET_SUFFIX) else ":"
    return _Rows(rows(), f"{shown(location)}{of_row}", Path(name).stem)


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object] | _Bad]]:
    try:
        # What is no UTF-8 comes as half characters, so that the line where it stands can be told.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            first = file.readline(_LONGEST_LINE)
            delimiter = max(_DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), ())))
            rows = _rows_of_cells(chain([first], file), delimiter, path)
            number, header = next(rows, (1, []))
            if isinstance(header, _Bad):
                raise SourceError(f"Line {number} of {path} cannot be read: {header.detail}.")
            names = [_normal(name) for name in header]
            if not any(names):
                raise SourceError(f"{path} has no names of columns in its first line.")
            if "\0" in first or not _is_utf8(names):
                raise SourceError(f"{path} is not written in UTF-8: save it as CSV in UTF-8.")
            for number, cells in rows:
                if isinstance(cells, _Bad):
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
) -> Iterator[tuple[int, list[str] | _Bad]]:
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
            cells: list[str] | _Bad | None = next(reader, None)
        except csv.Error as error:
            cells = _Bad("bad value", str(error))
        if cells is None:
            return
        if is_at_end:
            raise SourceError(
                f"The row that begins in line {first} of {path} has a quote that is not closed: close it, "
                "or take it out."
            )
        if isinstance(cells, _Bad) and len(taken) > 1:  # the reader has lost its place
            raise SourceError(
                f"The row that begins in line {first} of {path} has a value of more than "
                f"{csv.field_size_limit():,} characters over several lines: close its quote, or take it out."
            )
        if len(taken) > 1 and not _is_well_quoted(taken, delimiter):
            cells = _Bad("bad value", f"a quote that opens in line {first} is closed amid a value")
        yield reader.line_num, cells


def _is_well_quoted(lines: Iterable[str], delimiter: str) -> bool:
    try:
        next(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _csv_row(names: list[str], cells: list[str]) -> Mapping[str, object] | _Bad:
    if any(cells[len(names) :]):
        return _Bad("bad value", f"{len(cells)} cells, but {len(names)} columns")
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


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object] | _Bad]]:
    number = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):
                        line = file.readline(_LONGEST_LINE)
                    yield number, _Bad("bad value", f"the line has over {_LONGEST_LINE:,} bytes")
                elif not line.isspace():
                    yield number, _json_row(line)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}.") from error


def _json_row(line: bytes) -> Mapping[str, object] | _Bad:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _Bad("not valid JSON", str(error))
    return row if isinstance(row, dict) else _Bad("not a JSON object")


def _parquet_rows(path: Path, pyarrow: Any) -> Iterator[tuple[int, Mapping[str, object] | _Bad]]:
    number = 0
    try:
        # Not buffered ahead: Arrow would hold a whole row group, which may be the whole file.
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(_ROWS_AT_A_TIME):
                names = batch.schema.names
                for cells in zip(
                    *(in_microseconds(column, pyarrow) for column in batch.columns), strict=True
                ):
                    number += 1
                    yield number, _parquet_row(names, cells)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise SourceError(f"{path} cannot be read beyond row {number}: {error}.") from error


def _parquet_row(names: list[str], cells: tuple[Any, ...]) -> Mapping[str, object] | _Bad:
    try:
        return {name: cell.as_py() for name, cell in zip(names, cells, strict=True)}
    except (KeyError, OverflowError, ValueError) as error:  # no such time zone, no such time, no UTF-8
        return _Bad("bad value", str(error))


def _sql_table(location: str) -> _Rows:
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
    return _Rows(_sql_rows(engine, name, schema), f"{table}, row ", name)


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
        return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
        if url.get_backend_name() == "postgresql":
            raise MissingExtra("PostgreSQL", "postgres") from error
        raise SourceError(f"{url.drivername} databases need a driver that is not installed.") from error
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise _bad_address() from None


def _sql_rows(engine: Engine, name: str, schema: str) -> Iterator[tuple[int, Mapping[str, object] | _Bad]]:
    import sqlalchemy  # noqa: PLC0415

    # Values are taken as the driver gives them: SQLite holds in a column what its type does not allow.
    table = sqlalchemy.table(name, schema=schema or None)
    query = sqlalchemy.select(sqlalchemy.text("*")).select_from(table)
    with _sql_errors(engine), engine.connect() as connection:
        found = connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(query)
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


def _texts(values: Mapping[Any, object]) -> dict[str, tuple[str, ...]]:
    """The texts of all values by attribute, without repeats; those that are empty are left out."""
    texts: dict[str, tuple[str, ...]] = {}
    for key, value in values.items():
        name = _text(key)
        if not name:
            continue
        if isinstance(value, str | int | float) and name not in texts:  # as most are
            if text := _value(value):
                texts[name] = (text,)
            continue
        parts: dict[str, dict[str, None]] = {}  # of each attribute, in order
        for inner, text in _within(name, value):
            parts.setdefault(inner, dict.fromkeys(texts.get(inner, ())))[text] = None
        texts |= {inner: tuple(found) for inner, found in parts.items()}
    return texts


def _within(name: str, value: object) -> Iterator[tuple[str, str]]:
    """All texts inside of a value, each with the name of its attribute."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if inner := _text(key):
                yield from _within(f"{name}.{inner}", part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _within(name, part)
    elif isinstance(value, set | frozenset):
        yield from sorted(found for part in value for found in _within(name, part))
    elif getattr(value, "ndim", 0):  # an array of NumPy, or what is like one
        yield from _within(name, list(value))  # type: ignore[call-overload]
    elif text := _value(value):
        yield name, text


def _value(value: object) -> str:
    """The text of a value; nothing for one that says there is none."""
    text = _text(value)
    return "" if text.casefold() in _NO_VALUES else text


def _text(value: object) -> str:
    """A value as a page might show it; nothing for what is missing, or cannot be shown."""
    if isinstance(value, str):
        return _normal(value)
    if _is_missing(value):
        return ""
    try:
        return _normal(_shown_text(value))
    except (ValueError, ArithmeticError):  # a number of thousands of digits
        return ""


def _is_missing(value: object) -> bool:
    """Whether a value is None, or one that tables have for gaps: those are not equal to themselves."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # some refuse to be compared
        return True


def _shown_text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Real():
            number = float(value)
            if not math.isfinite(number):
                return ""
            is_whole = number.is_integer() and abs(number) < _WHOLE_BELOW
            return str(int(number)) if is_whole else str(value)
        case Decimal():
            return f"{value:f}" if value.is_finite() else ""
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case bytes():
            return _decoded(value)
    text = str(value)
    return text.lower() if text in ("True", "False") else text  # the truths of NumPy


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:  # an image, perhaps
        return ""


def _normal(text: str) -> str:
    return " ".join(text.split())


def _source(value: object) -> str:
    source = _only_text(value, SOURCE_KEY)
    if len(source.encode(errors="surrogatepass")) > LONGEST_SOURCE:
        raise UsageError(f"{SOURCE_KEY} is longer than {LONGEST_SOURCE} bytes.")
    return source


def _only_text(value: object, key: str) -> str:
    text = _text(value)
    if text and not isinstance(value, str):
        raise UsageError(f"{key} must be a text, not {_shown(value)}.")
    return text


def _confidence(value: object) -> float:
    text = _text(value)
    try:
        confidence = float(text or 1.0)
    except ValueError:
        confidence = math.nan
    if not 0 <= confidence <= 1:
        raise UsageError(f"{CONFIDENCE_KEY} must be a number from 0 to 1, not {_shown(value)}.")
    return confidence


def _shown(value: object) -> str:
    shown = _normal(repr(value))
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."


def _lowest(confidence: object) -> float:
    """The confidence of the least sure value of an extracted record."""
    by_attribute = confidence if isinstance(confidence, Mapping) else {}
    all_values = [value for values in by_attribute.values() if isinstance(values, list) for value in values]
    return min(map(_confidence, all_values), default=1.0)
