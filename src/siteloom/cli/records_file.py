"""Records as extract has written them, to be read again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from siteloom.errors import UsageError
from siteloom.filesystems import LARGEST_OF_RECORDS, lines_of_file, shown

if TYPE_CHECKING:
    from siteloom.model import Record


def read_records(file: str) -> list[Record]:
    """The records of a file that extract has written."""
    from siteloom.model import Record

    try:
        lines = lines_of_file(file, LARGEST_OF_RECORDS)
    except OSError as error:
        raise UsageError(f"The records {file} cannot be read: {error.strerror}.") from error
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            values = {name: _texts(texts) for name, texts in row["values"].items()}
            records.append(Record(_text(row["url"]), values, {}, {}))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"Line {number} of {shown(file)} is no record: it must be a JSON object with url and values, "
                "as extract -o FILE.jsonl writes them."
            ) from error
    if not records:
        raise UsageError(f"There is no record in {shown(file)}: extract writes them with -o FILE.jsonl.")
    return records


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise TypeError(given)
    return tuple(map(_text, given))


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(given)
    return given
