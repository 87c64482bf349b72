"""Copy a whole workspace, while others read and write it, to a folder that is a workspace itself.

The tables are copied as they are at one moment. Packs only grow, so everything that the tables refer to is in
the packs as long as no one replaces them, which `packs_lock` ensures. Unfinished work of a writer is missing
in the copy, as if the writer had been killed at that moment, which the store survives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import event, func, inspect, select, text

from siteloom.core.atomic_files import sync_to_disk
from siteloom.core.child_processes import environment_of_programs
from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.database import SQLITE_FILE, VERSION_TABLE, connect, sqlite_url
from siteloom.core.errors import OutputError, StoreError, UsageError
from siteloom.core.file_lock import packs_lock
from siteloom.core.settings import without_passwords
from siteloom.core.sqlite_files import open_sqlite, sqlite_file
from siteloom.store import schema
from siteloom.store.erasure.disk_erasure import begin, is_unfinished
from siteloom.store.packs.pack_file import check_pack_name
from siteloom.store.queries import search_terms
from siteloom.store.store import Store
from siteloom.store.workspace_folder import MARKER_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

DUMP_FILE = "tables.dump"
"""The tables of a workspace that has them in PostgreSQL, as pg_dump writes them for pg_restore."""

_CRAWLS = "crawls"
_UNFINISHED = ".unfinished-"
_PAGES_OF_A_STEP = 2_000  # of SQLite, which has 4 kB in each: often enough to be seen going on
_BYTES_OF_A_STEP = 8_000_000


class Backup(NamedTuple):
    """The folder of a backup, and how much was copied."""

    folder: Path
    packs: int
    bytes: int


def back_up(store: Store, target: str, on_bytes: Callable[[int], object] = lambda _: None) -> Backup:
    """Copy a workspace to a new or empty folder; the copy appears complete and checked, or not at all.

    `on_bytes` is called with the number of bytes copied since its last call. Uploads are left out: a starting
    server gives up the jobs that would have read them.
    """
    folder = _checked_folder(target, store.folder)
    try:
        with packs_lock(store.folder, store.on_busy), _unfinished_folder(folder) as unfinished:
            counts = _copy(store, unfinished, on_bytes)
            _sync_all(unfinished)
            unfinished.rename(folder)
            sync_to_disk(folder.parent)
    except OSError as error:
        raise OutputError(f"The backup {folder} cannot be written: {error.strerror or error}.") from error
    return Backup(folder, *counts)


def _checked_folder(target: str, workspace: Path) -> Path:
    if "://" in target:
        raise UsageError("A backup is a folder of this machine: give its path.")
    folder = Path(target).absolute()
    if folder.resolve().is_relative_to(workspace.resolve()):
        raise UsageError(f"{folder} is inside the workspace that is backed up: give another folder.")
    try:
        is_free = not folder.exists() or not any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder} cannot take a backup: {error.strerror}.") from error
    if not is_free:
        raise UsageError(f"{folder} is not empty: give a folder that is new or empty.")
    return folder


@contextmanager
def _unfinished_folder(folder: Path) -> Iterator[Path]:
    """A folder beside the one that is wanted, for whoever runs this alone to see, and gone if that fails.

    Those that were killed while they had one held its lock; what they left is removed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    prefix = folder.name + _UNFINISHED
    for leftover in [path for path in folder.parent.iterdir() if path.name.startswith(prefix)]:
        with suppress(OSError), _locked(leftover):
            shutil.rmtree(leftover, ignore_errors=True)
    unfinished = Path(
        tempfile.mkdtemp(prefix=prefix, dir=folder.parent)
    )  # password hashes are in it: mode 0700
    try:
        with _locked(unfinished):
            yield unfinished
    finally:
        if unfinished.exists():
            shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, or raise BlockingIOError if another does."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _copy(store: Store, folder: Path, on_bytes: Callable[[int], object]) -> tuple[int, int]:
    """Copy everything; returns how many packs and bytes of packs there are."""
    # Journals of crawls first: a page that is done must be in the tables, or no one would fetch it again.
    workspace = ConfinedFolder(store.folder)
    _copy_journals(workspace, ConfinedFolder(folder))
    with _copied_tables(store, folder, on_bytes) as snapshot_engine:
        copy = Store(snapshot_engine, store.clock, folder, None)
        packs = _packs(snapshot_engine)
        for file, committed in packs.items():
            _copy_pack(store.packs_folder, file, copy.packs_folder, committed, on_bytes)
        if problem := next(copy.check(), None):
            raise StoreError(
                f"The workspace is damaged, so there is no backup: {problem.place}: {problem.text} "
                "See siteloom doctor."
            )
    if is_unfinished(store.folder):
        begin(folder)  # there may be traces in the copy, too
    ConfinedFolder(folder).write(MARKER_FILE, workspace.read(MARKER_FILE))  # last: it makes it a workspace
    return len(packs), sum(packs.values())


def _packs(engine: Engine) -> dict[str, int]:
    """How many bytes of each pack are committed."""
    with engine.connect() as connection:
        rows = connection.execute(select(schema.packs.c.file, schema.packs.c.committed_bytes))
        return {row.file: row.committed_bytes for row in rows}


@contextmanager
def _copied_tables(store: Store, folder: Path, on_bytes: Callable[[int], object]) -> Iterator[Engine]:
    """Copy the tables as they are now; gives what to ask of how they were then."""
    is_sqlite = store.engine.dialect.name == "sqlite"
    # Made before others write to it, so that it is for its owner alone.
    ConfinedFolder(folder).open(SQLITE_FILE if is_sqlite else DUMP_FILE, "xb").close()
    if is_sqlite:
        _copy_sqlite(sqlite_file(store.engine.url), folder / SQLITE_FILE, on_bytes)
        engine = connect(sqlite_url(folder))
        try:
            yield engine
        finally:
            engine.dispose()
        return
    exporting = store.engine.execution_options(isolation_level="REPEATABLE READ")
    with exporting.begin() as connection:
        # Some servers end whoever waits long within a transaction, and copying packs takes long.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        snapshot: str = connection.execute(select(func.pg_export_snapshot())).scalar_one()
        _dump_postgres(connection, snapshot, folder / DUMP_FILE)
        engine = _engine_at_snapshot(store.engine, snapshot)
        try:
            yield engine
        finally:
            engine.dispose()


def _copy_sqlite(file: Path, copy: Path, on_bytes: Callable[[int], object]) -> None:
    copied = 0

    def tell(_: int, remaining: int, total: int) -> None:
        nonlocal copied
        previous, copied = copied, total - remaining
        on_bytes(page_size * (copied - previous))

    try:
        with closing(open_sqlite(file, StoreError)) as source:
            (page_size,) = source.execute("PRAGMA page_size").fetchone()
            # Within a transaction it is all of one moment, and needs not begin again whenever others write.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            with closing(open_sqlite(copy, StoreError)) as target:
                source.backup(target, pages=_PAGES_OF_A_STEP, progress=tell)
                (check_result,) = target.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"The tables of the workspace cannot be copied to {copy}: {error}.") from error
    if check_result != "ok":
        raise StoreError(f"The tables of the workspace are damaged, so there is no backup: {check_result}.")


def _dump_postgres(connection: Connection, snapshot: str, file: Path) -> None:
    """Have the tables written by PostgreSQL's own program."""
    program = shutil.which("pg_dump")
    if program is None:
        raise StoreError(
            "Tables in PostgreSQL are backed up by pg_dump, which is not installed here: install the client "
            "programs of PostgreSQL, of the server's version or a newer one."
        )
    url = connection.engine.url.set(drivername="postgresql")
    inspector = inspect(connection)
    ours = {*schema.metadata.tables, VERSION_TABLE, search_terms.TABLE} & set(inspector.get_table_names())
    tables = [f'--table="{inspector.default_schema_name}"."{table}"' for table in sorted(ours)]
    # On a command line, others of this machine could read a password.
    secret = {"PGPASSWORD": str(url.password)} if url.password else {}
    address = url.set(password=None).render_as_string()
    process = subprocess.run(  # noqa: S603 - found on the path, and its arguments are ours
        [
            program,
            "--format=custom",
            f"--snapshot={snapshot}",
            f"--file={file}",
            *tables,
            f"--dbname={address}",
        ],
        env={**environment_of_programs(), **secret},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        message = without_passwords(" ".join(process.stderr.split())).rstrip(".")
        raise StoreError(f"The tables of the workspace cannot be copied: {message or 'pg_dump failed'}.")


def _engine_at_snapshot(engine: Engine, snapshot: str) -> Engine:
    """What sees the tables as a transaction does that goes on."""
    snapshot_engine = connect(engine.url).execution_options(isolation_level="REPEATABLE READ")

    def see(connection: Connection) -> None:
        connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{snapshot}'")

    event.listen(snapshot_engine, "begin", see)
    return snapshot_engine


def _copy_pack(
    packs_folder: Path, name: str, target_folder: Path, committed: int, on_bytes: Callable[[int], object]
) -> None:
    """Copy the committed bytes of a pack; one that has fewer is found out when the copy is checked."""
    check_pack_name(name)
    copies = ConfinedFolder(target_folder)
    copies.make_folder(str(PurePosixPath(name).parent))
    try:
        source = ConfinedFolder(packs_folder).open(name, "rb")
    except OSError as error:
        raise StoreError(
            f"{packs_folder / name} cannot be read ({error.strerror}), so there is no backup: "
            "see siteloom doctor."
        ) from error
    with source, copies.open(name, "wb") as target:
        while chunk := source.read(min(_BYTES_OF_A_STEP, committed - target.tell())):
            target.write(chunk)
            on_bytes(len(chunk))


def _copy_journals(workspace: ConfinedFolder, copy: ConfinedFolder) -> None:
    """Copy the journals of crawls, which are removed when a crawl comes to its end."""
    for name in workspace.names(_CRAWLS):
        copy.make_folder(_CRAWLS)
        with suppress(FileNotFoundError):
            copy.write(f"{_CRAWLS}/{name}", workspace.read(f"{_CRAWLS}/{name}"))


def _sync_all(folder: Path) -> None:
    for place, _, files in os.walk(folder):
        for name in files:
            sync_to_disk(Path(place) / name)
        sync_to_disk(Path(place))
