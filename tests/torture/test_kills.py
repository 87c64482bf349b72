"""Kill -9: a little of what `make torture` does at length."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import pytest
from torture.kills import killed_at_commit, killed_database, killed_stages
from torture.ordeals import Plan
from torture.postgres import PostgresServer
from torture.processes import start
from torture.server_kills import server_ordeal
from torture.workspaces import (
    Facts,
    Place,
    Prepared,
    facts,
    faults_at_end,
    faults_between,
    new_place,
    prepared_stages,
    soundness,
    unsound,
)

from siteloom.core.model import Page
from siteloom.store import schema
from siteloom.store.workspace_folder import open_store
from tests.store.helpers import put

# A kill of each stage at a moment of chance, and one before a commit.
EFFORT = 0.05


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest) -> PostgresServer | None:
    found: PostgresServer | None = (
        request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    )
    return found


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Prepared]:
    """Stages in SQLite."""
    wanted = ("ingest", "learn", "extract", "relearn")
    found = prepared_stages(tmp_path_factory.mktemp("prepared"), None, wanted)
    return {one.stage.name: one for one in found}


def test_verbs_are_killed_at_any_moment(stages: dict[str, Prepared], tmp_path: Path) -> None:
    killed = [stages[name] for name in ("ingest", "learn", "extract")]
    done = list(killed_stages(Plan(EFFORT, 20250512, tmp_path), "SQLite", killed))
    assert [one for one in done if not one.is_borne] == []
    assert len(done) == len(killed)


def test_verbs_and_postgresql_itself_are_killed(postgres_server: PostgresServer, tmp_path: Path) -> None:
    stages = prepared_stages(tmp_path / "prepared", postgres_server, ("ingest",))
    plan = Plan(EFFORT, 3, tmp_path)
    done = [
        *killed_stages(plan, "PostgreSQL", stages),
        killed_database(plan, postgres_server, stages),
    ]
    assert [one for one in done if not one.is_borne] == []


def test_a_server_is_killed_while_people_annotate(stages: dict[str, Prepared], tmp_path: Path) -> None:
    served = server_ordeal(Plan(EFFORT, 1, tmp_path), "SQLite", tmp_path, [stages["learn"]], 1)
    assert served.is_borne, served
    assert "all 0 statements" not in served.found


def test_a_wrapper_that_was_relearned_is_watched_when_the_one_who_did_it_was_killed_before(
    stages: dict[str, Prepared], tmp_path: Path
) -> None:
    one = stages["relearn"]
    # The run begins, the wrapper is there with its repair, then what is watched, then the run has ended.
    assert one.commits == 4
    assert killed_at_commit(one, tmp_path / "place", 3).faults == []


@pytest.mark.parametrize("delay", [0.0, 0.04])
def test_a_workspace_whose_making_was_killed_opens_or_is_none(
    server: PostgresServer | None, tmp_path: Path, delay: float
) -> None:
    place = new_place(tmp_path / "place", server)
    workspace = Path(place.settings.workspace)
    started = start(place.folder, "ingest", "pages.jsonl", *place.options)
    while started.process.poll() is None and not (workspace / "lock").exists():
        time.sleep(0.0005)
    time.sleep(delay)
    started.kill(whole_session=True)
    marker = workspace / "workspace.json"
    assert not marker.exists() or json.loads(marker.read_text())["id"]
    with closing(open_store(place.settings, create=True)) as store:
        put(store, Page("http://a.example/", b"page"))
        assert unsound(store) == []
    place.remove()


def damaged(place: Place, before: Facts, after: Facts, statement: str) -> list[str]:
    """What is found wrong with a place in which someone has changed a table."""
    with closing(open_store(place.settings)) as store, store.engine.begin() as connection:
        connection.exec_driver_sql(statement)
    now = facts(place)
    return faults_between(now, before, after) + faults_at_end(now, after) + soundness(place)


def test_what_is_lost_or_doubled_is_found_out(stages: dict[str, Prepared], tmp_path: Path) -> None:
    one = stages["extract"]
    place = one.place.copy(tmp_path / "place")
    assert place.run(*one.stage.arguments).status == 0
    assert faults_at_end(facts(place), one.after) == []
    doubled = (
        "INSERT INTO annotations (url_id, version_id, example, author, created_at, format, is_empty) "
        "SELECT url_id, version_id, example, author, created_at, format, is_empty FROM annotations LIMIT 1"
    )
    statements = {
        "DELETE FROM versions WHERE id = (SELECT max(id) FROM versions)": "versions are lost",
        doubled: "statements are too many",
        f"DELETE FROM {schema.records.name} WHERE id = 1": "records are neither",
        "UPDATE versions SET slot = slot + 1000 WHERE id = 1": "is not what the tables say",
    }
    for number, (statement, fault) in enumerate(statements.items()):
        again = place.copy(tmp_path / str(number))
        assert fault in " ".join(damaged(again, one.before, one.after, statement))
