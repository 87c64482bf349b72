"""After kill -9 or a full disk: run it again and nothing is lost, nothing double, no pack unreadable."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from siteloom.builtin import guide_site
from siteloom.config import StoreSettings
from siteloom.model import Page
from siteloom.store import open_store, workspace_exists

from .helpers import assert_sound, newest, put, random_page

INGEST = """
import sys
from siteloom.config import StoreSettings
from siteloom.pages import open_source
from siteloom.pipeline import ingest
from siteloom.store import open_store
store = open_store(StoreSettings(sys.argv[2], sys.argv[3]), create=True)
ingest(store, [open_source(sys.argv[1])], jobs=2)
store.close()
"""

INGEST_WITH_LITTLE_ROOM = (
    """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
"""
    + INGEST
)

_KILLS = {"sqlite": 4, "postgres": 3}


@pytest.fixture(scope="module")
def pages() -> dict[str, bytes]:
    """Varied pages of several sites, mixed."""
    random = Random(20250512)
    made = {
        f"http://site{number % 7}.example/{number}": random.randbytes(random.randrange(200, 2_500))
        .hex()
        .encode()
        for number in range(1_200)
    }
    made |= {each.page.url: each.page.html for each in guide_site()}
    urls = list(made)
    random.shuffle(urls)
    return {url: made[url] for url in urls}


@pytest.fixture(scope="module")
def source(pages: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("source") / "pages.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for url, html in pages.items():
            row = {"url": url, "html": html.decode(), "fetched_at": "2025-05-12T10:00:00Z"}
            lines.write(json.dumps(row) + "\n")
    return file


def start(script: str, source: Path, settings: StoreSettings, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(source), settings.workspace, settings.url, *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end; returns what was said."""
    _, said = process.communicate(timeout=120)
    return said


def state_of_packs(settings: StoreSettings) -> set[tuple[Path, int, int]]:
    files = Path(settings.workspace).glob("packs/*/*")
    return {(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files}


def kill(
    process: subprocess.Popen[str], settings: StoreSettings, *, after_changes: int, or_after: float = 60
) -> bool:
    """Kill a process when it has changed packs so often, or when so many seconds are over.

    Returns False if it came to its end first, as it may on a busy machine.
    """
    deadline = time.monotonic() + or_after
    state = state_of_packs(settings)
    while process.poll() is None and after_changes > 0 and time.monotonic() < deadline:
        time.sleep(0.001)
        before, state = state, state_of_packs(settings)
        after_changes -= state != before
    process.kill()
    said = finish(process)
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode != 0


def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(
    store_settings: StoreSettings, source: Path, pages: dict[str, bytes]
) -> None:
    kills = _KILLS["postgres" if store_settings.url else "sqlite"]
    random = Random(kills)
    kept = killed = 0
    for number in range(kills):
        process = start(INGEST, source, store_settings)
        or_after = random.uniform(0.2, 0.8) if number % 3 == 2 else 60
        killed += kill(process, store_settings, after_changes=random.randrange(1, 6), or_after=or_after)
        if workspace_exists(store_settings):
            with closing(open_store(store_settings)) as store:
                found = newest(store)
                assert found.items() <= pages.items()
                assert len(found) >= kept
                kept = len(found)
                assert_sound(store)
    assert kept > 0
    assert killed >= kills // 2

    process = start(INGEST, source, store_settings)
    assert finish(process) == ""
    with closing(open_store(store_settings)) as store:
        assert newest(store) == pages
        assert sum(site.versions for site in store.sites()) == len(pages)
        assert_sound(store)
        runs = store.runs(100)
        assert runs[0].status == "done"
        assert {"killed"} <= {run.status for run in runs[1:]} <= {"killed", "done"}
        assert runs[0].counts["new"] + runs[0].counts["unchanged"] == len(pages)
        assert runs[0].counts["unchanged"] == kept


@pytest.mark.parametrize("delay", [0.0, 0.04])
def test_kill_9_while_the_workspace_is_made_leaves_one_that_opens_or_none(
    store_settings: StoreSettings, source: Path, delay: float
) -> None:
    marker, lock = (Path(store_settings.workspace) / name for name in ("workspace.json", "lock"))
    process = start(INGEST, source, store_settings)
    while process.poll() is None and not lock.exists():
        time.sleep(0.0005)
    time.sleep(delay)
    process.kill()
    finish(process)
    assert not marker.exists() or json.loads(marker.read_text())["id"]
    with closing(open_store(store_settings, create=True)) as store:
        put(store, Page("http://a.example/", b"page"))
        assert_sound(store)


# Packs do not matter to PostgreSQL, whose own disk is not full: once is enough.
@pytest.mark.parametrize(
    ("store_settings", "room"),
    [("sqlite", 20_000), ("sqlite", 150_000), ("postgres", 150_000)],
    indirect=["store_settings"],
)
def test_a_full_disk_ends_the_run_with_a_sentence_and_spoils_nothing(
    store_settings: StoreSettings, source: Path, pages: dict[str, bytes], room: int
) -> None:
    with closing(open_store(store_settings, create=True)) as store:
        put(store, random_page(Random(1), "http://site0.example/before", 500))
        before = newest(store)
    process = start(INGEST_WITH_LITTLE_ROOM, source, store_settings, str(room))
    last_line = finish(process).strip().splitlines()[-1]
    assert process.returncode == 1
    assert last_line.startswith("siteloom.errors.StoreError: ")
    assert "cannot be" in last_line
    with closing(open_store(store_settings)) as store:
        found = newest(store)
        assert before.items() <= found.items() <= (before | pages).items()
        assert_sound(store)
    assert finish(start(INGEST, source, store_settings)) == ""
    with closing(open_store(store_settings)) as store:
        assert newest(store) == before | pages
        assert_sound(store)
