"""`siteloom backup`: copy the workspace."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import verb_context
from siteloom.apps.cli.terminal import Shell
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from pathlib import Path

    from siteloom.operations.backup import BackupResult

NAME = "backup"

_MEGABYTE = 1_000_000


def run(
    shell: Shell,
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where to copy to: a folder that is new or empty.")
    ],
) -> None:
    """Copy the whole workspace while others go on working with it.

    The copy is the workspace as it was at one moment. It appears once all of it was written and read back,
    and not before. Tables in PostgreSQL are copied by pg_dump. The copy holds the hashes of passwords, so
    only you may read it.
    """
    from siteloom.operations.backup import BackupRequest, backup

    with verb_context(shell, None) as context:
        try:
            result = backup(context, BackupRequest(folder=folder))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Interrupted; there is no backup.") from None
    size = plural(round(result.bytes / _MEGABYTE), "megabyte")
    copied = f"the tables and {plural(result.packs, 'pack')} ({size})"
    shell.say(f"Backed up {copied} to {result.folder}; every page in it reads back.")
    shell.say(f"To restore it: {_restoring(result, context.store.folder)}")


def _restoring(backup: BackupResult, workspace: Path) -> str:
    from siteloom.store.workspace_copy import DUMP_FILE

    copy = f"remove {workspace}, then cp -r {shlex.quote(backup.folder)} {shlex.quote(str(workspace))}"
    if not backup.has_dump:
        return f"{copy}, then siteloom doctor"
    dump = shlex.quote(str(workspace / DUMP_FILE))
    return (
        f"{copy}, then pg_restore --no-owner --exit-on-error --dbname=ADDRESS {dump} into an empty database, "
        "then siteloom doctor --store ADDRESS"
    )
