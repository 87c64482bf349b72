"""A workspace from someone else leads to no file outside of itself, whatever its tables and packs say."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
import struct
import zlib
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import zstandard
from sqlalchemy import insert, update
from torture.fuzz_targets.journals import write_journal

from siteloom.core.database import connect, sqlite_url
from siteloom.core.errors import OutputError, PackError, StoreError
from siteloom.core.model import Page
from siteloom.core.settings import StoreSettings
from siteloom.operations.clean import count_versions
from siteloom.operations.search import SearchRequest, search, update_index
from siteloom.sources.crawling.crawl_journal import CrawlJournal, FetchedUrl
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.store import schema
from siteloom.store.erasure.disk_erasure import remove_unknown_packs
from siteloom.store.erasure.erasure import forget
from siteloom.store.migrate import upgrade
from siteloom.store.packs.pack_file import encode_block
from siteloom.store.store import Store
from siteloom.store.workspace_copy import back_up
from siteloom.store.workspace_folder import open_store
from tests.operations.contexts import context_of
from tests.store.helpers import newest, opened_pack
from tests.store.remembered import live

PAGE = Page("http://a.example/1", b"<p>one")


def keep(store: Store, page: Page) -> None:
    with store.ingesting({}, jobs=1) as (_, writer):
        writer.add(page, "a.example")


@pytest.fixture
def workspace(sqlite_store: Store) -> Path:
    keep(sqlite_store, PAGE)
    sqlite_store.close()
    return sqlite_store.folder


def with_pack_named(workspace: Path, file: str) -> Store:
    with closing(sqlite3.connect(workspace / "siteloom.db")) as database:
        database.execute("UPDATE packs SET file = ?, committed_bytes = 0", [file])
        database.commit()
    return open_store(StoreSettings(str(workspace)))


NAMES = (
    "../../victim.pack",
    "/etc/passwd",
    "a.example/../../../victim.pack",
    "a.example/../000001.pack",
    "",
    "x",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_pack_that_leads_elsewhere_is_neither_read_nor_written(workspace: Path, name: str) -> None:
    victim = workspace.parent / "victim.pack"
    victim.write_bytes(b"precious")
    with closing(with_pack_named(workspace, name)) as store:
        with pytest.raises(PackError, match="which is none of its own"):
            list(store.pages())
        assert [problem.text for problem in store.check() if "none of its own" in problem.text]
        with pytest.raises(StoreError):
            keep(store, Page("http://a.example/2", b"<p>two"))
    assert victim.read_bytes() == b"precious"


def test_a_link_that_leads_elsewhere_is_neither_read_nor_written(workspace: Path) -> None:
    victim = workspace.parent / "victim"
    victim.write_bytes(b"precious")
    (pack,) = (workspace / "packs").rglob("*.pack")
    pack.unlink()
    pack.symlink_to(victim)
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        with pytest.raises(PackError, match="it is a symbolic link"):
            list(store.pages())
        with pytest.raises(StoreError, match="it is a symbolic link"):
            keep(store, Page("http://a.example/2", b"<p>two"))
    assert victim.read_bytes() == b"precious"


def test_what_a_link_leads_to_is_not_removed(workspace: Path) -> None:
    (workspace.parent / "home").mkdir()
    precious = workspace.parent / "home/precious"
    precious.write_bytes(b"precious")
    (workspace / "packs/b.example").symlink_to(precious.parent)
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        remove_unknown_packs(store.packs_folder, store.engine)
    assert precious.exists()


def test_only_packs_are_removed_from_the_folder_of_packs(workspace: Path) -> None:
    precious = [workspace / "packs" / name for name in ("notes", "b.example/notes", "a.example/1.pack.txt")]
    for file in precious:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"precious")
    unknown = workspace / "packs/a.example/000009.pack"
    unknown.touch()
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        remove_unknown_packs(store.packs_folder, store.engine)
    assert all(file.exists() for file in precious)
    assert not unknown.exists()


def test_the_packs_of_a_workspace_may_be_on_another_disk(workspace: Path) -> None:
    elsewhere = workspace.parent / "disk"
    (workspace / "packs").rename(elsewhere)
    (workspace / "packs").symlink_to(elsewhere)
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        keep(store, Page("http://a.example/2", b"<p>two"))
        assert len(list(store.pages())) == 2
        assert list(store.check()) == []
        assert list(store.links()) == []
        (elsewhere / "a.example/link").symlink_to(elsewhere)
        assert list(store.links()) == ["packs/a.example/link"]


def packs_elsewhere(workspace: Path) -> Path:
    elsewhere = workspace.parent / "disk"
    (workspace / "packs").rename(elsewhere)
    (workspace / "packs").symlink_to(elsewhere)
    return elsewhere


def follow_advice(refused: pytest.ExceptionInfo[StoreError]) -> None:
    advice = re.search(r"write this line into (.*?): (.*)$", str(refused.value))
    assert advice is not None
    Path(advice[1]).write_text(f"{advice[2]}\n")


@pytest.mark.parametrize("owner", [None, "someone else", "{id} elsewhere", "{id}x"])
def test_a_folder_that_does_not_say_whose_packs_it_has_is_not_used(
    workspace: Path, owner: str | None
) -> None:
    """It may be the folder of another workspace, whose packs are unknown here and would be removed."""
    elsewhere = packs_elsewhere(workspace)
    own_id = json.loads((workspace / "workspace.json").read_text())["id"]
    (elsewhere / ".workspace-id").unlink()
    if owner is not None:
        (elsewhere / ".workspace-id").write_text(owner.format(id=own_id))
    with pytest.raises(StoreError, match="does not belong to this workspace") as refused:
        open_store(StoreSettings(str(workspace)))
    follow_advice(refused)
    open_store(StoreSettings(str(workspace))).close()


def by_another(workspace: Path, packs: Path) -> Path:
    """A copy of a workspace, with the same id, that would have packs elsewhere."""
    copy = workspace.parent / "copy"
    shutil.copytree(workspace, copy, ignore=shutil.ignore_patterns("packs"))
    (copy / "packs").symlink_to(packs)
    return copy


@pytest.mark.parametrize("are_elsewhere", [False, True])
@pytest.mark.parametrize("is_old", [False, True], ids=["", "of 1.0"])
def test_a_copy_of_a_workspace_does_not_use_its_packs(
    workspace: Path, are_elsewhere: bool, is_old: bool
) -> None:
    """Every copy and every backup has the id of the workspace, and may come back from someone else."""
    packs = packs_elsewhere(workspace) if are_elsewhere else workspace / "packs"
    if is_old:
        own_id = (packs / ".workspace-id").read_text().split()[0]
        (packs / ".workspace-id").write_text(f"{own_id}\n")
    if are_elsewhere:
        open_store(StoreSettings(str(workspace))).close()  # which says whose they are
    copy = by_another(workspace, packs)
    with pytest.raises(StoreError, match="does not belong to this workspace"):
        open_store(StoreSettings(str(copy)))
    open_store(StoreSettings(str(workspace))).close()


def test_a_workspace_of_version_1_0_keeps_its_packs_on_another_disk(workspace: Path) -> None:
    elsewhere = packs_elsewhere(workspace)
    line = (elsewhere / ".workspace-id").read_text()
    (elsewhere / ".workspace-id").write_text(line.split()[0] + "\n")
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        assert newest(store) == {PAGE.url: PAGE.html}
    assert (elsewhere / ".workspace-id").read_text() == line


def test_packs_know_where_their_workspace_has_gone(workspace: Path) -> None:
    moved = workspace.rename(workspace.parent / "moved \udcff")
    open_store(StoreSettings(str(moved))).close()
    assert (moved / "packs/.workspace-id").read_bytes().endswith(b"moved \xff\n")
    elsewhere = packs_elsewhere(moved)
    open_store(StoreSettings(str(moved))).close()
    again = moved.rename(moved.parent / "again")
    with pytest.raises(StoreError, match="does not belong to this workspace") as refused:
        open_store(StoreSettings(str(again)))
    follow_advice(refused)
    open_store(StoreSettings(str(again))).close()
    assert (elsewhere / ".workspace-id").read_text().endswith("/again\n")


def test_no_workspace_is_made_over_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/packs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="no workspace can be made here"):
        open_store(StoreSettings(str(tmp_path / "ws")), create=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


OWN_FILES = (
    "siteloom.db",
    "siteloom.db-wal",
    "siteloom.db.before-0012",
    "workspace.json",
    "lock",
    "crawl-lock",
    "server-lock",
    "packs-lock",
    "forgetting",
    "crawls",
    "uploads",
    "workspace.json.unfinished",
)


@pytest.mark.parametrize("name", OWN_FILES)
def test_a_workspace_with_a_link_is_not_opened(workspace: Path, name: str) -> None:
    place, victim = workspace / name, workspace.parent / "victim"
    if place.is_file():
        place.rename(victim)
    else:
        victim.write_bytes(b"precious")
    before = victim.read_bytes()
    place.symlink_to(victim)
    with pytest.raises(StoreError, match=f"{name} is a symbolic link, which no workspace may contain"):
        open_store(StoreSettings(str(workspace)))
    assert victim.read_bytes() == before


def older_workspace(folder: Path) -> Path:
    """One that is upgraded when it is opened, and its tables copied before."""
    folder.mkdir()
    engine = connect(sqlite_url(folder))
    upgrade(engine, "0011")
    with engine.begin() as connection:
        connection.execute(insert(schema.workspace).values(id="old", created_at=datetime.now(UTC)))
    engine.dispose()
    (folder / "workspace.json").write_text(json.dumps({"id": "old", "database": "sqlite"}))
    return folder


def test_a_journal_beside_the_backup_of_an_upgrade_has_no_file_removed(tmp_path: Path) -> None:
    """Neither while the backup is made nor when it is opened later."""
    folder, victim = older_workspace(tmp_path / "workspace"), tmp_path / "victim"
    victim.write_bytes(b"precious")
    backup = folder / "siteloom.db.before-0011"
    with closing(sqlite3.connect(backup)) as database:
        database.execute("CREATE TABLE t (a)")
    write_journal(backup, victim)
    with closing(open_store(StoreSettings(str(folder)))) as store:
        assert store.backup == str(backup)
    with closing(sqlite3.connect(backup)) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchone() == ("0011",)
    assert victim.exists()
    assert [file.name for file in folder.glob("siteloom.db.before-*")] == [backup.name]


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", ".unfinished-1"])
def test_the_backup_of_an_upgrade_is_not_written_through_hard_links(tmp_path: Path, ending: str) -> None:
    folder, victim = older_workspace(tmp_path / "workspace"), tmp_path / "victim"
    victim.write_bytes(b"precious")
    engine = connect(sqlite_url(folder))
    (folder / f"siteloom.db.before-0011{ending}").hardlink_to(victim)
    backup = upgrade(engine)
    engine.dispose()
    assert victim.read_bytes() == b"precious"
    assert [str(file) for file in folder.glob("siteloom.db.before-*")] == [backup]


def test_a_copy_that_an_upgrade_cannot_finish_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = older_workspace(tmp_path / "workspace")
    engine = connect(sqlite_url(folder))
    monkeypatch.setattr(os, "fsync", raise_disk_full)
    with pytest.raises(StoreError, match=r"no backup can be made at .* No space left"):
        upgrade(engine)
    engine.dispose()
    assert not list(folder.glob("siteloom.db.before-*"))


def raise_disk_full(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", [name for name in OWN_FILES if name not in ("crawls", "uploads")])
def test_a_workspace_with_a_hard_link_is_not_written(workspace: Path, name: str) -> None:
    place, victim = workspace / name, workspace.parent / "victim"
    if place.is_file():
        place.rename(victim)
    else:
        victim.write_bytes(b"precious")
    before = victim.read_bytes()
    place.hardlink_to(victim)
    with pytest.raises(StoreError, match=f"{name} has another name, too"):
        open_store(StoreSettings(str(workspace)))
    assert victim.read_bytes() == before


def test_a_workspace_with_hard_links_is_read_where_nothing_is_written(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a snapshot that a program for backups has made."""
    (workspace.parent / "snapshot.db").hardlink_to(workspace / "siteloom.db")
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)  # root may write anywhere
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        assert newest(store) == {PAGE.url: PAGE.html}


def test_a_pack_that_is_a_hard_link_is_not_written(workspace: Path) -> None:
    (pack,) = (workspace / "packs").rglob("*.pack")
    victim = workspace.parent / "victim"
    victim.hardlink_to(pack)
    before = victim.read_bytes()
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        with pytest.raises(StoreError, match="it has another name, too"):
            keep(store, Page("http://a.example/2", b"<p>two"))
        assert newest(store) == {PAGE.url: PAGE.html}
    assert victim.read_bytes() == before


def test_a_lock_that_becomes_a_hard_link_is_not_written(workspace: Path) -> None:
    victim = workspace.parent / "victim"
    victim.write_bytes(b"precious")
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        (workspace / "lock").unlink()
        (workspace / "lock").hardlink_to(victim)
        with pytest.raises(StoreError, match="it has another name, too"):
            keep(store, Page("http://a.example/2", b"<p>two"))
    assert victim.read_bytes() == b"precious"


def test_a_workspace_with_a_named_pipe_is_not_waited_for(workspace: Path) -> None:
    (workspace / "lock").unlink()
    os.mkfifo(workspace / "lock")
    with pytest.raises(StoreError, match="lock is neither a file nor a folder"):
        open_store(StoreSettings(str(workspace)))


def test_a_lock_that_becomes_a_link_is_not_written(workspace: Path) -> None:
    victim = workspace.parent / "victim"
    victim.write_bytes(b"precious")
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        (workspace / "lock").unlink()
        (workspace / "lock").symlink_to(victim)
        with pytest.raises(StoreError, match="it is a symbolic link"):
            keep(store, Page("http://a.example/2", b"<p>two"))
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("folder", ["crawls", "uploads"])
def test_forgetting_removes_nothing_through_links(workspace: Path, folder: str) -> None:
    """Neither through a link in the workspace, nor through one in a folder of it."""
    victim = workspace.parent / "Documents"
    (victim / "letters").mkdir(parents=True)
    for place in (victim / "letter", victim / "letters/letter"):
        place.write_text(PAGE.url)
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        (workspace / folder).symlink_to(victim)
        with pytest.raises(StoreError, match="it is a symbolic link"):
            forget(store, [PAGE.url])
        (workspace / folder).unlink()
        (workspace / folder).mkdir()
        for name in ("letter", "letters"):
            (workspace / folder / name).symlink_to(victim / name)
        with suppress(StoreError):  # what is no journal cannot be read
            forget(store, [PAGE.url])
    assert sorted(str(file.relative_to(victim)) for file in victim.rglob("*")) == [
        "letter",
        "letters",
        "letters/letter",
    ]
    assert (victim / "letter").read_text() == PAGE.url


def test_a_journal_of_a_crawl_is_not_written_through_links(workspace: Path) -> None:
    victim = workspace.parent / "victim"
    victim.write_bytes(b"precious")
    journal = CrawlJournal.of(workspace, Crawl((PAGE.url,), 1), None)
    journal.file.parent.mkdir()
    journal.file.symlink_to(victim)
    with pytest.raises(StoreError, match="it is a symbolic link"):
        journal.append([FetchedUrl(PAGE.url, PAGE.url, is_collected=True)])
    with pytest.raises(StoreError, match="it is a symbolic link"):
        journal.read()
    journal.remove()
    assert victim.read_bytes() == b"precious"
    assert not journal.file.is_symlink()


def test_nothing_is_backed_up_through_links(workspace: Path) -> None:
    victim = workspace.parent / "victim"
    victim.write_bytes(b"precious")
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        (workspace / "crawls").mkdir()
        (workspace / "crawls/1.jsonl").symlink_to(victim)
        with pytest.raises(OutputError, match="it is a symbolic link"):
            back_up(store, str(workspace.parent / "copy"))
    assert not (workspace.parent / "copy").exists()


HEADER = struct.Struct("<4sIII")


def block(index: bytes, bodies: bytes) -> bytes:
    return (
        HEADER.pack(b"SLBK", len(index), len(bodies), zlib.crc32(bodies, zlib.crc32(index))) + index + bodies
    )


def frame(size: int) -> bytes:
    """A frame that says its content has this many bytes, and has none."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + b"\x01\x00\x00"


@pytest.mark.parametrize(
    ("index", "bodies"),
    [
        (frame(2**50), frame(2**50)),
        (zstandard.compress(b"[]"), frame(2**50)),
        (zstandard.compress(b"[" * 100_000), zstandard.compress(b"")),
        (zstandard.compress(b'{"a": 1}'), zstandard.compress(b"")),
        (zstandard.compress(b"nonsense"), zstandard.compress(b"")),
        (
            zstandard.compress(json.dumps([["u", "many", "text/html", None, None]]).encode()),
            zstandard.compress(b"x"),
        ),
        (b"no frame", b"no frame"),
    ],
)
def test_a_hostile_block_is_a_damaged_pack(tmp_path: Path, index: bytes, bodies: bytes) -> None:
    file = tmp_path / "packs" / "a.example" / "000001.pack"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"SLPACK1\n" + block(index, bodies))
    with closing(opened_pack(file)) as pack, pytest.raises(PackError, match="cannot be read"):
        list(pack.blocks())


@pytest.mark.parametrize("content", [frame(2**50), b"no frame", zstandard.compress(b"x")])
def test_what_tables_hold_compressed_is_bounded_too(workspace: Path, content: bytes) -> None:
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        count_versions(store, "a.example")
        update_index(context_of(store))
        with store.engine.begin() as connection:
            for table in (schema.segment_tables, schema.search_documents):
                connection.execute(update(table).values(content=content))
        with pytest.raises(StoreError, match="segment table of this workspace is damaged"):
            store.counted_segments("a.example")
        with pytest.raises(StoreError, match="document of the search index is damaged"):
            search(context_of(store), SearchRequest(text="one"))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "packs" / "a.example" / "000001.pack"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"SLPACK1\n" + encode_block([]))
    with closing(opened_pack(file)) as pack:
        assert [documents for _, documents in pack.blocks()] == [()]


def test_what_the_schema_calls_is_not_trusted(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the folder may only be read, which no folder is to root."""
    for may_write in (True, False):
        monkeypatch.setattr(os, "access", lambda _, mode, may_write=may_write: may_write or mode != os.W_OK)
        with closing(open_store(StoreSettings(str(workspace)))) as store:
            assert ("mode" in store.engine.url.query) is not may_write
            with store.engine.connect() as connection:
                assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0


def test_a_journal_has_no_file_removed(workspace: Path) -> None:
    """SQLite itself removes the file, as a look at a copy of the database shows."""
    victim = workspace.parent / "victim"
    copy = shutil.copy(workspace / "siteloom.db", workspace.parent)
    for database, is_opened in ((Path(copy), True), (workspace / "siteloom.db", False)):
        victim.write_bytes(b"precious")
        journal = write_journal(database, victim)
        if is_opened:
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("SELECT count(*) FROM sites").fetchone()
            assert not victim.exists()
        else:
            with pytest.raises(StoreError, match=f"{journal} names another file, which SQLite would remove"):
                open_store(StoreSettings(str(workspace)))
            assert victim.exists()


def test_a_journal_of_a_killed_process_is_played_back(workspace: Path) -> None:
    """Where SQLite cannot write ahead, as on some network filesystems, each change has such a journal."""
    database = workspace / "siteloom.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA cache_size=1")  # so that pages are written before the commit
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM urls")
        for _ in range(2_000):
            connection.execute("INSERT INTO sites (name) VALUES (hex(randomblob(100)))")
        files = {file.name: file.read_bytes() for file in workspace.glob("siteloom.db*")}
        connection.execute("ROLLBACK")
    assert set(files) == {"siteloom.db", "siteloom.db-journal"}
    for name, content in files.items():
        (workspace / name).write_bytes(content)
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        assert newest(store) == {PAGE.url: PAGE.html}
        assert [site.name for site in store.sites()] == ["a.example"]


STATEMENTS = {
    "the trigger 't' of the table 'runs'": (
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM urls; END",
    ),
    "the trigger 'back' of the table 'urls'": (
        "CREATE TRIGGER back BEFORE DELETE ON urls BEGIN SELECT raise(ignore); END",
    ),
    "the view 'sites'": (
        "ALTER TABLE sites RENAME TO was",
        "CREATE VIEW sites AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id",
    ),
    "the table 'runs'": ("ALTER TABLE runs ADD COLUMN g AS (hex(zeroblob(400000000)))",),
    "the index 'long' of the table 'runs'": ("CREATE INDEX long ON runs (hex(zeroblob(400000000)))",),
    "the index 'part' of the table 'runs'": ("CREATE INDEX part ON runs (id) WHERE hex(zeroblob(9)) > verb",),
    "the table 'entities'": (
        "DROP TABLE entities",
        "CREATE TABLE entities (number INTEGER CHECK (length(randomblob(900000000))), words TEXT)",
    ),
    "the table 'linkings'": (
        "DROP TABLE linkings",
        "CREATE TABLE linkings (run_id INTEGER DEFAULT (length(randomblob(900000000))))",
    ),
    "the table 'jobs'": (
        "DROP TABLE jobs",
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, run_id INTEGER REFERENCES runs (id) ON DELETE CASCADE)",
    ),
    "the table 'dismissed_clusters'": (
        "DROP TABLE dismissed_clusters",
        "CREATE VIRTUAL TABLE dismissed_clusters USING fts4(cluster_id, at)",
    ),
    "the table 'search_terms'": (
        "CREATE VIRTUAL TABLE search_terms USING fts5(title, content='users', content_rowid='id')",
    ),
}


@pytest.mark.parametrize("fault", STATEMENTS)
def test_what_siteloom_does_not_make_in_a_database_is_not_run(workspace: Path, fault: str) -> None:
    with closing(sqlite3.connect(workspace / "siteloom.db", isolation_level=None)) as database:
        for statement in STATEMENTS[fault]:
            database.execute(statement)
    before = (workspace / "siteloom.db").read_bytes()
    with pytest.raises(
        StoreError, match=rf"siteloom\.db has {re.escape(fault)}, which Siteloom did not make"
    ):
        open_store(StoreSettings(str(workspace)))
    assert (workspace / "siteloom.db").read_bytes() == before


def test_what_siteloom_and_sqlite_make_is_opened(sqlite_store: Store) -> None:
    live(sqlite_store)
    with sqlite_store.engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE")
    sqlite_store.close()
    with closing(open_store(StoreSettings(str(sqlite_store.folder)))) as store:
        assert len(store.sites()) == 2


def _damaged(content: bytes, how: str) -> bytes:
    if how == "no database":
        return b"not a database" * 1_000
    if how == "cut":
        return content[: len(content) // 2]
    if how == "a header only":
        return content[:100]
    if how == "a wrong size of pages":
        return content[:16] + b"\x02\x00" + content[18:]
    if how == "pages without end":
        return content[:28] + b"\x7f\xff\xff\xfe" + content[32:]
    return content[:4096] + bytes(byte ^ 0xFF for byte in content[4096:])


def _read_all(workspace: Path) -> None:
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        assert newest(store) == {PAGE.url: PAGE.html}
        assert list(store.check()) == []


@pytest.mark.parametrize(
    "how",
    ["no database", "cut", "a header only", "a wrong size of pages", "pages without end", "flipped bits"],
)
def test_a_damaged_database_is_told_in_a_sentence(workspace: Path, how: str) -> None:
    database = workspace / "siteloom.db"
    database.write_bytes(_damaged(database.read_bytes(), how))
    with pytest.raises(StoreError):
        _read_all(workspace)


def test_a_damaged_schema_is_told_in_a_sentence(workspace: Path) -> None:
    """SQLite quotes it in what it says, which then is no text."""
    database = workspace / "siteloom.db"
    content = database.read_bytes()
    assert b"TABLE sites (" in content
    database.write_bytes(content.replace(b"TABLE sites (", b"TABLE \xff\xff\xff \xff ("))
    with pytest.raises(StoreError, match=r"siteloom\.db cannot be opened: its schema is damaged"):
        open_store(StoreSettings(str(workspace)))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("arguments", "{"),
        ("counts", "[" * 100_000),
        ("counts", b"\xff"),
        ("started_at", "never"),
        ("ended_at", b"\xff"),
        ("started_at", 7),
    ],
)
def test_a_damaged_value_is_told_in_a_sentence(workspace: Path, column: str, value: object) -> None:
    with closing(sqlite3.connect(workspace / "siteloom.db", isolation_level=None)) as database:
        database.execute(f"UPDATE runs SET {column} = ?", [value])
    fault = "tables of this workspace are damaged: one holds what is not"
    with closing(open_store(StoreSettings(str(workspace)))) as store, pytest.raises(StoreError, match=fault):
        store.runs(5)


def test_the_log_of_someone_else_is_ignored(workspace: Path) -> None:
    """SQLite takes from it only what its checksums say was written to this very database."""
    for name in ("siteloom.db-wal", "siteloom.db-shm"):
        (workspace / name).write_bytes(Random(7).randbytes(2**16))
    with closing(open_store(StoreSettings(str(workspace)))) as store:
        assert newest(store) == {PAGE.url: PAGE.html}
