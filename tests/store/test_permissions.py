"""What a workspace is made of is for its owner alone, whatever the umask."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath

import pytest

from siteloom.apps.server.upload_folder import new_upload
from siteloom.core.database import connect, sqlite_url
from siteloom.core.file_lock import server_lock
from siteloom.core.model import Page
from siteloom.core.settings import StoreSettings
from siteloom.sources.crawling.crawl_journal import CrawlJournal, FetchedUrl
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.store.erasure.erasure import forget
from siteloom.store.migrate import upgrade
from siteloom.store.store import Store
from siteloom.store.workspace_copy import back_up
from siteloom.store.workspace_folder import open_store
from tests.store.helpers import put

PAGES = [Page(f"http://a.example/{number}", b"<p>%d" % number) for number in range(3)]


@pytest.fixture(autouse=True, params=[0o000, 0o022], ids=["umask 000", "umask 022"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The permissions of a folder and of all that is in it."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in (folder, *folder.rglob("*"))
    }


def private(folder: Path) -> dict[str, int]:
    """What these must be."""
    return {name: 0o700 if (folder / name).is_dir() else 0o600 for name in modes(folder)}


def use(store: Store) -> None:
    """Have all written that a workspace may have."""
    put(store, *PAGES)
    CrawlJournal.of(store.folder, Crawl((PAGES[0].url,), 1), None).append(
        [FetchedUrl(PAGES[0].url, "", is_collected=True)]
    )
    upload = new_upload(store.folder)
    with upload.open_part() as part:
        part.write(b"<p>")
    upload.complete(part.name, PurePosixPath("folder/page.html"))
    with upload.open_part() as part:
        part.write(b"half")


def test_a_workspace_is_for_its_owner_alone(tmp_path: Path) -> None:
    settings = StoreSettings(str(tmp_path / "above" / "workspace"))
    with closing(open_store(settings, create=True)) as store, server_lock(store.folder):
        use(store)
        forget(store, [PAGES[0].url])
        use(store)
        with sqlite3.connect(store.folder / "siteloom.db") as connection:  # so that its journal is there
            assert connection.execute("SELECT count(*) FROM sites").fetchone() == (1,)
            names = modes(store.folder).keys()
            assert {"siteloom.db-wal", "siteloom.db-shm", "lock", "server-lock", "crawls"} <= names
            assert sum(name.endswith((".pack", "page.html")) for name in names) >= 2
            assert modes(store.folder) == private(store.folder)


def test_so_is_a_backup(tmp_path: Path) -> None:
    with closing(open_store(StoreSettings(str(tmp_path / "workspace")), create=True)) as store:
        use(store)
        folder = back_up(store, str(tmp_path / "backup")).folder
    assert {"siteloom.db", "workspace.json", "crawls"} <= modes(folder).keys()
    assert modes(folder) == private(folder)


def test_so_is_the_copy_of_tables_before_they_are_upgraded(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir(mode=0o755)
    engine = connect(sqlite_url(folder))
    upgrade(engine, "0001")
    upgrade(engine)
    engine.dispose()
    (copy,) = folder.glob("*.before-0001")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)


def test_in_a_folder_that_is_there_already_the_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir(mode=0o755)
    with closing(open_store(StoreSettings(str(folder)), create=True)) as store:
        use(store)
        found, wanted = modes(folder), private(folder)
    assert {name: mode for name, mode in found.items() if name != "."} == {
        name: mode for name, mode in wanted.items() if name != "."
    }
