"""Where files are that browsers and programs have sent, until a job has read them.

Each upload is a folder of its own with a name that no one can guess.
"""

from __future__ import annotations

import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import NotFound, UsageError
from siteloom.sources.html_folder import INDEX_FILE
from siteloom.sources.seed_tables import is_table
from siteloom.sources.source_formats import file_format

if TYPE_CHECKING:
    from collections.abc import Container

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
    workspace: Path

    @property
    def folder(self) -> Path:
        """The folder of all files, whole or not."""
        return self.workspace / _FOLDER / self.id

    @property
    def files(self) -> Path:
        """The folder of the files that have come whole."""
        return self.folder / _FILES

    def open_part(self) -> IO[bytes]:
        """A new file, for what has come of a file so far."""
        return self._confined.open(f"part-{secrets.token_hex(8)}", "xb")

    def complete(self, part: str, path: PurePosixPath) -> None:
        """Put a part, given by its path, where whole files are."""
        place = PurePosixPath(_FILES) / path
        self._confined.make_folder(str(place.parent))
        self._confined.rename(Path(part).name, str(place))

    def discard(self, part: str) -> None:
        """Remove a part, given by its path, if it is still there."""
        self._confined.remove(Path(part).name)

    def remove(self) -> None:
        """Remove all files."""
        with suppress(OSError):
            ConfinedFolder(self.workspace).remove_tree(f"{_FOLDER}/{self.id}")

    def remove_if_empty(self) -> None:
        """Remove the folders if no file is in them."""
        with suppress(OSError):  # not empty
            self._confined.remove_folder(_FILES)
            ConfinedFolder(self.workspace).remove_folder(f"{_FOLDER}/{self.id}")

    @property
    def _confined(self) -> ConfinedFolder:
        return ConfinedFolder(self.folder)


def new_upload(workspace: Path) -> Upload:
    """An upload without files."""
    name = secrets.token_hex(16)
    ConfinedFolder(workspace).make_folder(f"{_FOLDER}/{name}/{_FILES}")
    return Upload(name, workspace)


def find_upload(workspace: Path, name: str) -> Upload:
    """The upload of an id."""
    confined = ConfinedFolder(workspace)
    is_there = _ID.fullmatch(name) and confined.is_folder(f"{_FOLDER}/{name}/{_FILES}")
    # The server makes no links: one comes from whoever made the workspace.
    if not is_there or any(ConfinedFolder(workspace / _FOLDER / name).links()):
        raise NotFound("This upload is not there any more: send its files again.")
    return Upload(name, workspace)


def remove_old_uploads(workspace: Path, wanted: Container[str] = ()) -> None:
    """Take uploads off the disk that were not touched for a day, but for those that someone waits for."""
    oldest = time.time() - _SECONDS_KEPT
    confined = ConfinedFolder(workspace)
    for name in confined.names(_FOLDER):
        folder = f"{_FOLDER}/{name}"
        with suppress(OSError):  # another has just removed it
            times = confined.modified_at(folder), confined.modified_at(f"{folder}/{_FILES}")
            if name not in wanted and max(times) < oldest:
                confined.remove_tree(folder)


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
