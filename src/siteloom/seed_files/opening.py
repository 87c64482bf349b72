"""The rows at a location: of a file, here or elsewhere, or of an SQL table."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from siteloom.arrow import load_pyarrow
from siteloom.errors import SourceError
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
from siteloom.model import Failure
from siteloom.seed_files.files import csv_rows, json_rows, parquet_rows
from siteloom.seed_files.rows import NumberedRows, Rows
from siteloom.seed_files.sql import sql_table

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
