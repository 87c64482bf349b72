"""What tests of more than one folder need."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from torture.postgres import NoPostgres, PostgresServer, running_postgres

from siteloom.core.settings import StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.cpu_time import CpuTime
from tests.property_tests import register_profiles

register_profiles()

# What a shell starts in the background ignores Ctrl-C, and so would all processes that tests send it to.
signal.signal(signal.SIGINT, signal.default_int_handler)


# What must not come last when processes share the files: first what is compiled, so that one process compiles
# each function and the others find it in the cache, then the files that take longest.
FIRST = (
    "html/test_tag_scanner.py",
    "html/test_page_scan.py",
    "learning/known_records/test_similarity_join.py",
    "templates/clustering/",
    "engines/whole_crawls/test_engines.py",
    "docs/test_tutorial.py",
    "browser/",
    "apps/",
    "docs/",
    "operations/",
)


def pytest_configure(config: pytest.Config) -> None:
    """Measure what tests cost."""
    config.pluginmanager.register(CpuTime())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of long files first; those of a file keep their order."""
    folder = Path(__file__).parent

    def turn(item: pytest.Item) -> int:
        name = item.path.relative_to(folder).as_posix()
        return next((turn for turn, start in enumerate(FIRST) if name.startswith(start)), len(FIRST))

    items.sort(key=turn)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What tests have logged as other processes can be told it: tests go on with half characters, too."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode("utf-8")) for name, text in report.sections
    ]
    return report


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    try:
        with running_postgres() as server:
            yield server
    except NoPostgres as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database."""
    with postgres_server.new_database() as url:
        yield url


@pytest.fixture
def memory() -> Iterator[Any]:
    """A filesystem like those of other machines, at memory://, with no file."""
    files = pytest.importorskip("fsspec").filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture(scope="session")
def empty_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in SQLite to copy, which is faster than to make its tables anew for each test."""
    folder = tmp_path_factory.mktemp("empty") / "workspace"
    open_store(StoreSettings(str(folder)), create=True).close()
    return folder


@pytest.fixture(params=["sqlite", "postgres"])
def store_settings(request: pytest.FixtureRequest, tmp_path: Path) -> StoreSettings:
    """A workspace that is not there yet, once for each kind of database.

    Where `store` makes it before the test begins, its tables are there.
    """
    folder, is_opened = tmp_path / "workspace", "store" in request.fixturenames
    if request.param == "postgres":
        if is_opened:
            server: PostgresServer = request.getfixturevalue("postgres_server")
            url = server.database_with_tables()
        else:
            url = request.getfixturevalue("postgres_url")
        return StoreSettings(workspace=str(folder), url=url)
    if is_opened:
        shutil.copytree(request.getfixturevalue("empty_workspace"), folder)
    return StoreSettings(workspace=str(folder))


@pytest.fixture
def store(store_settings: StoreSettings) -> Iterator[Store]:
    """An empty store, once for each kind of database."""
    opened = open_store(store_settings, create=True)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(empty_workspace: Path, tmp_path: Path) -> Iterator[Store]:
    """An empty store in SQLite, where the database does not matter, or only that one is meant."""
    folder = shutil.copytree(empty_workspace, tmp_path / "workspace")
    with closing(open_store(StoreSettings(workspace=str(folder)))) as opened:
        yield opened


@pytest.fixture(scope="session")
def lived_in_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which much has happened, to be copied."""
    from tests.lived_in import lived_in_workspace

    return lived_in_workspace(tmp_path_factory.mktemp("lived-in") / ".siteloom")


@pytest.fixture
def lived_in(lived_in_folder: Path, tmp_path: Path) -> Iterator[Store]:
    """A copy of that workspace, open; `Command(tmp_path)` works on it."""
    folder = shutil.copytree(lived_in_folder, tmp_path / ".siteloom")
    with closing(open_store(StoreSettings(workspace=str(folder)))) as opened:
        yield opened
