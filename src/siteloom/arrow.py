"""PyArrow, where it is there, for all that read Parquet files, which someone else may have made.

A value that is kept once for many rows stays so until a row is wanted: else some hundred bytes could become
any number of gigabytes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from siteloom.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

LARGEST_ROWS = 64_000_000
"""So many bytes of values become Python objects at once, and a row that has more is not read."""

_BUFFER_BYTES = 1 << 20
_BYTES_OF_A_REFERENCE = 8  # of Python to a value, which may itself take none, such as nothing
_REPEATING = "DELTA_BYTE_ARRAY"  # in which a value may be the one before it, in a few bits


def load_pyarrow() -> Any:
    """The package with what reads Parquet and computes; raises MissingExtra where it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional, and slow to load
        import pyarrow.compute  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet") from error
    return pa


@contextmanager
def open_parquet(path: Path, pyarrow: Any) -> Iterator[Any]:
    """A Parquet file whose texts and bytes come as they are kept, each value once."""
    metadata = pyarrow.parquet.read_metadata(path)
    # Not buffered ahead: Arrow would hold a whole row group, which may be the whole file.
    with pyarrow.parquet.ParquetFile(
        path, pre_buffer=False, buffer_size=_BUFFER_BYTES, read_dictionary=sorted(_kept_once(metadata))
    ) as file:
        yield file


def rows_at_a_time(file: Any, groups: Iterable[int], columns: Sequence[str] | None, most_rows: int) -> int:
    """How many rows to read at once, if values that cannot be kept once are as large as they may be.

    Raises ValueError for lists of such values, of which a single row may have any number.
    """
    metadata = file.metadata
    kept_once = _kept_once(metadata)
    largest_row = 1
    for group in groups:
        row_bytes = 0
        for number in range(metadata.num_columns):
            column, chunk = metadata.schema.column(number), metadata.row_group(group).column(number)
            value_bytes = _largest_value(column, chunk)
            is_wanted = columns is None or column.path.partition(".")[0] in columns
            if not is_wanted or column.path in kept_once or not value_bytes:
                continue
            if column.max_repetition_level and chunk.num_values * value_bytes > LARGEST_ROWS:
                raise ValueError(f"the lists in its column {column.path} could take any amount of memory")
            row_bytes += value_bytes
        largest_row = max(largest_row, row_bytes)
    return max(1, min(most_rows, LARGEST_ROWS // largest_row))


def small_rows(batch: Any, pyarrow: Any) -> Iterator[Any]:
    """The rows of a batch, as many together as may become Python objects; None for one that is too large."""
    if decoded_bytes(batch.columns, pyarrow) <= LARGEST_ROWS:
        yield batch
    elif batch.num_rows == 1:
        yield None
    else:
        half = batch.num_rows // 2
        yield from small_rows(batch.slice(0, half), pyarrow)
        yield from small_rows(batch.slice(half), pyarrow)


def decoded_bytes(columns: Iterable[Any], pyarrow: Any) -> int:
    """How many bytes columns have as Python objects, at least, where each row has values of its own."""
    return sum(_decoded_bytes(column, pyarrow) for column in columns)


def _decoded_bytes(column: Any, pyarrow: Any) -> int:
    kind, references = column.type, _BYTES_OF_A_REFERENCE * len(column)
    if isinstance(column, pyarrow.ExtensionArray):
        return _decoded_bytes(column.storage, pyarrow)
    if pyarrow.types.is_dictionary(kind):
        lengths = pyarrow.compute.binary_length(column.dictionary)
        taken = pyarrow.compute.sum(lengths.take(column.indices)).as_py()
        return references + int(taken or 0)
    if pyarrow.types.is_struct(kind):
        return references + decoded_bytes(column.flatten(), pyarrow)
    if pyarrow.types.is_nested(kind):
        return references + _decoded_bytes(column.flatten(), pyarrow)
    return references + int(column.nbytes)


def _kept_once(metadata: Any) -> set[str]:
    """The columns whose values Arrow can leave as they are kept."""
    columns = {number: metadata.schema.column(number) for number in range(metadata.num_columns)}
    return {
        column.path
        for number, column in columns.items()
        if column.physical_type == "BYTE_ARRAY"
        and column.logical_type.type != "DECIMAL"
        and not any(
            _REPEATING in metadata.row_group(group).column(number).encodings
            for group in range(metadata.num_row_groups)
        )
    }


def _largest_value(column: Any, chunk: Any) -> int:
    """How many bytes a value may have, of a kind that may be long."""
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    return int(chunk.total_uncompressed_size) if column.physical_type == "BYTE_ARRAY" else 0


def in_microseconds(column: Any, pyarrow: Any) -> Any:
    """A column as it is, but for times in nanoseconds, which Python does not have."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column
