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

# Pages of 100 kB make a batch of 6 MB: small enough to keep memory flat, large
# enough that Arrow's overhead per batch vanishes.
_ROWS_AT_A_TIME = 64


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
            with pyarrow.parquet.ParquetFile(self.path) as file:
                columns = [name for name in ("url", "html", "fetched_at") if name in file.schema_arrow.names]
                for batch in file.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=columns):
                    cells_by_column = [_in_microseconds(column, pyarrow) for column in batch.columns]
                    for cells in zip(*cells_by_column, strict=True):
                        row += 1
                        named = zip(batch.schema.names, cells, strict=True)
                        yield self._page(dict(named), f"{self.path}, row {row}")
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
