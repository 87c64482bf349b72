"""Files that a verb writes besides rows of data: as text, whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from siteloom.errors import OutputError, UsageError
from siteloom.output import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DATA = (".csv", ".jsonl", ".parquet")


def check_text_file(file: str, what: str, ending: str) -> None:
    """Raise now what would be wrong with a file once there is something to write to it."""
    path = Path(file)
    if path.suffix.lower() in _DATA and path.suffix.lower() != ending:
        raise UsageError(f"{what} written as {ending}: give a name such as {path.stem}{ending}.")
    if file != STANDARD_OUTPUT and not path.parent.is_dir():
        raise OutputError(f"There is no folder {path.parent} to write {path.name} to: make it first.")


def write_text(file: str, text: str) -> None:
    """Write a text to a file, or to standard output for `-`."""
    content = text.encode("utf-8", "replace")
    if file == STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as output:
            output.write(content)
            output.flush()
            os.fsync(output.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {error.strerror or error}.") from error
    finally:
        if temporary:
            with suppress(OSError):
                Path(temporary).unlink(missing_ok=True)


def as_lines(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
