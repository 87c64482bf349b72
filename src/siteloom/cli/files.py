"""Files that a verb writes besides rows of data: as text, whole or not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from siteloom.errors import UsageError
from siteloom.output import STANDARD_OUTPUT, check_place, output_errors, suffix_of, whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DATA = (".csv", ".jsonl", ".parquet")


def check_text_file(file: str, what: str, ending: str) -> None:
    """Raise now what would be wrong with a file once there is something to write to it."""
    if suffix_of(file) in _DATA and suffix_of(file) != ending:
        raise UsageError(f"{what} written as {ending}: give a name such as {Path(file).stem}{ending}.")
    if file != STANDARD_OUTPUT:
        check_place(file)


def write_text(file: str, text: str) -> None:
    """Write a text to a file, here or elsewhere, or to standard output for `-`."""
    content = text.encode("utf-8", "replace")
    if file == STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with whole_file(file) as output, output_errors(file):
        output.write(content)


def as_lines(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
