"""backup: copy the whole workspace while others go on working with it."""

from __future__ import annotations

from dataclasses import dataclass

from siteloom.operations.context import Context
from siteloom.store.workspace_copy import back_up

_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRequest:
    """The folder to copy to, which must be new or empty."""

    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    """The folder of the copy, how many packs of pages it has, and how many bytes were copied.

    `has_dump` says that the tables are a dump of PostgreSQL, which must be restored with pg_restore.
    """

    folder: str
    packs: int
    bytes: int
    has_dump: bool


def backup(context: Context, request: BackupRequest) -> BackupResult:
    """Copy the workspace as it is at one moment, and read every page of the copy back."""
    progress = context.progress
    progress.start("Copying", unit="megabyte")
    uncounted = 0

    def count(size: int) -> None:
        nonlocal uncounted
        megabytes, uncounted = divmod(uncounted + size, _MEGABYTE)
        progress.advance(megabytes)

    copy = back_up(context.store, request.folder, count)
    return BackupResult(
        folder=str(copy.folder),
        packs=copy.packs,
        bytes=copy.bytes,
        has_dump=context.store.engine.dialect.name == "postgresql",
    )
