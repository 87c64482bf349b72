"""Read pages from Parquet: columns `url`, `html` (text or binary) and optionally `fetched_at`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import SourceError
from siteloom.core.model import Failure, Page
from siteloom.core.table_files import in_microseconds, load_pyarrow, open_parquet, rows_at_a_time
from siteloom.sources.page_source import page_from_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from siteloom.core.settings import PagesSettings

# Batches of this many bytes keep memory flat, and make Arrow's overhead per batch negligible.
_BYTES_AT_A_TIME = 8_000_000
_MOST_ROWS_AT_A_TIME = 1_000
# The result of a shard is held until all of it is done; Arrow writes up to a million rows into a group.
_MOST_ROWS_OF_A_PART = 10_000
_BUFFER_BYTES = 1 << 20

# Row groups are read together up to this number of rows: Arrow's overhead becomes negligible, and damage
# loses at most the remaining ones.
_ROWS_PER_SHARD = 256


_NO_VALUE = ()  # replaces nested values, which are not read: they may be of any size


class _RowGroups(NamedTuple):
    """Row groups that are read together, and the number of rows before them."""

    groups: range
    rows_before: int


@dataclass(frozen=True, slots=True)
class Parquet:
    """A Parquet file."""

    path: Path
    settings: PagesSettings
    row_groups: _RowGroups | None = None

    @classmethod
    def open(cls, path: Path, settings: PagesSettings) -> Parquet:
        """Open a file, and check its columns; a damaged file gives a failure when it is read."""
        pyarrow = load_pyarrow()
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
        """Yield the pages in the order of the rows."""
        pyarrow = load_pyarrow()
        try:
            with open_parquet(self.path, pyarrow) as file:
                for row_groups in [self.row_groups] if self.row_groups else _shard_groups(file.metadata):
                    yield from self._read_groups(file, row_groups, pyarrow)
        except (PermissionError, IsADirectoryError) as error:
            yield Failure(str(self.path), "unreadable file", str(error.strerror))
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            yield Failure(f"{self.path}, row 1", "truncated or damaged file", str(error))

    def shards(self) -> Sequence[Parquet]:
        """Split the file into row groups, small ones together; not if a group has very many rows."""
        if self.row_groups:
            return (self,)
        pyarrow = load_pyarrow()
        try:
            metadata = pyarrow.parquet.read_metadata(self.path)
        except (OSError, ValueError, pyarrow.ArrowException):  # reported when the file is read
            return (self,)
        groups = range(metadata.num_row_groups)
        if max((metadata.row_group(group).num_rows for group in groups), default=0) > _MOST_ROWS_OF_A_PART:
            return (self,)
        return [replace(self, row_groups=row_groups) for row_groups in _shard_groups(metadata)]

    def _read_groups(self, file: Any, row_groups: _RowGroups, pyarrow: Any) -> Iterator[Page | Failure]:
        row = row_groups.rows_before
        try:
            columns = [name for name in ("url", "html", "fetched_at") if name in file.schema_arrow.names]
            groups = [file.metadata.row_group(group) for group in row_groups.groups]
            # Arrow would hold several such rows at once. Rows that fit into its buffer are checked one by
            # one, because much of their size is overhead of the format.
            if (mean := _row_bytes(groups)) > max(self.settings.max_bytes, _BUFFER_BYTES):
                detail = f"rows of {int(mean):,} bytes; at most {self.settings.max_bytes:,} are taken"
                yield Failure(f"{self.path}, row {row + 1}", "page too large", detail)
                return
            batch_rows = rows_at_a_time(file, row_groups.groups, columns, _batch_rows(mean))
            for batch in file.iter_batches(batch_rows, row_groups=row_groups.groups, columns=columns):
                cells_by_column = [in_microseconds(column, pyarrow) for column in batch.columns]
                for cells in zip(*cells_by_column, strict=True):
                    row += 1
                    named = zip(batch.schema.names, cells, strict=True)
                    yield self._page(dict(named), f"{self.path}, row {row}", pyarrow)
        except (OSError, ValueError, IndexError, pyarrow.ArrowException) as error:  # IndexError if changed
            yield Failure(f"{self.path}, row {row + 1}", "truncated or damaged file", str(error))

    def _page(self, cells: dict[str, Any], place: str, pyarrow: Any) -> Page | Failure:
        limit = self.settings.max_bytes
        for name in ("url", "html"):
            if (size := _size(cells[name])) > limit:  # not even copied
                return Failure(
                    place, "page too large", f"{name} has {size:,} bytes; at most {limit:,} are taken"
                )
        try:
            fields = {
                name: _NO_VALUE if pyarrow.types.is_nested(cell.type) else cell.as_py()
                for name, cell in cells.items()
            }
        except (KeyError, OverflowError, ValueError) as error:  # no such time zone, no such time, no UTF-8
            return Failure(place, "bad value", str(error))
        return page_from_fields(
            fields["url"], fields["html"], fields.get("fetched_at"), place, self.settings.max_bytes
        )


def _size(cell: Any) -> int:
    """Return the number of bytes of a text or binary value; 0 for any other."""
    value = getattr(cell, "value", cell) if cell.is_valid else cell  # unwraps a dictionary-encoded value
    buffer = value.as_buffer() if hasattr(value, "as_buffer") else None
    return 0 if buffer is None else int(buffer.size)


def _shard_groups(metadata: Any) -> Iterator[_RowGroups]:
    """Yield all row groups, small ones together."""
    first_group, rows_before, rows = 0, 0, 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= _ROWS_PER_SHARD or group + 1 == metadata.num_row_groups:
            yield _RowGroups(range(first_group, group + 1), rows_before)
            first_group, rows_before, rows = group + 1, rows_before + rows, 0


def _row_bytes(groups: Sequence[Any]) -> float:
    """Return the mean size of a row in the group of the largest rows, by the file's metadata."""
    return float(max(group.total_byte_size / max(1, group.num_rows) for group in groups))


def _batch_rows(row_bytes: float) -> int:
    """Return how many rows of a size to read at a time."""
    return max(1, min(_MOST_ROWS_AT_A_TIME, int(_BYTES_AT_A_TIME / max(1.0, row_bytes))))
