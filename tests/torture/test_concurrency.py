"""Several processes at once: a little of what `make torture` does at length."""

from __future__ import annotations

from pathlib import Path

import pytest
from torture.concurrency import meetings
from torture.ordeals import Plan
from torture.postgres import PostgresServer
from torture.workspaces import facts_of

from siteloom.sources.example_files import ExampleLine
from siteloom.store.store import Store
from tests.operations.calls import annotate_pages
from tests.store.helpers import page, put


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_verbs_that_meet_end_well_or_say_that_another_is_at_work(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: PostgresServer | None = (
        request.getfixturevalue("postgres_server") if database == "postgres" else None
    )
    verbs = ("ingest", "status") if server else ("ingest", "learn", "search", "user add")
    done = list(meetings(Plan(0.1, 1, tmp_path), database, server, verbs, "learn"))
    assert [one for one in done if not one.is_borne] == []


def test_what_holds_already_is_not_said_twice(store: Store) -> None:
    put(store, page("http://a.example/1", "One"), page("http://a.example/2", "Two"))
    lines = [
        ExampleLine("http://a.example/1", {"name": ("One",)}, (), {}),
        ExampleLine("http://a.example/2", {"name": ("Two",)}, (), {}),
    ]
    assert annotate_pages(store, lines[:1], "ana") == 1
    assert annotate_pages(store, lines, "ana") == 2
    assert facts_of(store)["statements"].total() == 2
    assert annotate_pages(store, lines, "ben") == 2  # another says the same
    put(store, page("http://a.example/2", "Two <b>and more</b>", on_day=1))
    assert annotate_pages(store, lines[1:], "ben") == 1  # of a later version
    assert facts_of(store)["statements"].total() == 5
