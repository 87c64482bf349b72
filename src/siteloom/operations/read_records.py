"""The records of files and workspaces, read back as a table of Arrow."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from siteloom.core.model import ValueType
from siteloom.core.settings import StoreSettings, load_settings
from siteloom.extraction.record_rows import flag_duplicates
from siteloom.extraction.records_to_arrow import records_table

if TYPE_CHECKING:
    import pyarrow as pa

    from siteloom.extraction.record_rows import Row


def read_records(
    *sources: str | Path,
    several: Collection[str] = (),
    types: Mapping[str, ValueType] = MappingProxyType({}),
) -> pa.Table:
    """The records that `siteloom extract` wrote, as a flat table of Arrow.

    A source is a `.jsonl` or `.parquet` file, the folder that a run with `--engine` wrote, both also
    elsewhere, such as `s3://bucket/records.parquet`, or a workspace, of which the records that hold now are
    read. The columns are `url`, `wrapper`, `version`, one for each
    attribute, `confidence` (the lowest of the record), `duplicate_of`, and `pages` if records were joined.

    The column of an attribute is text; if a record has several values, they stand in it with ` | ` between
    them. The attributes named in `several` have lists instead. `types` says which attributes are to be read
    as what they are: `{"price": "price", "opened": "date"}` makes `price` a number, beside it
    `price_currency`, and `opened` a date. A typed attribute has one value a record unless it is in `several`.

    Raises `UsageError` if a value is not of the type that was asked for, or if no value has one,
    `SourceError` if a source cannot be read, and `MissingExtra` without the extra `parquet`.
    """
    return records_table(sources, several, types, _records_of_workspace)


def _records_of_workspace(folder: Path) -> Iterator[Row]:
    from siteloom.store.workspace_folder import open_store  # noqa: PLC0415 - slow to load, and most records are in files

    settings, _ = load_settings(Path.cwd(), os.environ, {"store.workspace": str(folder)})
    store = open_store(StoreSettings(workspace=str(folder), url=settings.store.url))
    try:
        next(store.records(), None)  # raises if nothing was extracted yet
        yield from flag_duplicates(dict(row) for _, row in store.records_in_force())
    finally:
        store.close()
