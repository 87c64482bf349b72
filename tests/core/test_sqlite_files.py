"""Every SQLite database is opened in one place, which looks at it before."""

from __future__ import annotations

import ast
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import URL
from torture.fuzz_targets.journals import write_journal

import siteloom
from siteloom.core.errors import StoreError
from siteloom.core.sqlite_files import engine_for, open_sqlite, sqlite_file, temporary_sqlite

OPENING = ("sqlite3.connect", "sqlite3.dbapi2", "sqlalchemy.create_engine", "create_engine")
SOURCE = Path(siteloom.__file__).parent


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    return file


def read(file: Path) -> object:
    with closing(open_sqlite(file, StoreError)) as connection:
        return connection.execute("SELECT count(*) FROM t").fetchone()


def read_by_engine(file: Path) -> object:
    engine = engine_for(URL.create("sqlite", database=str(file)), StoreError)
    with engine.connect() as connection:
        return tuple(connection.exec_driver_sql("SELECT count(*) FROM t").one())


@pytest.mark.parametrize("use", [read, read_by_engine])
def test_a_journal_has_no_file_removed(database: Path, use: object) -> None:
    assert callable(use)
    assert use(database) == (0,)
    victim = database.parent / "victim"
    victim.write_text("precious")
    write_journal(database, victim)
    (database.parent / "link").symlink_to(database)
    for file in (database, database.parent / "link"):
        with pytest.raises(StoreError, match="names another file, which SQLite would remove"):
            use(file)
    assert victim.exists()


def test_what_a_schema_calls_is_not_trusted(database: Path) -> None:
    pragmas = {"trusted_schema": 0, "cell_size_check": 1}
    engine = engine_for(URL.create("sqlite", database=str(database)), StoreError)
    with closing(open_sqlite(database, StoreError)) as one, engine.connect() as other:
        for pragma, value in pragmas.items():
            assert one.execute(f"PRAGMA {pragma}").fetchone() == (value,)
            assert other.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value


def test_the_file_of_an_address() -> None:
    assert sqlite_file(URL.create("sqlite", database="/a%20b/c.db")) == Path("/a%20b/c.db")
    assert sqlite_file(URL.create("sqlite", database="file:/a%20b", query={"uri": "true"})) == Path("/a b")


def test_a_temporary_database_has_no_name() -> None:
    with closing(temporary_sqlite()) as connection:
        assert connection.execute("PRAGMA database_list").fetchall() == [(0, "main", "")]


def test_no_other_module_opens_a_database() -> None:
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.alias | ast.Name) and ast.unparse(node) in OPENING
    }
    assert found == {"core/sqlite_files.py"}
