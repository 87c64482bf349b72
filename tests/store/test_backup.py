"""A backup is the workspace as it was at one moment, whole or not there, and opens wherever it is put."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from sqlalchemy import MetaData, select

from siteloom.core.errors import OutputError, StoreBusy, StoreError, UsageError
from siteloom.core.file_lock import packs_lock, server_lock, write_lock
from siteloom.core.settings import StoreSettings
from siteloom.sources.crawling.crawl_journal import FOLDER as CRAWLS
from siteloom.store import workspace_copy
from siteloom.store.migrate import newest_step
from siteloom.store.store import Store
from siteloom.store.workspace_copy import DUMP_FILE, back_up
from siteloom.store.workspace_folder import open_store
from tests.formats import kept
from tests.formats.summary import summary
from tests.store.helpers import all_versions, assert_sound, newest, put, random_page

BACK_UP = """
import sys
from siteloom.core.settings import StoreSettings
from siteloom.store.workspace_copy import back_up
from siteloom.store.workspace_folder import open_store
store = open_store(StoreSettings(sys.argv[1], sys.argv[2]))
back_up(store, sys.argv[3], lambda _: print("copying", flush=True) or sys.stdin.read())
"""

WRITE = """
import sys
from random import Random
from siteloom.core.settings import StoreSettings
from siteloom.core.model import Page
from siteloom.store.workspace_folder import open_store
store = open_store(StoreSettings(sys.argv[1], sys.argv[2]))
random = Random(3)
for number in range(10_000):
    with store.ingesting({}, 1) as (run, writer):
        for one in range(4):
            site = f"site{one}.example"
            writer.add(Page(f"http://{site}/{number}", random.randbytes(20_000).hex().encode()), site)
    print(number, flush=True)
"""


def tables(store: Store) -> dict[str, list[Any]]:
    """Every row of every table."""
    found = MetaData()
    found.reflect(store.engine)
    with store.engine.connect() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all()))
            for table in found.sorted_tables
            if not table.name.startswith("search_terms")  # of FTS5's own making
        }


def restored(
    settings: StoreSettings, workspace_copy: Path, place: Path, new_database: Callable[[], str]
) -> StoreSettings:
    """The workspace of a backup at another place, put there as the guide says."""
    shutil.move(workspace_copy, place)
    if not settings.url:
        return StoreSettings(str(place))
    address = new_database()
    subprocess.run(
        ["pg_restore", "--no-owner", "--exit-on-error", f"--dbname={address}", place / DUMP_FILE],
        check=True,
        capture_output=True,
    )
    return StoreSettings(str(place), address)


@pytest.fixture
def new_database(request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Makes an empty database, which is gone afterwards."""
    opened: list[Any] = []

    def make() -> str:
        opened.append(request.getfixturevalue("postgres_server").new_database())
        address: str = opened[-1].__enter__()
        return address

    yield make
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture
def full_settings(store_settings: StoreSettings) -> StoreSettings:
    """A workspace in which every table is filled."""
    (folder,) = [one for one in kept.kept("workspace") if one.name.endswith(newest_step())]
    unpacked = kept.unpack_workspace(folder, Path(store_settings.workspace))
    if store_settings.url:
        return kept.into_postgres(unpacked, store_settings.url, newest_step())
    return unpacked


def test_all_of_it_is_in_a_backup_and_comes_back_elsewhere(
    full_settings: StoreSettings, tmp_path: Path, new_database: Callable[[], str]
) -> None:
    copied: list[int] = []
    journal = Path(full_settings.workspace) / CRAWLS / "0123.jsonl"
    journal.parent.mkdir()
    journal.write_text("[]\n")
    with closing(open_store(full_settings)) as store:
        before, pages = tables(store), all_versions(store)
        made = back_up(store, str(tmp_path / "backups" / "monday"), copied.append)
        assert made.folder == tmp_path / "backups" / "monday"
        assert made.bytes == sum(file.stat().st_size for file in made.folder.glob("packs/*/*"))
        assert sum(copied) >= made.bytes
        assert tables(store) == before
    assert made.folder.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in made.folder.parent.iterdir()] == ["monday"]
    wanted = {"packs", "crawls", "workspace.json", DUMP_FILE if full_settings.url else "siteloom.db"}
    assert {file.name for file in made.folder.iterdir()} == wanted
    for file in made.folder.rglob("*"):
        assert not file.is_file() or str(tmp_path).encode() not in file.read_bytes()
    shutil.rmtree(full_settings.workspace)
    settings = restored(full_settings, made.folder, tmp_path / "elsewhere", new_database)
    with closing(open_store(settings)) as store:
        assert store.backup is None
        found = tables(store)
        assert {name for name in found if found[name] != before.get(name)} == set()
        assert found.keys() == before.keys()
        assert all_versions(store) == pages
        assert_sound(store)
        known = summary(store)
        assert known["signs in"]
        assert known["keys"] == ["nightly export"]
        assert put(store, random_page(Random(1), "http://new.example/")).new == 1  # numbers go on
        assert_sound(store)


def test_a_backup_while_another_process_writes_is_sound_and_keeps_no_one_waiting(
    store: Store,
    store_settings: StoreSettings,
    tmp_path: Path,
    new_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied: list[int] = []

    def slowly(count: int) -> None:
        copied.append(count)
        assert len(copied) < 5_000, "it begins again whenever something is written"
        time.sleep(0.003)  # so that something is written between the steps

    monkeypatch.setattr(workspace_copy, "_PAGES_OF_A_STEP", 1)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE, store_settings.workspace, store_settings.url],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout is not None
        for _ in range(3):
            before = int(writer.stdout.readline())
        made = back_up(store, str(tmp_path / "backup"), slowly)
        after = int(writer.stdout.readline())
    finally:
        writer.kill()
        writer.communicate()
    settings = restored(store_settings, made.folder, tmp_path / "elsewhere", new_database)
    with closing(open_store(settings)) as copy:
        assert_sound(copy)
        found = newest(copy)
        assert {f"http://site{n}.example/{number}" for n in range(4) for number in range(before + 1)} <= set(
            found
        )
        assert len(found) < 4 * 10_000
        runs = copy.runs(10_000)
        assert {run.status for run in runs[1:]} <= {"done"}
        assert runs[0].status in ("done", "killed")
        assert put(copy, random_page(Random(1), "http://new.example/")).new == 1
        assert_sound(copy)
    assert after > before
    assert min(copied) >= 0  # it never began again


def test_a_backup_is_not_refused_while_another_writes_or_a_server_runs(
    sqlite_store: Store, tmp_path: Path
) -> None:
    put(sqlite_store, random_page(Random(1), "http://a.example/"))
    with write_lock(sqlite_store.folder), server_lock(sqlite_store.folder):
        assert back_up(sqlite_store, str(tmp_path / "backup")).packs == 1


def test_packs_are_not_replaced_while_they_are_copied(sqlite_store: Store, tmp_path: Path) -> None:
    with packs_lock(sqlite_store.folder), pytest.raises(StoreBusy, match="copies or replaces pages"):
        back_up(sqlite_store, str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()


# What is written of tables in PostgreSQL stands beside the rest: once is enough.
@pytest.mark.parametrize("store_settings", ["sqlite"], indirect=True)
def test_kill_9_leaves_no_backup_and_the_next_one_clears_up(
    store: Store, store_settings: StoreSettings, tmp_path: Path
) -> None:
    random = Random(5)
    put(store, *(random_page(random, f"http://a.example/{number}", 400_000) for number in range(25)))
    target = tmp_path / "backup"
    command = [sys.executable, "-c", BACK_UP, store_settings.workspace, store_settings.url, str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "copying\n"
        process.kill()
    assert not target.exists()
    assert list(tmp_path.glob("backup.unfinished-*"))
    assert not list(tmp_path.glob("backup.unfinished-*/workspace.json"))
    assert back_up(store, str(target)).packs == 1
    assert not list(tmp_path.glob("backup.unfinished-*"))


def test_what_another_backup_is_writing_is_left_alone(sqlite_store: Store, tmp_path: Path) -> None:
    with workspace_copy._unfinished_folder(tmp_path / "backup") as others:
        back_up(sqlite_store, str(tmp_path / "backup"))
        assert others.exists()
    assert not others.exists()


@pytest.mark.parametrize("place", ["filled", "file", ".siteloom/backup", "s3://bucket/backup"])
def test_a_place_that_cannot_take_a_backup_is_refused(
    empty_workspace: Path, place: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(empty_workspace, tmp_path / ".siteloom")
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "something").touch()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    with closing(open_store(StoreSettings(str(folder)))) as store, pytest.raises(UsageError) as refused:
        back_up(store, place if "://" in place else str(tmp_path / place))
    assert str(refused.value).count(".") >= 1
    left = {file for file in sorted(tmp_path.rglob("*")) if not file.name.startswith("siteloom.db-")}
    assert left == set(before)


def test_an_empty_folder_takes_a_backup(sqlite_store: Store, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    target.mkdir(mode=0o755)
    back_up(sqlite_store, str(target))
    assert (target / "workspace.json").exists()
    assert target.stat().st_mode & 0o777 == 0o700


def test_where_nothing_can_be_written_there_is_a_sentence(sqlite_store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written: "):
        back_up(sqlite_store, str(tmp_path / "file" / "backup"))


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_workspace_gives_no_backup_but_a_sentence(
    sqlite_store: Store, damage: str, tmp_path: Path
) -> None:
    put(sqlite_store, random_page(Random(1), "http://a.example/"))
    (pack,) = sqlite_store.packs_folder.glob("*/*")
    content = pack.read_bytes()
    if damage == "gone":
        pack.unlink()
    else:
        pack.write_bytes(content[:-9] if damage == "cut" else content[:-9] + b"x" * 9)
    with pytest.raises(StoreError, match=r"there is no backup: .*siteloom doctor") as told:
        back_up(sqlite_store, str(tmp_path / "backup"))
    assert "\n" not in str(told.value)
    assert not list(tmp_path.glob("backup*"))


def test_damaged_tables_give_no_backup_but_a_sentence(sqlite_store: Store, tmp_path: Path) -> None:
    put(sqlite_store, *(random_page(Random(n), f"http://a.example/{n}") for n in range(200)))
    sqlite_store.close()
    file = sqlite_store.folder / "siteloom.db"
    content = bytearray(file.read_bytes())
    for start in range(40_960, len(content), 4_096):
        content[start : start + 100] = b"\xff" * 100
    file.write_bytes(content)
    with pytest.raises(StoreError):
        back_up(sqlite_store, str(tmp_path / "backup"))
    assert not list(tmp_path.glob("backup*"))


def test_without_pg_dump_there_is_a_sentence(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = StoreSettings(str(tmp_path / "workspace"), postgres_url)
    monkeypatch.setenv("PATH", str(tmp_path))
    with closing(open_store(settings, create=True)) as store:
        with pytest.raises(StoreError, match="backed up by pg_dump, which is not installed here: install"):
            back_up(store, str(tmp_path / "backup"))
        program = tmp_path / "pg_dump"
        program.write_text('#!/bin/sh\necho "pg_dump: error: server version mismatch" >&2\nexit 1\n')
        program.chmod(0o755)
        with pytest.raises(StoreError, match="cannot be copied: pg_dump: error: server version mismatch"):
            back_up(store, str(tmp_path / "backup"))
    assert not list(tmp_path.glob("backup*"))


def test_passwords_are_on_no_command_line(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_password = postgres_url.replace("siteloom@", "siteloom:secret@")
    settings = StoreSettings(str(tmp_path / "workspace"), with_password)
    program = tmp_path / "pg_dump"
    program.write_text(f'#!/bin/sh\necho "$@" "$PGPASSWORD" >{tmp_path}/called\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with closing(open_store(settings, create=True)) as store, pytest.raises(StoreError):
        back_up(store, str(tmp_path / "backup"))
    called = (tmp_path / "called").read_text().split()
    assert called[-1] == "secret"
    assert "secret" not in " ".join(called[:-1])


def test_tables_of_others_in_the_database_are_left_out(
    postgres_url: str, tmp_path: Path, new_database: Callable[[], str]
) -> None:
    settings = StoreSettings(str(tmp_path / "workspace"), postgres_url)
    with closing(open_store(settings, create=True)) as store:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("CREATE TABLE theirs (id integer)")
        made = back_up(store, str(tmp_path / "backup"))
    moved = restored(settings, made.folder, tmp_path / "elsewhere", new_database)
    with closing(open_store(moved)) as store:
        assert "theirs" not in tables(store)
        assert json.loads((tmp_path / "elsewhere" / "workspace.json").read_text())["id"]
