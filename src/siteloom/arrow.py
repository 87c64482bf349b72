"""PyArrow, where it is there, for all that read Parquet files."""

from __future__ import annotations

from typing import Any

from siteloom.errors import MissingExtra


def load_pyarrow() -> Any:
    """The package with what reads Parquet and computes; raises MissingExtra where it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional, and slow to load
        import pyarrow.compute  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet") from error
    return pa


def in_microseconds(column: Any, pyarrow: Any) -> Any:
    """A column as it is, but for times in nanoseconds, which Python does not have."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column
