"""Opening workspaces: what fits together is opened, and all else is refused with a sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from torture.postgres import PostgresServer, free_port

from siteloom.core.database import connect
from siteloom.core.database import postgres_url as database_url
from siteloom.core.errors import NoWorkspace, StoreBusy, StoreError, StoreTooNew
from siteloom.core.file_lock import write_lock
from siteloom.core.settings import StoreSettings
from siteloom.store import workspace_folder
from siteloom.store.migrate import upgrade
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store, workspace_exists
from tests.patience import SECONDS
from tests.store.helpers import assert_sound, newest, page, put

_NOBODY = 65534

OPEN = """
import sys
from siteloom.core.settings import StoreSettings
from siteloom.core.errors import StoreBusy
from siteloom.store.workspace_folder import open_store
print("ready", flush=True)
sys.stdin.readline()
try:
    open_store(StoreSettings(sys.argv[1], sys.argv[2]), create=True).close()
except StoreBusy:
    print("busy")
"""


def refusal(settings: StoreSettings, *, create: bool = False) -> str:
    """The sentence with which opening ends."""
    with pytest.raises(StoreError) as refused:
        open_store(settings, create=create)
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_a_workspace_is_made_once_and_opened_ever_after(store_settings: StoreSettings) -> None:
    assert not workspace_exists(store_settings)
    with closing(open_store(store_settings, create=True)) as made:
        assert made.backup is None
        put(made, page("http://a.example/1"))
    assert workspace_exists(store_settings)
    for create in (False, True):
        with closing(open_store(store_settings, create=create)) as opened:
            assert set(newest(opened)) == {"http://a.example/1"}
            assert opened.backup is None


def test_no_workspace_is_made_unless_asked_for(store_settings: StoreSettings) -> None:
    with pytest.raises(NoWorkspace, match=r"There is no workspace at .*: make one with siteloom init"):
        open_store(store_settings)
    assert not Path(store_settings.workspace).exists()


def test_a_sqlite_workspace_is_not_opened_with_another_database(tmp_path: Path, postgres_url: str) -> None:
    settings = StoreSettings(str(tmp_path / "w"))
    open_store(settings, create=True).close()
    sentence = refusal(replace(settings, url=postgres_url), create=True)
    assert sentence.endswith("keeps its tables in sqlite: leave --store out.")


def test_a_postgresql_workspace_is_not_opened_without_its_address(tmp_path: Path, postgres_url: str) -> None:
    settings = StoreSettings(str(tmp_path / "w"), postgres_url)
    open_store(settings, create=True).close()
    sentence = refusal(replace(settings, url=""), create=True)
    assert sentence.endswith("keeps its tables in postgresql: give its address with --store.")
    assert not (tmp_path / "w" / "siteloom.db").exists()


def test_the_tables_of_another_workspace_are_refused(tmp_path: Path, postgres_server: PostgresServer) -> None:
    with postgres_server.new_database() as one, postgres_server.new_database() as other:
        open_store(StoreSettings(str(tmp_path / "one"), one), create=True).close()
        open_store(StoreSettings(str(tmp_path / "other"), other), create=True).close()
        assert "belong to another workspace" in refusal(StoreSettings(str(tmp_path / "one"), other))
        assert "belong to another workspace" in refusal(
            StoreSettings(str(tmp_path / "new"), one), create=True
        )
        assert not workspace_exists(StoreSettings(str(tmp_path / "new")))
        open_store(StoreSettings(str(tmp_path / "one"), one)).close()


def test_two_folders_that_claim_one_database_at_once_do_not_both_get_it(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_about_to_claim = threading.Barrier(2)

    def upgrade_together(engine: Engine) -> str | None:
        with suppress(threading.BrokenBarrierError):
            both_about_to_claim.wait(1)
        return upgrade(engine)

    def claim(name: str) -> str:
        try:
            open_store(StoreSettings(str(tmp_path / name), postgres_url), create=True).close()
        except StoreError as error:
            return str(error)
        return "claimed"

    engine = connect(database_url(postgres_url))
    upgrade(engine)  # so that the two need not quarrel about who makes the tables
    engine.dispose()
    monkeypatch.setattr(workspace_folder, "upgrade", upgrade_together)
    with ThreadPoolExecutor(2) as threads:
        first, second = sorted(threads.map(claim, ["one", "other"]))
    assert "belong to another workspace" in first
    assert second == "claimed"


def test_pages_are_not_overwritten_when_their_tables_are_gone(
    store_settings: StoreSettings, postgres_server: PostgresServer
) -> None:
    with closing(open_store(store_settings, create=True)) as store:
        put(store, page("http://a.example/1"))
    pack = Path(store_settings.workspace) / "packs" / "a.example" / "000001.pack"
    before = pack.read_bytes()
    with postgres_server.new_database() as empty:
        if store_settings.url:
            store_settings = replace(store_settings, url=empty)
        else:
            (Path(store_settings.workspace) / "siteloom.db").unlink()
        assert "has pages that this database knows nothing of" in refusal(store_settings)
        assert "has pages that this database knows nothing of" in refusal(store_settings, create=True)
    assert pack.read_bytes() == before


def test_a_damaged_marker_is_refused(store_settings: StoreSettings) -> None:
    open_store(store_settings, create=True).close()
    marker = Path(store_settings.workspace) / "workspace.json"
    for content in (b"", b"{", b"[]", b"null", b'"x"', b"{}", b'{"id": "x"}', b"\xff\xfe"):
        marker.write_bytes(content)
        for create in (False, True):
            sentence = refusal(store_settings, create=create)
            assert sentence.endswith("workspace.json is damaged: restore it from a backup.")


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough" * 100, b"SQLite format 3\0" * 100]
)
def test_a_damaged_database_is_refused(tmp_path: Path, content: bytes) -> None:
    settings = StoreSettings(str(tmp_path))
    open_store(settings, create=True).close()
    (tmp_path / "siteloom.db").write_bytes(content)
    assert "siteloom.db cannot be opened: " in refusal(settings)


def test_a_file_in_the_place_of_the_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("mine")
    assert "cannot be opened: Not a directory." in refusal(StoreSettings(str(tmp_path / "w")), create=True)
    assert (tmp_path / "w").read_text() == "mine"


def test_an_unreachable_postgresql_is_named_without_its_password_and_nothing_is_begun(tmp_path: Path) -> None:
    address = f"postgresql://me:s3cret@127.0.0.1:{free_port()}/name"
    sentence = refusal(StoreSettings(str(tmp_path / "w"), address), create=True)
    assert sentence.startswith("The database postgresql://me:***@127.0.0.1")
    assert "s3cret" not in sentence
    assert not workspace_exists(StoreSettings(str(tmp_path / "w")))
    open_store(StoreSettings(str(tmp_path / "w")), create=True).close()


def test_a_database_that_is_not_there_is_named(tmp_path: Path, postgres_server: PostgresServer) -> None:
    sentence = refusal(StoreSettings(str(tmp_path / "w"), postgres_server.address("none")), create=True)
    assert 'database "none" does not exist' in sentence


def test_a_newer_workspace_is_refused_and_left_alone(store_settings: StoreSettings) -> None:
    with closing(open_store(store_settings, create=True)) as store, store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for create in (False, True):
        with pytest.raises(StoreTooNew, match=r"newer version of Siteloom .* 9999\): upgrade Siteloom"):
            open_store(store_settings, create=create)


def test_a_newer_workspace_is_refused_as_such_while_another_process_writes_to_it(
    store_settings: StoreSettings,
) -> None:
    with closing(open_store(store_settings, create=True)) as store:
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with write_lock(store.folder), pytest.raises(StoreTooNew):
            open_store(store_settings)


def test_a_workspace_that_another_process_is_making_is_busy(store_settings: StoreSettings) -> None:
    folder = Path(store_settings.workspace)
    folder.mkdir()
    with write_lock(folder), pytest.raises(StoreBusy):
        open_store(store_settings, create=True)
    open_store(store_settings, create=True).close()


def test_processes_that_make_a_workspace_at_once_do_not_spoil_it(store_settings: StoreSettings) -> None:
    command = [sys.executable, "-c", OPEN, store_settings.workspace, store_settings.url]
    openers = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for opener in openers:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("go\n")
        opener.stdin.flush()
    told = [opener.communicate(timeout=SECONDS) for opener in openers]
    assert {(out.strip(), error) for out, error in told} <= {("", ""), ("busy", "")}
    assert ("", "") in told
    with closing(open_store(store_settings)) as store:
        put(store, page("http://a.example/1"))
        assert_sound(store)


@contextmanager
def nobody() -> Iterator[None]:
    """Without root's right to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def write_protected(store_settings: StoreSettings) -> Iterator[StoreSettings]:
    """A workspace with one page that everybody may read and nobody may write."""
    with closing(open_store(store_settings, create=True)) as store:
        put(store, page("http://a.example/1"))
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own folder is closed to others
    shutil.copytree(store_settings.workspace, folder, dirs_exist_ok=True)
    entries = [folder, *folder.rglob("*")]
    for entry in entries:
        entry.chmod(0o555 if entry.is_dir() else 0o444)
    yield replace(store_settings, workspace=str(folder))
    for entry in entries:
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    shutil.rmtree(folder)


def test_writing_to_a_write_protected_workspace_ends_with_a_sentence(write_protected: StoreSettings) -> None:
    with nobody(), pytest.raises(StoreError, match=r"cannot be (opened|written|used): .+\.$"):
        put_into(write_protected)
    with closing(open_store(write_protected)) as store:
        assert set(newest(store)) == {"http://a.example/1"}
        assert_sound(store)


def test_writing_to_tables_that_may_only_be_read_ends_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = StoreSettings(str(tmp_path / "my pages"))
    put_into(settings)
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)  # which root may anywhere
    with closing(open_store(settings)) as store:
        counted = store.counted_segments("a.example")
        told = rf"^The workspace {settings.workspace} cannot be written: it may only be read\.$"
        with pytest.raises(StoreError, match=told):
            store.add_segments("a.example", counted.counts, counted=counted, counted_to=1)


def put_into(settings: StoreSettings) -> None:
    with closing(open_store(settings, create=True)) as store:
        put(store, page("http://a.example/2"))


def test_making_a_workspace_where_one_may_not_write_ends_with_a_sentence(
    write_protected: StoreSettings, postgres_url: str
) -> None:
    inside = str(Path(write_protected.workspace) / "inside")
    with nobody():
        for url in ("", postgres_url):
            assert refusal(StoreSettings(inside, url), create=True).endswith("Permission denied.")


def test_a_closed_store_gives_its_connections_back(store: Store) -> None:
    put(store, page("http://a.example/1"))
    store.close()
    assert store.engine.pool.status().count("Connections in pool: 0") == 1
