"""A workspace from someone else leads to no file outside of itself, whatever its tables and packs say."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from sqlalchemy import update

from siteloom.cleaning_runs import count_versions
from siteloom.config import StoreSettings
from siteloom.errors import PackError, StoreError
from siteloom.model import Page
from siteloom.searching import Search, search_store, update_index
from siteloom.store import Store, open_store, schema
from siteloom.store.packs import Pack, encode_block, pack_path
from siteloom.store.wiping import remove_unknown_packs

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
        with pytest.raises(PackError, match="which is none of its own"):
            list(store.pages())
        with pytest.raises(StoreError):
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


def test_a_folder_of_packs_on_another_disk_is_ones_own(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "packs").symlink_to(tmp_path / "disk")
    assert pack_path(tmp_path / "packs", "a.example/000001.pack").name == "000001.pack"


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
    file = tmp_path / "000001.pack"
    file.write_bytes(b"SLPACK1\n" + block(index, bodies))
    with closing(Pack(file)) as pack, pytest.raises(PackError, match="cannot be read"):
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
    file = tmp_path / "000001.pack"
    file.write_bytes(b"SLPACK1\n" + encode_block([]))
    with closing(Pack(file)) as pack:
        assert [documents for _, documents in pack.blocks()] == [()]


def test_a_trigger_of_someone_else_calls_nothing_that_does_harm(workspace: Path) -> None:
    with closing(open_store(StoreSettings(str(workspace)))) as store, store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
