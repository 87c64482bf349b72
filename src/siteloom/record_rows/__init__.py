"""Records as data: a row for each, what it repeats, what belongs together, and where it is written."""

from siteloom.record_rows.columns import common_schema
from siteloom.record_rows.formats import (
    check_destination,
    is_database,
    open_records,
    record_tables,
    stream_records,
)
from siteloom.record_rows.joining import JoinKey, join_rows, parse_key
from siteloom.record_rows.reading import read_records
from siteloom.record_rows.rows import Row, flag_duplicates, record_row

__all__ = [
    "JoinKey",
    "Row",
    "check_destination",
    "common_schema",
    "flag_duplicates",
    "is_database",
    "join_rows",
    "open_records",
    "parse_key",
    "read_records",
    "record_row",
    "record_tables",
    "stream_records",
]
