"""Which files of settings a person has trusted: each by its place and its very content.

A folder that was cloned or unpacked may bring a `siteloom.toml` of someone else. What it says that runs
programs, removes pages or reaches beyond its folder counts only once it was trusted here, and no longer when
it has changed or was moved.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from siteloom.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_LIST = 10_000_000  # bytes, which are some ten thousand files


def is_trusted(file: Path, content: bytes, environment: Mapping[str, str]) -> bool:
    """Whether a file with this content was trusted by whoever has this environment."""
    trusted = trusted_files(environment)
    return trusted is not None and _line(file, content) in _lines(trusted)


def remember(file: Path, content: bytes, environment: Mapping[str, str]) -> Path:
    """Trust a file with this content from now on, and no longer with another; returns where that is kept."""
    trusted = trusted_files(environment)
    if trusted is None:
        raise SettingsError("There is no place to remember what is trusted: set HOME or XDG_STATE_HOME.")
    line = _line(file, content)
    _, _, place = line.partition(" ")
    others = [one for one in _lines(trusted) if one.partition(" ")[2] != place]
    temporary = trusted.with_name(f".{trusted.name}.{uuid4().hex}")
    try:
        trusted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Nobody else may read which folders there are, and least of all write.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as written:
            written.writelines(f"{one}\n" for one in [*others, line])
        temporary.replace(trusted)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SettingsError(f"{trusted} cannot be written: {error.strerror or error}.") from error
    return trusted


def trusted_files(environment: Mapping[str, str]) -> Path | None:
    """Where it is kept which files are trusted; None if the environment names no such place."""
    state, home = environment.get("XDG_STATE_HOME", ""), environment.get("HOME", "")
    if Path(state).is_absolute():  # others do not count, as the standard says
        return Path(state, "siteloom", "trusted")
    return Path(home, ".local", "state", "siteloom", "trusted") if Path(home).is_absolute() else None


def _line(file: Path, content: bytes) -> str:
    """What is kept of a file: a digest of its place and content, and its place for people to read."""
    # Where the file is seen from, not where a link leads: paths in it are relative to that folder.
    place = json.dumps(str(file.parent.resolve() / file.name))
    digest = hashlib.sha256(place.encode() + b"\0" + content).hexdigest()
    return f"{digest} {place}"


def _lines(trusted: Path) -> list[str]:
    try:
        with trusted.open("rb") as file:
            return file.read(_LONGEST_LIST).decode("ascii", "replace").splitlines()
    except OSError:  # nothing was ever trusted, or it cannot be told
        return []
