"""Write rows to JSON Lines, CSV, Parquet or standard output; the Column type; PyArrow and reading Parquet.

Dictionary-encoded values stay encoded until a row is read: otherwise some hundred bytes could become many
gigabytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import tempfile
from contextlib import closing, contextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from siteloom.core.atomic_files import AtomicFile
from siteloom.core.errors import MissingExtra, OutputError, UsageError
from siteloom.core.model import Failure
from siteloom.core.remote_files import check_writable, local_path, look_up, put, shown, without_query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


STANDARD_OUTPUT = "-"
LIST_SEPARATOR = " | "  # between the values of a list in CSV, which has no lists

_ROWS_OF_A_GROUP = 10_000
_BYTES_OF_A_GROUP = 16 * 2**20
_BYTES_OF_A_PIECE = 64 * 2**10
_ROWS_AT_ONCE = 500  # Python objects take far more memory than Arrow columns


class Column(NamedTuple):
    """A column: its name and kind. Rows are written in the order of the columns."""

    name: str
    kind: Kind = "text"


class ListOf(NamedTuple):
    """The kind of a list whose items are of one kind."""

    kind: Kind


class Fields(NamedTuple):
    """The kind of a value with columns of its own, like a row."""

    columns: tuple[Column, ...]


Kind: TypeAlias = Literal["text", "integer", "number", "flag", "time", "texts"] | ListOf | Fields
"""The kind of a column. `texts` are lists of text; CSV cannot hold deeper nesting."""


class RowWriter(Protocol):
    """Writes rows one by one."""

    def write(self, row: Mapping[str, object]) -> None:
        """Write a row; a column that it lacks is empty."""
        ...


def check_destination(destination: str) -> None:
    """Raise early if results cannot be written to a destination."""
    if destination == STANDARD_OUTPUT:
        return
    suffix = suffix_of(destination)
    if suffix not in _FORMATS:
        raise UsageError(
            f"Cannot tell the format of {shown(destination)}: the name must end in {', '.join(_FORMATS)}, "
            f"or be {STANDARD_OUTPUT} for standard output."
        )
    check_place(destination)
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise MissingExtra("Parquet", "parquet")


def check_place(destination: str) -> None:
    """Raise early if a file cannot be written at its location."""
    path = local_path(destination)
    if path is None:
        check_writable(destination)
    elif not (folder := Path(path).parent).is_dir():
        raise OutputError(f"There is no folder {folder} to write {Path(path).name} to: make it first.")


def suffix_of(destination: str) -> str:
    """Return the suffix of a destination, which determines its format."""
    return Path(without_query(destination)).suffix.lower()


def flat_for(destination: str, row: Mapping[str, object], deep: Collection[str]) -> dict[str, object]:
    """Convert a row for a format: `deep` columns become JSON texts, except in JSON Lines."""
    if destination == STANDARD_OUTPUT or suffix_of(destination) == ".jsonl":
        return dict(row)
    return {
        name: json.dumps(value, ensure_ascii=False, default=str) if name in deep else value
        for name, value in row.items()
    }


@contextmanager
def open_output(destination: str, columns: Sequence[Column]) -> Iterator[RowWriter]:
    """Open a local or remote file in the format of its suffix for writing rows, or standard output for `-`.

    The file appears complete when the block succeeds; otherwise a previous file stays unchanged.
    """
    if destination == STANDARD_OUTPUT:
        yield _ErrorReportingWriter(_JsonLinesWriter(sys.stdout.buffer, columns), "Standard output")
        with output_errors("Standard output"):
            sys.stdout.buffer.flush()
        return
    check_destination(destination)
    with whole_file(destination) as file:
        with output_errors(destination):
            writer = _FORMATS[suffix_of(destination)](file, columns)
        with _discarded_on_error(writer):
            yield _ErrorReportingWriter(writer, destination)
            with output_errors(destination):
                writer.finish()


@contextmanager
def whole_file(destination: str) -> Iterator[IO[bytes]]:
    """Open a local or remote file for writing, which appears when the block succeeds.

    Otherwise a previous file stays unchanged. A remote file is written locally first.
    """
    path = local_path(destination)
    if path is None:
        with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
            copy = Path(folder, "output")
            with copy.open("wb") as file:
                yield file
                with output_errors(destination):
                    file.flush()
            put(copy, destination)
        return
    with output_errors(destination):
        output = AtomicFile(Path(path))
    with closing(output):
        yield output.file
        with output_errors(destination):
            output.commit()


@contextmanager
def new_file(destination: str) -> Iterator[Path]:
    """Return the path for creating a file that does not exist yet; it is kept however the block ends.

    A remote file is created locally, and copied in the end.
    """
    path = local_path(destination)
    exists = Path(path).exists() if path is not None else not isinstance(look_up(destination), Failure)
    if exists:
        raise OutputError(f"{shown(destination)} is there already: remove it, or name another file.")
    if path is not None:
        yield Path(path)
        return
    check_writable(destination)
    with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
        copy = Path(folder, destination.rpartition("/")[2])
        try:
            yield copy
        finally:
            if copy.exists():
                put(copy, destination)


def stream_output(
    suffix: str, columns: Sequence[Column], rows: Iterable[Mapping[str, object]]
) -> Iterator[bytes]:
    """Yield the bytes of a file while its rows arrive, in a format that can be streamed."""
    buffer = io.BytesIO()
    writer = _STREAMED[suffix](buffer, columns)
    sent = 0  # the first bytes are sent at once, so that the client sees a response
    for row in rows:
        writer.write(row)
        if buffer.tell() >= (_BYTES_OF_A_PIECE if sent else 1):
            sent += buffer.tell()
            yield _drain(buffer)
    yield _drain(buffer)


def _drain(buffer: io.BytesIO) -> bytes:
    """Return the content of the buffer, and empty it."""
    content = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return content


@contextmanager
def _discarded_on_error(writer: _Writer) -> Iterator[None]:
    try:
        yield
    except BaseException:
        writer.discard()
        raise


@contextmanager
def output_errors(destination: str) -> Iterator[None]:
    """Raise an OutputError that names the destination for any error of the operating system."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has closed the pipe, which is not an error
    except OSError as error:
        raise OutputError(f"{shown(destination)} cannot be written: {error.strerror or error}.") from error


class _ErrorReportingWriter(NamedTuple):
    """A writer that names its destination in errors of writing; other errors are not changed."""

    writer: RowWriter
    destination: str

    def write(self, row: Mapping[str, object]) -> None:
        with output_errors(self.destination):
            self.writer.write(row)


class _Writer:
    """Writes rows one by one; a format with a footer overrides `finish`."""

    def write(self, row: Mapping[str, object]) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Write everything that is still buffered."""

    def discard(self) -> None:
        """Write nothing more, not even when garbage-collected."""


class _JsonLinesWriter(_Writer):
    def __init__(self, file: IO[bytes], columns: Sequence[Column]) -> None:
        self._file = file
        self._columns = columns

    def write(self, row: Mapping[str, object]) -> None:
        values = {column.name: _plain(row.get(column.name)) for column in self._columns}
        line = json.dumps(values, ensure_ascii=False) + "\n"
        self._file.write(line.encode("utf-8", "replace"))


class _CsvWriter(_Writer):
    def __init__(self, file: IO[bytes], columns: Sequence[Column]) -> None:
        self._text = io.TextIOWrapper(file, "utf-8", "replace", newline="", write_through=True)
        self._columns = columns
        self._writer = csv.writer(self._text)
        self._writer.writerow([column.name for column in columns])

    def write(self, row: Mapping[str, object]) -> None:
        self._writer.writerow([_cell(_plain(row.get(column.name))) for column in self._columns])


def arrow_schema(columns: Sequence[Column]) -> Any:
    """Return the columns as a schema of Arrow."""
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to load

    return pa.schema([(column.name, _arrow_type(pa, column.kind)) for column in columns])


def arrow_table(schema: Any, rows: Iterable[Mapping[str, object]]) -> Any:
    """Convert rows to a table of Arrow; missing columns are empty."""
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to load

    cells = [{name: _encodable(row.get(name)) for name in schema.names} for row in rows]
    return pa.Table.from_pylist(cells, schema=schema)


class _ParquetWriter(_Writer):
    def __init__(self, file: IO[bytes], columns: Sequence[Column]) -> None:
        import pyarrow as pa  # noqa: PLC0415 - optional, and slow to load
        import pyarrow.parquet as pq  # noqa: PLC0415

        self._arrow = pa
        self._schema = arrow_schema(columns)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[Mapping[str, object]] = []
        self._tables: list[Any] = []  # the group so far

    def write(self, row: Mapping[str, object]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._pack_rows()
            rows_of_group = sum(table.num_rows for table in self._tables)
            bytes_of_group = sum(table.nbytes for table in self._tables)
            if rows_of_group >= _ROWS_OF_A_GROUP or bytes_of_group >= _BYTES_OF_A_GROUP:
                self._write_group()

    def finish(self) -> None:
        self._pack_rows()
        self._write_group()
        self._writer.close()

    def discard(self) -> None:
        self._writer.is_open = False  # or it would write its footer to a closed file

    def _pack_rows(self) -> None:
        if self._rows:
            self._tables.append(arrow_table(self._schema, self._rows))
            self._rows.clear()

    def _write_group(self) -> None:
        if self._tables:
            self._writer.write_table(self._arrow.concat_tables(self._tables))
            self._tables.clear()


def _arrow_type(pa: Any, kind: Kind) -> Any:
    match kind:
        case "text":
            return pa.string()
        case "integer":
            return pa.int64()
        case "number":
            return pa.float64()
        case "flag":
            return pa.bool_()
        case "time":
            return pa.timestamp("us", "UTC")
        case "texts":
            return pa.list_(pa.string())
        case ListOf(inner):
            return pa.list_(_arrow_type(pa, inner))
        case Fields(columns):
            return pa.struct([(column.name, _arrow_type(pa, column.kind)) for column in columns])


_STREAMED: dict[str, Callable[[IO[bytes], Sequence[Column]], _Writer]] = {
    ".jsonl": _JsonLinesWriter,
    ".csv": _CsvWriter,
}
_FORMATS = {**_STREAMED, ".parquet": _ParquetWriter}


def _plain(value: object) -> Any:
    """Convert a value for JSON: infinite numbers and NaN become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _cell(value: object) -> object:
    """Convert a value for a CSV cell."""
    if isinstance(value, list):
        return LIST_SEPARATOR.join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _encodable(value: object) -> object:
    """Convert a value for Arrow: characters that UTF-8 cannot encode become `?`, as in the other formats."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {name: _encodable(item) for name, item in value.items()}
    return value


LARGEST_ROWS = 64_000_000
"""The limit of bytes of values converted to Python objects at once; a larger row is not read."""

_BUFFER_BYTES = 1 << 20
_BYTES_OF_A_REFERENCE = 8  # of a Python reference; the value itself may take none, such as None
_DELTA_ENCODING = "DELTA_BYTE_ARRAY"  # a value equal to the previous one takes a few bits


def load_pyarrow() -> Any:
    """Import PyArrow with Parquet and compute; raises MissingExtra if it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional, and slow to load
        import pyarrow.compute  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet") from error
    return pa


@contextmanager
def open_parquet(path: Path, pyarrow: Any) -> Iterator[Any]:
    """Open a Parquet file with dictionary-encoded texts and bytes left encoded."""
    metadata = pyarrow.parquet.read_metadata(path)
    # Without pre-buffering: Arrow would hold a whole row group, which may be the whole file.
    with pyarrow.parquet.ParquetFile(
        path,
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        read_dictionary=sorted(_dictionary_columns(metadata)),
    ) as file:
        yield file


def rows_at_a_time(file: Any, groups: Iterable[int], columns: Sequence[str] | None, most_rows: int) -> int:
    """Return how many rows to read at once if values without dictionary are as large as possible.

    Raises ValueError for lists of such values, since a single row may have any number of them.
    """
    metadata = file.metadata
    dictionary_columns = _dictionary_columns(metadata)
    largest_row = 1
    for group in groups:
        row_bytes = 0
        for number in range(metadata.num_columns):
            column, chunk = metadata.schema.column(number), metadata.row_group(group).column(number)
            value_bytes = _largest_value(column, chunk)
            is_selected = columns is None or column.path.partition(".")[0] in columns
            if not is_selected or column.path in dictionary_columns or not value_bytes:
                continue
            if column.max_repetition_level and chunk.num_values * value_bytes > LARGEST_ROWS:
                raise ValueError(f"the lists in its column {column.path} could take any amount of memory")
            row_bytes += value_bytes
        largest_row = max(largest_row, row_bytes)
    return max(1, min(most_rows, LARGEST_ROWS // largest_row))


def small_rows(batch: Any, pyarrow: Any) -> Iterator[Any]:
    """Split a batch into parts that may become Python objects; None stands for a row that is too large."""
    if decoded_bytes(batch.columns, pyarrow) <= LARGEST_ROWS:
        yield batch
    elif batch.num_rows == 1:
        yield None
    else:
        half = batch.num_rows // 2
        yield from small_rows(batch.slice(0, half), pyarrow)
        yield from small_rows(batch.slice(half), pyarrow)


def decoded_bytes(columns: Iterable[Any], pyarrow: Any) -> int:
    """Return the minimum size of columns as Python objects, in which each row has its own values."""
    return sum(_decoded_bytes(column, pyarrow) for column in columns)


def _decoded_bytes(column: Any, pyarrow: Any) -> int:
    kind, references = column.type, _BYTES_OF_A_REFERENCE * len(column)
    if isinstance(column, pyarrow.ExtensionArray):
        return _decoded_bytes(column.storage, pyarrow)
    if pyarrow.types.is_dictionary(kind):
        lengths = pyarrow.compute.binary_length(column.dictionary)
        text_bytes = pyarrow.compute.sum(lengths.take(column.indices)).as_py()
        return references + int(text_bytes or 0)
    if pyarrow.types.is_struct(kind):
        return references + decoded_bytes(column.flatten(), pyarrow)
    if pyarrow.types.is_nested(kind):
        return references + _decoded_bytes(column.flatten(), pyarrow)
    return references + int(column.nbytes)


def _dictionary_columns(metadata: Any) -> set[str]:
    """Return the columns whose values Arrow can leave dictionary-encoded."""
    columns = {number: metadata.schema.column(number) for number in range(metadata.num_columns)}
    return {
        column.path
        for number, column in columns.items()
        if column.physical_type == "BYTE_ARRAY"
        and column.logical_type.type != "DECIMAL"
        and not any(
            _DELTA_ENCODING in metadata.row_group(group).column(number).encodings
            for group in range(metadata.num_row_groups)
        )
    }


def _largest_value(column: Any, chunk: Any) -> int:
    """Return the maximum size of a value of a variable-length type; 0 for other types."""
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    return int(chunk.total_uncompressed_size) if column.physical_type == "BYTE_ARRAY" else 0


def in_microseconds(column: Any, pyarrow: Any) -> Any:
    """Convert times in nanoseconds, which Python lacks, to microseconds."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column
