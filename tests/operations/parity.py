"""What an operation stores and returns when it is called in each of its three ways."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Column, select

from siteloom.apps.server.event_stream import Changes
from siteloom.apps.server.job_runner import JobRunner
from siteloom.apps.server.operation_jobs import job_result, to_plain
from siteloom.core.settings import Settings, load_settings
from siteloom.operations.context import open_context
from siteloom.operations.operation_table import OPERATIONS
from siteloom.store import schema
from siteloom.store.schema import UtcTime
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command
from tests.apps.server.job_waiting import wait_for

AUTHOR = "local"

# Only jobs write `jobs`; a workspace has its own id.
_NOT_COMPARED = ("jobs", "workspace")
# Packs hold the times at which pages were fetched, compressed.
_COLUMNS_NOT_COMPARED = ("packs.committed_bytes",)


@dataclass(frozen=True)
class ParityCase:
    """An operation with the same request for each of its callers.

    `command` are the words after `siteloom`, None if there is no verb for it. `arguments` are those of the
    job; None if no job may run it. `prepare` makes the workspace ready. `only_here` are fields of the result
    that must differ between callers, such as the number of a run. `environment` has settings as variables.
    """

    operation: str
    request: Any
    command: tuple[str, ...] | None = None
    arguments: Mapping[str, Any] | None = None
    prepare: Callable[[Store], object] = lambda _: None
    only_here: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        words = " ".join(word for word in self.command or () if "://" not in word)  # ports differ
        return f"{self.operation}: {words}" if words else self.operation


@dataclass(frozen=True)
class Outcome:
    """What a caller left in the tables, and what it was given; the command line is given no result."""

    rows: dict[str, list[dict[str, Any]]]
    result: Any


def from_python(case: ParityCase, workspace: Path) -> Outcome:
    settings = _prepared(case, workspace)
    with open_context(settings, author=AUTHOR) as context:
        result = to_plain(OPERATIONS[case.operation].function(context, case.request))
        return Outcome(stored_rows(context.store), _comparable(result, case))


def from_job(case: ParityCase, workspace: Path) -> Outcome:
    settings = _prepared(case, workspace)
    store = open_store(settings.store)
    runner = JobRunner(store, settings, Changes())
    runner.start()
    try:
        job = runner.submit(case.operation, case.arguments or {}, AUTHOR)
        job = wait_for(store, job.id)
        assert job.state == "done", job.result
        assert job_result(job) is not None, "its page shows no result"
        return Outcome(stored_rows(store), _comparable(job.result, case))
    finally:
        runner.stop()
        store.close()


def from_command(case: ParityCase, workspace: Path) -> Outcome:
    settings = _prepared(case, workspace)
    call = Command(workspace.parent)
    run = call("--workspace", str(workspace), *(case.command or ()), environment=case.environment)
    assert run.returncode == 0, run.stderr
    store = open_store(settings.store)
    try:
        return Outcome(stored_rows(store), None)
    finally:
        store.close()


def _prepared(case: ParityCase, workspace: Path) -> Settings:
    settings, _ = load_settings(workspace.parent, case.environment, {"store.workspace": str(workspace)})
    store = open_store(settings.store)
    try:
        case.prepare(store)
    finally:
        store.close()
    return settings


def copied(workspace: Path, folder: Path) -> Path:
    shutil.copytree(workspace, folder / "workspace")
    return folder / "workspace"


def stored_rows(store: Store) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables without times."""
    with store.engine.connect() as connection:
        return {
            table.name: sorted(
                (
                    {name: _portable(value) for name, value in row._mapping.items() if name in compared}
                    for row in connection.execute(select(table))
                ),
                key=lambda row: json.dumps(row, default=str, sort_keys=True),
            )
            for table in schema.metadata.sorted_tables
            if table.name not in _NOT_COMPARED
            for compared in [{column.name for column in table.c if _is_compared(column)}]
        }


def _portable(value: Any) -> Any:
    """A value without the fingerprint of a run, which depends on the folder of its workspace."""
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if name != "fingerprint"}
    return value


def _is_compared(column: Column[Any]) -> bool:
    """Whether a column is the same each time.

    Each import marks its seeds with a random number, and packs hold the times of their pages, compressed.
    """
    is_random = column is schema.seeds.c.met or column is schema.packs.c.committed_bytes
    return not isinstance(column.type, UtcTime) and not is_random


def _comparable(result: Any, case: ParityCase) -> Any:
    plain = json.loads(json.dumps(result))
    return {name: value for name, value in plain.items() if name not in case.only_here}
