"""`siteloom backup`: a copy of the whole workspace."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.terminal import Shell
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "backup"

_BYTES_OF_A_MEGABYTE = 1_000_000


def run(
    shell: Shell,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to: a folder that is new or empty.")],
) -> None:
    """Copy the whole workspace while others go on working with it.

    The copy is as the workspace was at one moment; it is there when all of it was written and read back, and
    not before. Tables that are in PostgreSQL are copied by pg_dump. It holds the hashes of passwords, so only
    you may look into it.
    """
    from siteloom.store.workspace_copy import back_up

    with shell.store() as store, shell.counting("Copying", "megabyte") as advance:
        counted = _Megabytes(advance)
        try:
            made = back_up(store, folder, counted.add)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Interrupted; there is no backup.") from None
        is_in_postgres = store.engine.dialect.name == "postgresql"
    size = plural(round(made.bytes / _BYTES_OF_A_MEGABYTE), "megabyte")
    copied = f"the tables and {plural(made.packs, 'pack')} ({size})"
    shell.say(f"Backed up {copied} to {made.folder}; every page in it reads back.")
    shell.say(f"To restore it: {_restoring(made.folder, store.folder, is_in_postgres=is_in_postgres)}")


def _restoring(backup: Path, workspace: Path, *, is_in_postgres: bool) -> str:
    from siteloom.store.workspace_copy import DUMP_FILE

    from_place, to_place = shlex.quote(str(backup)), shlex.quote(str(workspace))
    if not is_in_postgres:
        return f"remove {workspace}, then cp -r {from_place} {to_place}, then siteloom doctor"
    dump = shlex.quote(str(workspace / DUMP_FILE))
    return (
        f"remove {workspace}, then cp -r {from_place} {to_place}, then pg_restore --no-owner --exit-on-error "
        f"--dbname=ADDRESS {dump} into an empty database, then siteloom doctor --store ADDRESS"
    )


class _Megabytes:
    """Counts bytes, and tells of each whole megabyte."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._rest = 0

    def add(self, count: int) -> None:
        whole, self._rest = divmod(self._rest + count, _BYTES_OF_A_MEGABYTE)
        self._advance(whole)
