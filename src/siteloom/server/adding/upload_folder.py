"""Where files are that browsers and programs have sent, until a job has read them.

Each upload is a folder of its own with a name that no one can guess.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from siteloom.errors import NotFound, UsageError
from siteloom.pages.folder import INDEX_FILE
from siteloom.pages.formats import file_format
from siteloom.seed_files import is_table

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

_FOLDER = "uploads"
_FILES = "files"
_ID = re.compile("[0-9a-f]{32}")

# What file systems take as the name of a file, and more than any folder of pages needs.
_LONGEST_PART = 255
_LONGEST_NAME = 1_000
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]")

# A person who has not begun to read what they sent has given up by then.
_SECONDS_KEPT = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Upload:
    """Some files that belong together."""

    id: str
    folder: Path

    @property
    def files(self) -> Path:
        """The folder of the files that have come whole."""
        return self.folder / _FILES

    def remove(self) -> None:
        """Take the files off the disk."""
        shutil.rmtree(self.folder, ignore_errors=True)


def new_upload(workspace: Path) -> Upload:
    """An upload without files."""
    name = secrets.token_hex(16)
    upload = Upload(name, workspace / _FOLDER / name)
    upload.files.mkdir(parents=True)
    return upload


def find_upload(workspace: Path, name: str) -> Upload:
    """The upload of an id."""
    upload = Upload(name, workspace / _FOLDER / name) if _ID.fullmatch(name) else None
    if upload is None or not upload.files.is_dir():
        raise NotFound("This upload is not there any more: send its files again.")
    return upload


def remove_old_uploads(workspace: Path, wanted: Container[str] = ()) -> None:
    """Take uploads off the disk that were not touched for a day, but for those that someone waits for."""
    oldest = time.time() - _SECONDS_KEPT
    for folder in (workspace / _FOLDER).glob("*"):
        if folder.name in wanted:
            continue
        with suppress(OSError):  # another has just removed it
            if max(folder.stat().st_mtime, (folder / _FILES).stat().st_mtime) < oldest:
                shutil.rmtree(folder, ignore_errors=True)


def safe_name(name: str) -> PurePosixPath:
    """The name of a file as a path inside the folder of its upload, or one sentence why it can be none."""
    parts = name.split("/")
    if (
        any(part in ("", ".", "..") or len(part.encode(errors="replace")) > _LONGEST_PART for part in parts)
        or len(name.encode(errors="replace")) > _LONGEST_NAME
        or "\\" in name
        or _UNSEEN.search(name)
    ):
        raise UsageError("This name of a file cannot be used: rename the file and send it again.")
    path = PurePosixPath(*parts)
    if file_format(path.name) is None and path.name != INDEX_FILE and not is_table(path.name):
        raise UsageError(
            f"Cannot tell what {path.name} is: pages come as .html, .warc, .parquet or .jsonl "
            "(.warc and .jsonl also compressed, such as .warc.gz)."
        )
    return path
