"""A workspace from someone else leads to no file outside of itself, whatever its tables and packs say."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import struct
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest
import zstandard
from sqlalchemy import update

from siteloom.cleaning_runs import count_versions
from siteloom.config import StoreSettings
from siteloom.errors import OutputError, PackError, StoreError
from siteloom.model import Page
from siteloom.pages.crawl import Crawl
from siteloom.pages.crawl.journal import Journal
from siteloom.pages.crawl.progress import Done
from siteloom.searching import Search, search_store, update_index
from siteloom.store import Store, back_up, forget, open_store, schema
from siteloom.store.packs import encode_block
from siteloom.store.wiping import remove_unknown_packs

from .helpers import opened_pack

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


@pytest.mark.parametrize("owner", [None, "someone else"])
def test_a_folder_that_does_not_say_whose_packs_it_has_is_not_used(
    workspace: Path, owner: str | None
) -> None:
    """It may be the folder of another workspace, whose packs are unknown here and would be removed."""
    elsewhere = workspace.parent / "disk"
    (workspace / "packs").rename(elsewhere)
    (workspace / "packs").symlink_to(elsewhere)
    (elsewhere / ".workspace-id").unlink()
    if owner is not None:
        (elsewhere / ".workspace-id").write_text(owner)
    with pytest.raises(StoreError, match="does not belong to this workspace") as refused:
        open_store(StoreSettings(str(workspace)))
    advice = re.search(r"write (\S+) into (\S+)\.$", str(refused.value))
    assert advice is not None
    Path(advice[2]).write_text(advice[1])
    open_store(StoreSettings(str(workspace))).close()


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
    journal = Journal.of(workspace, Crawl((PAGE.url,), 1), None)
    journal.file.parent.mkdir()
    journal.file.symlink_to(victim)
    with pytest.raises(StoreError, match="it is a symbolic link"):
        journal.append([Done(PAGE.url, PAGE.url, is_kept=True)])
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
        update_index(store)
        with store.engine.begin() as connection:
            for table in (schema.segment_tables, schema.search_documents):
                connection.execute(update(table).values(content=content))
        with pytest.raises(StoreError, match="segment table of this workspace is damaged"):
            store.counted_segments("a.example")
        with pytest.raises(StoreError, match="document of the search index is damaged"):
            search_store(store, Search("one"))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "packs" / "a.example" / "000001.pack"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"SLPACK1\n" + encode_block([]))
    with closing(opened_pack(file)) as pack:
        assert [documents for _, documents in pack.blocks()] == [()]


def test_a_trigger_of_someone_else_calls_nothing_that_does_harm(workspace: Path) -> None:
    with closing(open_store(StoreSettings(str(workspace)))) as store, store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
