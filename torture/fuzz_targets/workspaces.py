"""Any bytes as the database of a workspace, or as what lies beside it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from functools import cache
from typing import TYPE_CHECKING

from siteloom.core.errors import StoreError
from siteloom.core.model import Page
from siteloom.core.settings import StoreSettings
from siteloom.store.workspace_folder import open_store
from torture.fuzz_targets.cutting import Cutter
from torture.fuzz_targets.journals import MAGIC, write_journal
from torture.fuzz_targets.target import Target, scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

_DATABASE = "siteloom.db"
_BESIDE = ("journal", "wal", "shm")
_SECRET = b"precious"
_PAGES = tuple(Page(f"http://a.example/{number}", b"<p>%d" % number) for number in range(3))


def workspace_database(data: bytes) -> None:
    """A workspace is read, or one sentence says why not; no file outside of it is touched."""
    cut = Cutter(data)
    folder = scratch_folder() / "workspace"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_workspace(), folder)
    victim = scratch_folder() / "victim"
    victim.write_bytes(_SECRET)
    database = folder / _DATABASE
    match cut.number(4):
        case 0:
            _damage(database, cut)
        case 1:
            _write_statement(database, cut)
        case 2:
            (folder / f"{_DATABASE}-{cut.choice(_BESIDE)}").write_bytes(cut.rest())
        case _:
            journal = write_journal(database, victim)
            content = journal.read_bytes()
            place = cut.number(256)
            journal.write_bytes(content[:place] + cut.rest() + content[place:])
    with suppress(StoreError), closing(open_store(StoreSettings(str(folder)))) as store:
        list(store.sites())
        list(store.runs(5))
        list(store.pages())
        list(store.check())
    assert victim.read_bytes() == _SECRET, "a file outside of the workspace was changed"


def _damage(database: Path, cut: Cutter) -> None:
    """Put bytes over others, or end the file early."""
    content = bytearray(database.read_bytes())
    while not cut.is_empty:
        place = int.from_bytes(bytes(cut.number(256) for _ in range(3)), "big") % len(content)
        piece = cut.piece()
        content[place : place + len(piece)] = piece or content[place : place + 1].swapcase()
    database.write_bytes(content)


def _write_statement(database: Path, cut: Cutter) -> None:
    """Put any text in the place of a statement that made a table or an index."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
        kind = cut.choice(("table", "index", "view", "trigger"))
        connection.execute(
            "UPDATE sqlite_master SET type = ?, sql = ? WHERE name = ?",
            [kind, cut.rest().decode("utf-8", "replace"), cut.choice(names)],
        )


@cache
def _workspace() -> Path:
    folder = scratch_folder() / "workspace-as-made"
    settings = StoreSettings(str(folder))
    with closing(open_store(settings, create=True)) as store, store.ingesting({}, jobs=1) as (_, writer):
        for page in _PAGES:
            writer.add(page, "a.example")
    return folder


TARGETS = (
    Target(
        workspace_database,
        lambda: [
            b"\0",
            b"\0\0\0\x10\2\2\0",
            b"\0\0\0\x1c\4\x7f\xff\xff\xff",
            b"\0\0\x10\x05\3\1\2\3",
            b"\0\1\x00\x00\x20" + b"\xff" * 32,
            b"\1\0\7CREATE TABLE jobs (id INTEGER CHECK (length(randomblob(9))))",
            b"\1\2\x10CREATE VIEW sites AS SELECT 1 AS id, 'x' AS name",
            b"\1\3\x20CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM urls; END",
            b"\2\0" + MAGIC + b"\0" * 100,
            b"\2\1" + b"\x37\x7f\x06\x82" + b"\0" * 100,
            b"\2\2" + b"\xff" * 200,
            b"\3",
        ],
        [b"CREATE ", b" CHECK ", b" DEFAULT ", b"AS (", b" USING fts5(", b" ON ", b"sqlite_master"],
    ),
)
