"""The settings files that a person has trusted, each by its path and exact content.

A folder that was cloned or unpacked may contain someone else's `siteloom.toml`. Its settings that run
programs, remove pages or reach beyond its folder count only once it was trusted here, until it is changed or
moved.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from siteloom.core.atomic_files import AtomicFile
from siteloom.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_LIST = 10_000_000  # bytes, for some ten thousand files


def is_trusted(file: Path, content: bytes, environment: Mapping[str, str]) -> bool:
    """Return whether a file with this content was trusted by the user of this environment."""
    trusted = trusted_files(environment)
    return trusted is not None and _line(file, content) in _lines(trusted)


def trust(file: Path, content: bytes, environment: Mapping[str, str]) -> Path:
    """Trust a file with this content, and no longer with another; returns the file that records it."""
    trusted = trusted_files(environment)
    if trusted is None:
        raise SettingsError("There is no place to remember what is trusted: set HOME or XDG_STATE_HOME.")
    line = _line(file, content)
    _, _, quoted_path = line.partition(" ")
    lines = [*(other for other in _lines(trusted) if other.partition(" ")[2] != quoted_path), line]
    try:
        trusted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Nobody else may read which folders exist, let alone write the file.
        with closing(AtomicFile(trusted, mode=0o600)) as output:
            output.file.write("".join(f"{line}\n" for line in lines).encode())
            output.commit()
    except OSError as error:
        raise SettingsError(f"{trusted} cannot be written: {error.strerror or error}.") from error
    return trusted


def trusted_files(environment: Mapping[str, str]) -> Path | None:
    """Return the file that records which files are trusted; None if the environment does not define it."""
    state, home = environment.get("XDG_STATE_HOME", ""), environment.get("HOME", "")
    if Path(state).is_absolute():  # the XDG standard ignores relative paths
        return Path(state, "siteloom", "trusted")
    return Path(home, ".local", "state", "siteloom", "trusted") if Path(home).is_absolute() else None


def _line(file: Path, content: bytes) -> str:
    """Return the line that records a file: a digest of its path and content, and its path for people."""
    # The folder of the file itself, not of a link's target: paths in the file are relative to that folder.
    quoted_path = json.dumps(str(file.parent.resolve() / file.name))
    digest = hashlib.sha256(quoted_path.encode() + b"\0" + content).hexdigest()
    return f"{digest} {quoted_path}"


def _lines(trusted: Path) -> list[str]:
    try:
        with trusted.open("rb") as file:
            return file.read(_LONGEST_LIST).decode("ascii", "replace").splitlines()
    except OSError:  # nothing was trusted yet, or the record is unreadable
        return []
