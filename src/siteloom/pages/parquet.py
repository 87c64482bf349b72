"""Pages from Parquet: columns `url`, `html` (text or binary) and, if known, `fetched_at`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from siteloom.errors import MissingExtra, SourceError
from siteloom.model import Failure, Page
from siteloom.pages.fields import page_from_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from siteloom.config import PagesSettings

# Batches of this many bytes keep memory flat, and Arrow's overhead per batch vanishes in them.
_BYTES_AT_A_TIME = 8_000_000
_MOST_ROWS_AT_A_TIME = 1_000
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Parquet:
    """A Parquet file."""

    path: Path
    settings: PagesSettings

    @classmethod
    def open(cls, path: Path, settings: PagesSettings) -> Parquet:
        """Make sure that the columns are there; a damaged file is a failure when it is read."""
        pyarrow = _pyarrow()
        try:
            names = pyarrow.parquet.read_schema(path).names
        except (OSError, pyarrow.ArrowException):
            names = ["url", "html"]
        missing = [name for name in ("url", "html") if name not in names]
        if missing:
            raise SourceError(
                f"{path} has no column {' and no column '.join(missing)}: pages need url and html, "
                f"and it has {', '.join(names) or 'none at all'}."
            )
        return cls(path, settings)

    def read(self) -> Iterator[Page | Failure]:
        """The pages in the order of the rows."""
        pyarrow = _pyarrow()
        row = 0
        try:
            # Not buffered ahead: Arrow would hold a whole row group, which may be the whole file.
            with pyarrow.parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
                columns = [name for name in ("url", "html", "fetched_at") if name in file.schema_arrow.names]
                for batch in file.iter_batches(batch_size=_batch_rows(file.metadata), columns=columns):
                    cells_by_column = [_in_microseconds(column, pyarrow) for column in batch.columns]
                    for cells in zip(*cells_by_column, strict=True):
                        row += 1
                        named = zip(batch.schema.names, cells, strict=True)
                        yield self._page(dict(named), f"{self.path}, row {row}")
        except (PermissionError, IsADirectoryError) as error:
            yield Failure(str(self.path), "unreadable file", str(error.strerror))
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            yield Failure(f"{self.path}, row {row + 1}", "truncated or damaged file", str(error))

    def _page(self, cells: dict[str, Any], place: str) -> Page | Failure:
        try:
            fields = {name: cell.as_py() for name, cell in cells.items()}
        except (KeyError, OverflowError, ValueError) as error:  # no such time zone, no such time, no UTF-8
            return Failure(place, "bad value", str(error))
        return page_from_fields(
            fields["url"], fields["html"], fields.get("fetched_at"), place, self.settings.max_bytes
        )


def _batch_rows(metadata: Any) -> int:
    """How many rows to read at a time, by the mean size of a row in the group of the largest rows."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    row_bytes = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=1.0)
    return max(1, min(_MOST_ROWS_AT_A_TIME, int(_BYTES_AT_A_TIME / max(1.0, row_bytes))))


def _in_microseconds(column: Any, pyarrow: Any) -> Any:
    """A column as it is, but for times in nanoseconds, which Python does not have."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column


def _pyarrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional, and slow to load
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet") from error
    return pa
