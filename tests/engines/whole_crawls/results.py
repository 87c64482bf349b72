"""What is in the folder of a run, to be compared with that of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def results(folder: Path) -> dict[str, Any]:
    """All files of results and failures with their rows, and what was counted."""
    found: dict[str, Any] = {
        file.relative_to(folder).as_posix(): pq.ParquetFile(file).read().to_pylist()
        for file in folder.rglob("*.parquet")
    }
    found["_SUCCESS"] = (folder / "_SUCCESS").read_text()
    return found


def marks(folder: Path, stage: str) -> dict[str, int]:
    """The shards of a stage that are done, and when."""
    return {file.name: file.stat().st_mtime_ns for file in (folder / "_run" / stage).glob("*.json")}
