"""Tables of known records that were uploaded: where they are, and what is in them before anything is kept."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from siteloom.errors import SourceError, UsageError
from siteloom.seed_files import is_table, read_seeds
from siteloom.seeding import proposed_core, seed_columns
from siteloom.server.adding.upload_folder import find_upload
from siteloom.telling import some_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from siteloom.model import Seed

# So many rows show what a table is like; a person is not made to wait for the rest.
_ROWS_READ = 10_000
_VALUES_READ = 500_000  # of rows that have very many columns
_ROWS_SHOWN = 5
_LONGEST_SHOWN = 80
# More columns cannot be looked through, and no page shows so many.
_COLUMNS_SHOWN = 200


class TableColumn(BaseModel):
    """A column of a table in numbers."""

    name: str
    filled: int = Field(description="How many of the rows that were read have a value.")
    distinct: int = Field(description="How many distinct values there are.")
    values: list[str] = Field(description="Some of them.")
    is_proposed: bool = Field(description="Whether things are likely known by it.")


class TablePreview(BaseModel):
    """What is in an uploaded table of known records; nothing of it is kept yet."""

    upload: str
    file: str
    source: str = Field(description="What to call where the records are from, unless told otherwise.")
    records: int = Field(description="How many records were read.")
    is_whole: bool = Field(description="Whether these are all, or only the first.")
    columns: list[TableColumn]
    rows: list[dict[str, list[str]]] = Field(description="The first of them.")
    left_out: dict[str, int] = Field(description="How many rows were not read, by reason.")


def uploaded_table(workspace: Path, upload: str) -> Path:
    """The file of an upload that is one table."""
    files = [path for path in find_upload(workspace, upload).files.rglob("*") if path.is_file()]
    if len(files) != 1 or not is_table(files[0].name):
        raise UsageError("Known records come as one file: a .csv, .tsv, .jsonl or .parquet.")
    return files[0]


def table_preview(workspace: Path, upload: str) -> TablePreview:
    """What is in an uploaded table, as its first rows tell."""
    table = uploaded_table(workspace, upload)
    left_out: Counter[str] = Counter()
    with said_of(table):
        following = read_seeds(str(table), on_problem=lambda problem: left_out.update([problem.reason]))
        seeds = _first(following)
        is_whole = next(following, None) is None
    if not seeds:
        raise SourceError(_why_none(table.name, left_out))
    columns = seed_columns(seeds)[:_COLUMNS_SHOWN]
    core = proposed_core(columns)
    return TablePreview(
        upload=upload,
        file=table.name,
        source=seeds[0].source,
        records=len(seeds),
        is_whole=is_whole,
        columns=[
            TableColumn(
                name=column.name,
                filled=column.filled,
                distinct=column.distinct,
                values=[cut(text) for text in column.values],
                is_proposed=column.name in core,
            )
            for column in columns
        ],
        rows=[_row(seed) for seed in seeds[:_ROWS_SHOWN]],
        left_out=dict(left_out),
    )


def _first(seeds: Iterator[Seed]) -> list[Seed]:
    found: list[Seed] = []
    count = 0
    for seed in islice(seeds, _ROWS_READ):
        found.append(seed)
        count += len(seed.values)
        if count >= _VALUES_READ:
            break
    return found


@contextmanager
def said_of(table: Path) -> Iterator[None]:
    """What is wrong with an uploaded table is told of the file as its owner knows it, not of where it is."""
    try:
        yield
    except (SourceError, UsageError) as error:
        raise type(error)(str(error).replace(str(table), table.name)) from error


def cut(text: str) -> str:
    """A value short enough to be shown in a table."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _why_none(name: str, left_out: Mapping[str, int]) -> str:
    if not left_out:
        return f"There is no record in {name}: its first line names the columns, and each other is a record."
    reasons = some_names(sorted(left_out))
    return f"No row of {name} could be read as a record: {reasons}."


def _row(seed: Seed) -> dict[str, list[str]]:
    return {name: [cut(text) for text in texts] for name, texts in seed.values.items()}
