"""The rows of CSV, JSON Lines and Parquet files."""

from __future__ import annotations

import csv
import json
from itertools import chain
from typing import TYPE_CHECKING, Any

from siteloom.arrow import LARGEST_ROWS, in_microseconds, open_parquet, rows_at_a_time, small_rows
from siteloom.errors import SourceError
from siteloom.foreign_files import lines_at_most
from siteloom.seed_files.rows import ROWS_AT_A_TIME, BadRow, NumberedRows
from siteloom.seed_files.values import normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


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
