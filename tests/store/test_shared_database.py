"""A workspace in a PostgreSQL database that others use, too: roles, schemas, locks and limits of time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import insert
from torture.postgres import PostgresServer

from siteloom.core.database import connect
from siteloom.core.database import postgres_url as database_url
from siteloom.core.errors import StoreBusy, StoreError
from siteloom.core.settings import StoreSettings
from siteloom.operations.search import update_index
from siteloom.store import schema
from siteloom.store.erasure import disk_erasure
from siteloom.store.erasure.disk_erasure import is_unfinished
from siteloom.store.erasure.erasure import forget
from siteloom.store.migrate import upgrade
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.operations.contexts import context_of
from tests.store.erasure.test_forgetting import in_postgres_files
from tests.store.helpers import assert_sound, day, newest, page, put
from tests.store.remembered import where_stands

PAGES = [page(f"http://{site}.example/{number}", f"{site}zq{number}vw") for site in "ab" for number in (7, 8)]


@pytest.fixture
def settings(postgres_url: str, tmp_path: Path) -> StoreSettings:
    """A workspace with pages, whose database goes with the test."""
    made = StoreSettings(str(tmp_path / "workspace"), url=postgres_url)
    with closing(open_store(made, create=True)) as store:
        put(store, *PAGES)
        update_index(context_of(store))
    return made


def run(settings: StoreSettings, *statements: str) -> None:
    """As the owner of the database."""
    with psycopg.connect(settings.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def guest(settings: StoreSettings) -> Iterator[StoreSettings]:
    """The same workspace as a role sees it that owns nothing."""
    run(settings, "CREATE ROLE guest LOGIN")
    yield with_url(settings, username="guest")
    run(settings, "DROP OWNED BY guest", "DROP ROLE guest")


def with_url(settings: StoreSettings, **parts: str) -> StoreSettings:
    url = sqlalchemy.make_url(settings.url).set(**parts)  # type: ignore[arg-type]
    return replace(settings, url=url.render_as_string(hide_password=False))


def with_option(settings: StoreSettings, option: str) -> StoreSettings:
    """The same workspace in sessions that have a setting of PostgreSQL."""
    return replace(settings, url=f"{settings.url}?options=-c{option.replace('=', '%3D')}")


@contextmanager
def opened(settings: StoreSettings) -> Iterator[Store]:
    with closing(open_store(settings)) as store:
        yield store


def assert_as_before(settings: StoreSettings) -> None:
    with opened(settings) as store:
        assert newest(store) == {one.url: one.html for one in PAGES}
        assert_sound(store)
        assert not is_unfinished(store.folder)


def test_a_role_that_may_not_make_tables_makes_no_workspace(
    guest: StoreSettings, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with postgres_server.new_database() as url:
        elsewhere = with_url(replace(guest, workspace=str(tmp_path / "new")), database=url.rpartition("/")[2])
        run(replace(guest, url=url), "REVOKE CREATE ON SCHEMA public FROM public")
        with pytest.raises(StoreError, match="cannot be used: permission denied for schema public"):
            open_store(elsewhere, create=True)
        assert not (tmp_path / "new/workspace.json").exists()
        assert not (tmp_path / "new/packs").exists()
        open_store(replace(elsewhere, url=url), create=True).close()


def test_a_role_that_may_not_write_a_table_leaves_all_as_it_was(
    settings: StoreSettings, guest: StoreSettings
) -> None:
    run(
        settings,
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO guest",
        "REVOKE INSERT, DELETE ON versions FROM guest",
    )
    with opened(guest) as store:
        with pytest.raises(StoreError, match="permission denied for table versions"):
            put(store, page("http://c.example/1"))
        with pytest.raises(StoreError, match="permission denied for table versions"):
            forget(store, ["a.example"])
    with opened(settings) as store:
        forget(store, ["a.example"])
        put(store, *PAGES)
    assert_as_before(settings)


def test_who_may_not_write_tables_anew_is_told_that_traces_are_left(
    settings: StoreSettings, guest: StoreSettings
) -> None:
    run(
        settings,
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO guest",
    )
    with opened(guest) as store:
        with pytest.raises(StoreError, match=r"traces of it are left in .* once more as that role"):
            forget(store, ["a.example"])
        assert is_unfinished(store.folder)
    with opened(settings) as store:
        assert in_postgres_files(store, "azq7vw")
        forget(store, ["a.example"])
        assert not is_unfinished(store.folder)
        assert where_stands(store, "azq7vw") == []
        assert in_postgres_files(store, "azq7vw") == []


FALSE_TABLES = (
    "CREATE VIEW {0}.sites AS SELECT 1::bigint AS id, 'false'::text AS name",
    "CREATE TABLE {0}.urls (id bigint, site_id bigint, key bytea, url text)",
)
FALSE_FUNCTIONS = (
    "CREATE FUNCTION {0}.count(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1 / 0::bigint'",
    "CREATE FUNCTION {0}.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE sql AS 'SELECT 1 / 0'",
    "CREATE FUNCTION {0}.to_regclass(text) RETURNS regclass LANGUAGE sql AS 'SELECT (1 / 0)::regclass'",
    "CREATE FUNCTION {0}.equal(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1'",
    "CREATE OPERATOR {0}.= (leftarg = bigint, rightarg = bigint, function = {0}.equal)",
)


@pytest.mark.parametrize("path", ["", "false_one,pg_catalog,public", '"false ""two""",pg_catalog,public'])
def test_tables_and_functions_of_another_schema_are_not_taken_for_ours(
    settings: StoreSettings, path: str
) -> None:
    """Before `public`, PostgreSQL looks into the schema that has the name of the role."""
    schema = path.partition(",")[0] or "siteloom"
    run(settings, f"CREATE SCHEMA {schema}")
    run(settings, *(statement.format(schema) for statement in (*FALSE_TABLES, *FALSE_FUNCTIONS)))
    if path:
        run(settings, f"ALTER DATABASE {sqlalchemy.make_url(settings.url).database} SET search_path = {path}")
    assert_as_before(settings)
    with opened(settings) as store:
        put(store, page("http://a.example/9", "nine"))
        forget(store, ["http://a.example/9"])
        assert [site.name for site in store.sites()] == ["a.example", "b.example"]
    assert_as_before(settings)


def test_without_tables_the_first_schema_of_the_path_is_used(postgres_url_of_schemas: str) -> None:
    engine = connect(database_url(postgres_url_of_schemas))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW search_path").scalar() == '"my ""own"""'
        assert connection.dialect.default_schema_name == 'my "own"'
    engine.dispose()


@pytest.fixture
def postgres_url_of_schemas(settings: StoreSettings, postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.new_database() as url:
        name = sqlalchemy.make_url(url).database
        run(
            replace(settings, url=url),
            'CREATE SCHEMA "my ""own"""',
            f'ALTER DATABASE {name} SET search_path = missing, "my ""own""", public',
        )
        yield url


@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
def test_a_limit_of_time_is_told_and_nothing_is_lost(settings: StoreSettings, limit: str) -> None:
    impatient = with_option(settings, f"{limit}=100")
    with psycopg.connect(settings.url) as other:
        other.execute("LOCK TABLE versions IN ACCESS EXCLUSIVE MODE")
        with opened(impatient) as store:
            with pytest.raises(StoreError, match=r"cannot be used: canceling statement due to \w+ timeout"):
                put(store, page("http://c.example/1"))
            with pytest.raises(StoreError, match=r"cannot be used: canceling statement due to \w+ timeout"):
                forget(store, ["a.example"])
    with opened(settings) as store:
        assert "running" not in {run.status for run in store.runs(9)}
        forget(store, ["a.example"])
        put(store, *PAGES)
    assert_as_before(settings)


def test_who_forgets_waits_for_no_reader_without_end(
    settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so do not those who come after and would wait behind."""
    monkeypatch.setattr(disk_erasure, "_SECONDS_OF_PATIENCE", 0.1)
    with psycopg.connect(settings.url) as reader, opened(settings) as store:
        reader.execute("SELECT count(*) FROM versions")  # and its transaction goes on
        with pytest.raises(StoreBusy, match=r"traces of it are left in the table versions: when that ends"):
            forget(store, ["a.example"])
        assert newest(store, "a.example") == {}
        reader.rollback()
        forget(store, ["a.example"])
        assert in_postgres_files(store, "azq7vw") == []
        assert not is_unfinished(store.folder)


def test_a_connection_that_was_idle_for_too_long_is_told_and_nothing_is_lost(settings: StoreSettings) -> None:
    with opened(settings) as store:
        run(settings, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(StoreError, match="cannot be used: terminating connection"):
            put(store, page("http://c.example/1"))
    assert_as_before(settings)


def test_two_workspaces_in_a_database_keep_backups_of_their_own(postgres_url: str, tmp_path: Path) -> None:
    """Each in a schema of its own, with one role; what one forgets is no matter of the other."""
    one, other = (in_schema(replace(StoreSettings(), url=postgres_url), tmp_path, name) for name in "ab")
    backups = []
    for settings in (one, other):
        with opened(settings) as store:
            assert store.backup is not None
            backups.append(store.backup.removeprefix("schema "))
    assert [sites_in(one, backup) for backup in backups] == [["a.example"], ["b.example"]]
    # As version 1.0 named them.
    run(
        one,
        "CREATE SCHEMA siteloom_before_0009",
        "CREATE TABLE siteloom_before_0009.workspace AS TABLE a.workspace",
    )
    run(one, "CREATE SCHEMA siteloom_before_mine", "CREATE TABLE siteloom_before_mine.workspace (id integer)")
    with opened(other) as store:
        forget(store, ["b.example"])
    assert backup_schemas(one) == {backups[0], "siteloom_before_0009", "siteloom_before_mine"}
    with opened(one) as store:
        forget(store, ["a.example"])
    assert backup_schemas(one) == {"siteloom_before_mine"}


def in_schema(database: StoreSettings, folder: Path, name: str) -> StoreSettings:
    """An older workspace whose tables stand in a schema of their own."""
    run(database, f"CREATE SCHEMA {name}")
    settings = replace(with_option(database, f"search_path={name}"), workspace=str(folder / name))
    engine = connect(database_url(settings.url))
    upgrade(engine, "0011")
    with engine.begin() as connection:
        connection.execute(insert(schema.workspace).values(id=name, created_at=day(0)))
        connection.execute(insert(schema.sites).values(name=f"{name}.example"))
    engine.dispose()
    (folder / name).mkdir()
    marker = {"id": name, "database": "postgresql"}
    (folder / name / "workspace.json").write_text(json.dumps(marker))
    return settings


def sites_in(settings: StoreSettings, place: str) -> list[str]:
    with psycopg.connect(settings.url) as connection:
        return [name for (name,) in connection.execute(f"SELECT name FROM {place}.sites".encode())]


def backup_schemas(settings: StoreSettings) -> set[str]:
    with psycopg.connect(settings.url) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'siteloom_before%'")
        return {name for (name,) in rows}
