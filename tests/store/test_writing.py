"""Writing beside others: whoever reads before it writes waits for its turn first."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import event, insert, select

from siteloom.core.database import SQLITE_FILE, writing
from siteloom.operations.cluster import cluster_store
from siteloom.store import schema
from siteloom.store.store import Store
from tests.store.helpers import page, put


def test_no_one_writes_between_what_another_reads_and_writes(sqlite_store: Store) -> None:
    job = sqlite_store.jobs.add("ingest", {}, "ana")
    change = f"UPDATE jobs SET done = 1 WHERE id = {job.id}"
    with closing(
        sqlite3.connect(sqlite_store.folder / SQLITE_FILE, timeout=0, isolation_level=None)
    ) as other:
        with writing(sqlite_store.engine) as connection:
            assert connection.execute(select(schema.sites)).all() == []
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute(change)
            connection.execute(insert(schema.sites).values(name="a.example"))
        other.execute(change)


def test_whatever_writes_waits_for_its_turn_before_it_reads(sqlite_store: Store) -> None:
    begun: dict[object, str] = {}
    writes: list[str] = []

    def look(connection: Any, _: Any, statement: str, *__: Any) -> None:
        if statement.startswith("BEGIN"):
            begun[connection.connection.dbapi_connection] = statement
        elif statement.startswith(("INSERT", "UPDATE", "DELETE")):
            writes.append(begun[connection.connection.dbapi_connection])

    event.listen(sqlite_store.engine, "before_cursor_execute", look)
    for number in range(2):
        put(sqlite_store, *(page(f"https://a.example/{number}/{place}") for place in range(3)))
    put(sqlite_store, page("https://a.example/0/0", on_day=1))  # seen again
    cluster_store(sqlite_store, "vertex")
    assert sqlite_store.page_count("a.example") == 6
    assert set(writes) == {"BEGIN IMMEDIATE"}
