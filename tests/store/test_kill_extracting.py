"""After kill -9 in the midst of extracting: run it again, and each record is there exactly once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest

from siteloom.core.model import Failure
from siteloom.core.settings import StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.patience import SECONDS

SHARDS = 20
RECORDS = 150  # of a shard
FAILURES = 5

# Commits all shards that are not done; says so of each. A statement may be named that kills it.
EXTRACT = f"""
import json, os, signal, sys
from sqlalchemy import event
from siteloom.core.settings import StoreSettings
from siteloom.core.model import Failure
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.store.workspace_folder import open_store

def kill_itself(*details):
    if committed == 3 and deadly in details[2]:
        os.kill(os.getpid(), signal.SIGKILL)

store = open_store(StoreSettings(sys.argv[1], sys.argv[2]))
committed, deadly = 0, sys.argv[4]
if deadly == "commit":
    event.listen(store.engine, "commit", lambda _: kill_itself(None, None, deadly))
elif deadly == "committed":
    event.listen(store.engine, "checkin", lambda *_: kill_itself(None, None, deadly))
elif deadly:
    event.listen(store.engine, "after_cursor_execute", kill_itself)
with store.extracting({{}}, sys.argv[3]) as extraction:
    for shard in range({SHARDS}):
        if shard in extraction.done_summaries:
            continue
        rows = [
            ExtractedRow(f"http://a.example/{{shard}}", "shop", 1, json.dumps([shard, place]))
            for place in range({RECORDS})
        ]
        failures = [Failure(str(shard), "no HTML", str(number)) for number in range({FAILURES})]
        extraction.commit(shard, rows, failures, {{"records": len(rows)}})
        committed += 1
        print(shard, flush=True)
store.close()
"""


def start(settings: StoreSettings, fingerprint: str = "f", deadly: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", EXTRACT, settings.workspace, settings.url, fingerprint, deadly]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[int]:
    """Wait for the end; returns which shards were said to be committed."""
    told, said = process.communicate(timeout=SECONDS)
    assert process.returncode in (0, -signal.SIGKILL), said
    return [int(line) for line in told.split()]


def assert_all_once(store: Store, run_id: int) -> None:
    expected = [[shard, place] for shard in range(SHARDS) for place in range(RECORDS)]
    assert [json.loads(content) for content in store.records(run_id)] == expected
    assert Counter(store.failures(run_id)) == Counter(
        Failure(str(shard), "no HTML", str(number)) for shard in range(SHARDS) for number in range(FAILURES)
    )


@pytest.mark.parametrize(
    ("deadly", "kept"),
    [
        ("commit", 3),  # when all is written, just before
        ("committed", 4),  # just after, before the process knows
    ],
)
def test_kill_9_at_each_step_of_a_commit(
    store: Store, store_settings: StoreSettings, deadly: str, kept: int
) -> None:
    process = start(store_settings, deadly=deadly)
    assert finish(process) == [0, 1, 2]
    assert process.returncode == -signal.SIGKILL
    (killed,) = store.runs(5)
    assert killed.status == "killed"
    assert finish(start(store_settings)) == list(range(kept, SHARDS))
    (run,) = store.runs(5)
    assert (run.id, run.status) == (killed.id, "done")
    assert_all_once(store, run.id)


@pytest.mark.parametrize("store_settings", ["sqlite"], indirect=True)  # no statement is another elsewhere
def test_after_kill_9_another_fingerprint_begins_anew(store: Store, store_settings: StoreSettings) -> None:
    finish(start(store_settings, "one", "INSERT INTO records"))
    assert finish(start(store_settings, "two")) == list(range(SHARDS))
    new, old = store.runs(5)
    assert (new.status, old.status) == ("done", "killed")
    assert_all_once(store, new.id)
    assert len(list(store.records(old.id))) == 3 * RECORDS
    with closing(open_store(store_settings)) as again:
        assert list(again.records()) == list(store.records(new.id))
