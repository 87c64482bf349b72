"""Upgrading older workspaces."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, event, insert, inspect, select, text

from siteloom.core.database import connect, postgres_url, sqlite_url
from siteloom.core.errors import StoreBusy, StoreError
from siteloom.core.file_lock import write_lock
from siteloom.core.model import Cluster, Example, Seed, Template, Validators
from siteloom.core.settings import StoreSettings
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.operations.search import update_index
from siteloom.store import schema
from siteloom.store.migrate import is_up_to_date, upgrade
from siteloom.store.packs.page_writer import PageWriter
from siteloom.store.queries.clusters import ClusterQueries, PageAddress
from siteloom.store.queries.entities import LinkedEntity
from siteloom.store.queries.records import extraction_run
from siteloom.store.queries.runs import recorded_run
from siteloom.store.queries.watches_and_repairs import ChangeQueries
from siteloom.store.queries.wrappers import WrapperQueries
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.operations.contexts import context_of
from tests.store.helpers import assert_sound, day, newest, page, put

OLD_PAGES = [page(f"http://a.example/{number}", str(number)) for number in range(100)]


@pytest.fixture
def engine(store_settings: StoreSettings) -> Iterator[Engine]:
    """A database without tables."""
    folder = Path(store_settings.workspace)
    folder.mkdir()
    url = postgres_url(store_settings.url) if store_settings.url else sqlite_url(folder)
    engine = connect(url)
    yield engine
    engine.dispose()


@pytest.fixture
def old_workspace(store_settings: StoreSettings, engine: Engine) -> StoreSettings:
    """A workspace as the first step made it, with pages in it."""
    folder = Path(store_settings.workspace)
    upgrade(engine, "0001")
    (folder / "workspace.json").write_text(json.dumps({"id": "old", "database": engine.dialect.name}))
    with engine.begin() as connection:
        connection.execute(insert(schema.workspace).values(id="old", created_at=day(0)))
    schema.runs.create(engine)  # the writer of today asks it what to call packs
    with PageWriter(engine, folder / "packs", now=day(0), counts=Counter(), jobs=1) as writer:
        for old in OLD_PAGES:
            writer.add(old, "a.example")
    schema.runs.drop(engine)
    engine.dispose()
    return store_settings


def tables(engine: Engine) -> set[str]:
    return set(inspect(engine).get_table_names())


def state_in_backup(store: Store) -> tuple[str, int, set[str]]:
    """The step, the number of versions and the tables that the backup holds."""
    assert store.backup is not None
    if store.engine.dialect.name == "sqlite":
        with closing(sqlite3.connect(store.backup)) as copy:
            (step,) = copy.execute("SELECT version_num FROM alembic_version").fetchone()
            (versions,) = copy.execute("SELECT count(*) FROM versions").fetchone()
            names = copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return step, versions, {name for (name,) in names}
    place = store.backup.removeprefix("schema ")
    with store.engine.connect() as connection:
        step = connection.execute(text(f"SELECT version_num FROM {place}.alembic_version")).scalar_one()
        versions = connection.execute(text(f"SELECT count(*) FROM {place}.versions")).scalar_one()
    return step, versions, set(inspect(store.engine).get_table_names(place))


def test_the_steps_lead_to_the_tables_that_the_code_speaks_of(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []


def test_an_older_workspace_is_upgraded_after_a_backup(old_workspace: StoreSettings) -> None:
    with closing(open_store(old_workspace)) as store:
        assert is_up_to_date(store.engine)
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0001", len(OLD_PAGES))
        assert names == {"alembic_version", "workspace", "sites", "urls", "packs", "versions"}
        assert newest(store) == {old.url: old.html for old in OLD_PAGES}
        report = put(store, *OLD_PAGES, page("http://a.example/new"))
        assert (report.new, report.unchanged) == (1, len(OLD_PAGES))
        assert_sound(store)
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        assert len(newest(store)) == len(OLD_PAGES) + 1


def test_a_workspace_with_clusters_is_upgraded_to_keep_examples_and_wrappers(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    upgrade(engine, "0003")
    found = Cluster("a.example/1", "a.example", (1, 2), "00", 2, ("00",), 0.5, ("/*",), Template((), 2))
    addresses = tuple(PageAddress("a.example", old.url) for old in OLD_PAGES)
    with recorded_run(engine, lambda: day(1), "cluster", {"site": None}) as run:
        ClusterQueries(engine, lambda: day(1)).save_clusters(run.id, [found], addresses)
    with closing(open_store(old_workspace)) as store:
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0003", len(OLD_PAGES))
        assert "cluster_pages" in names
        assert not names & {"annotations", "wrappers"}
        (cluster,), members = store.clusters()
        assert (cluster.id, members) == ("a.example/1", addresses[1:3])
        example = Example(OLD_PAGES[7], {"name": ["seven"]})
        store.save_example(addresses[7], example)
        store.save_wrapper(cluster.id, cluster.site, "{}", "learn")
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        assert store.examples() == [example]
        assert [wrapper.name for wrapper in store.wrappers()] == [cluster.id]
        assert_sound(store)


def test_a_workspace_with_wrappers_is_upgraded_to_keep_records(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    upgrade(engine, "0004")
    WrapperQueries(engine, lambda: day(1)).save_wrapper("shop", "a.example", "{}", "learn")
    with closing(open_store(old_workspace)) as store:
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0004", len(OLD_PAGES))
        assert "wrappers" in names
        assert not names & {"records", "extracted_shards"}
        assert [wrapper.name for wrapper in store.wrappers()] == ["shop"]
        with store.extracting({}, "f") as extraction:
            extraction.commit(0, [ExtractedRow(OLD_PAGES[0].url, "shop", 1, "{}")], [], {})
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        assert list(store.records()) == ["{}"]
        assert_sound(store)


def test_a_workspace_with_records_is_upgraded_to_keep_changes(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    upgrade(engine, "0005")
    WrapperQueries(engine, lambda: day(1)).save_wrapper("shop", "a.example", "{}", "learn")
    with extraction_run(engine, lambda: day(2), {}, "f") as extraction:
        extraction.commit(0, [ExtractedRow(OLD_PAGES[0].url, "shop", 1, "{}")], [], {})
    with closing(open_store(old_workspace)) as store:
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0005", len(OLD_PAGES))
        assert "records" in names
        assert not names & {"watches", "checks", "repairs"}
        assert [list(store.records_as_of("shop", day(number))) for number in (1, 2)] == [[], ["{}"]]
        store.save_watch("shop", "a.example", 1, "{}")
        with store.recording("check", {}) as run:
            store.save_check(run.id, "shop", 1, "output", True, {})
            store.save_repair(run.id, "shop", 1, None, "needs-annotation", "annotation", 0.5, None, {})
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        assert [wrapper.name for wrapper in store.wrappers()] == ["shop"]
        (watch,), (check,), (repair,) = store.watches(), store.checks(), store.repairs()
        assert watch.wrapper == check.wrapper == repair.wrapper == "shop"
        assert_sound(store)


def test_a_workspace_with_changes_is_upgraded_to_keep_seeds(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    upgrade(engine, "0006")
    ChangeQueries(engine, lambda: day(1)).save_watch("shop", "a.example", 1, "{}")
    known = Seed({"name": ("Oak",)}, "guide")
    with closing(open_store(old_workspace)) as store:
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0006", len(OLD_PAGES))
        assert "repairs" in names
        assert not names & {"seeds", "grown_sites"}
        with store.recording("seeds", {}) as run:
            store.add_seeds(run.id, [known])
        store.save_site_outcome("a.example", "poor", 1, 1)
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        assert [watch.wrapper for watch in store.watches()] == ["shop"]
        assert list(store.seeds()) == [known]
        assert [grown.site for grown in store.site_outcomes()] == ["a.example"]
        assert_sound(store)


def test_a_workspace_with_segments_is_upgraded_to_be_searched(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    upgrade(engine, "0008")
    with closing(open_store(old_workspace)) as store:
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0008", len(OLD_PAGES))
        assert "segment_tables" in names
        assert not names & {"search_documents", "search_marks"}
        assert update_index(context_of(store)).added_pages == len(OLD_PAGES)
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        assert store.search_index.is_current()
        assert_sound(store)


def test_a_workspace_that_was_served_is_upgraded_to_keep_entities(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    upgrade(engine, "0010")
    with closing(open_store(old_workspace)) as store:
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0010", len(OLD_PAGES))
        assert "jobs" in names
        assert not names & {"linkings", "entities"}
        with store.recording("entities", {}) as run:
            store.entities.replace(run.id, {}, [LinkedEntity(1, 2, (), ("Oak",), {"entity": 1})])
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        assert [one.number for one in store.entities.each_entity()] == [1]
        assert_sound(store)


def test_a_workspace_with_entities_is_upgraded_to_keep_what_servers_say_of_pages(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    upgrade(engine, "0011")
    known = replace(OLD_PAGES[3], fetched_at=day(1), validators=Validators('"3"'))
    with closing(open_store(old_workspace)) as store:
        step, versions, names = state_in_backup(store)
        assert (step, versions) == ("0011", len(OLD_PAGES))
        assert "entities" in names
        assert "validators" not in names
        assert put(store, known).unchanged == 1
    with closing(open_store(old_workspace)) as store:
        assert store.backup is None
        addresses = [PageAddress("a.example", old.url) for old in OLD_PAGES]
        assert store.validators(addresses) == {known.url: Validators('"3"')}
        assert_sound(store)


def test_tables_of_others_in_the_database_are_not_backed_up(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("no one else has tables in the file of a workspace")
    with engine.begin() as connection:
        connection.execute(text('CREATE TABLE "My own" (id integer)'))
    with closing(open_store(old_workspace)) as store:
        _, _, names = state_in_backup(store)
        assert names == {"alembic_version", "workspace", "sites", "urls", "packs", "versions"}


def test_a_backup_that_an_upgrade_left_half_done_is_made_anew(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    with pytest.raises(ZeroDivisionError):
        upgrade_until_failures(engine)
    with closing(open_store(old_workspace)) as store:
        assert state_in_backup(store)[:2] == ("0001", len(OLD_PAGES))


def upgrade_until_failures(engine: Engine) -> None:
    def stop(*details: Any) -> None:
        if "CREATE TABLE failures" in details[2]:
            raise ZeroDivisionError

    event.listen(engine, "before_cursor_execute", stop)
    try:
        upgrade(engine)
    finally:
        event.remove(engine, "before_cursor_execute", stop)


def test_an_upgrade_that_stops_half_way_leaves_the_old_state(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    before = tables(engine)
    with pytest.raises(ZeroDivisionError):
        upgrade_until_failures(engine)
    assert tables(engine) == before
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == "0001"
        assert len(connection.execute(select(schema.versions.c.id)).all()) == len(OLD_PAGES)


def test_nothing_is_upgraded_where_no_backup_can_be_made(tmp_path: Path) -> None:
    engine = connect(sqlite_url(tmp_path))
    upgrade(engine, "0001")
    (tmp_path / "siteloom.db.before-0001").mkdir()
    with pytest.raises(StoreError, match=r"no backup can be made at .*siteloom\.db\.before-0001"):
        upgrade(engine)
    assert "runs" not in tables(engine)
    engine.dispose()


def test_nothing_is_upgraded_while_another_process_writes(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    with write_lock(Path(old_workspace.workspace)), pytest.raises(StoreBusy):
        open_store(old_workspace)
    assert "runs" not in tables(engine)


def test_the_tables_of_another_workspace_are_not_upgraded(
    old_workspace: StoreSettings, engine: Engine
) -> None:
    marker = Path(old_workspace.workspace) / "workspace.json"
    marker.write_text(json.dumps({"id": "another", "database": engine.dialect.name}))
    with pytest.raises(StoreError, match="belong to another workspace"):
        open_store(old_workspace)
    assert "runs" not in tables(engine)
