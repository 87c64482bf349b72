"""Workspaces of a site that changes, each made once and copied for a test."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from siteloom.apps.demo.sites import Layout
from siteloom.core.settings import StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import work_inside
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.apps.demo.sites import guide, of_kind
from tests.extraction.test_extraction import restaurants

WRAPPER = "larkmoor-guide.example/1"
SITE = "larkmoor-guide.example"
COUNT = 40
LAYOUTS: dict[str, Layout] = {"original": "original", "mild": "mild-change", "redesign": "redesign"}


def done(*arguments: str) -> str:
    """What a command says that must go well."""
    result = within(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stderr


def rows(*arguments: str) -> list[dict[str, Any]]:
    """What a command writes to standard output."""
    result = within(*arguments, "-o", "-")
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.split("\n") if line]


def rows_in(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").split("\n") if line]


def stored() -> Store:
    return open_store(StoreSettings(".siteloom"))


def versions() -> list[tuple[int, str]]:
    """The versions of the wrapper, each with what made it."""
    with closing(stored()) as store:
        return [(one.version, one.origin) for one in store.wrapper_versions(WRAPPER)]


def right_phones(layout: Layout) -> float:
    """The share of phones that the newest run of extract has right."""
    truth = {page.page.url: page.truth["phone"] for page in of_kind(guide(layout), "restaurant")[:COUNT]}
    with closing(stored()) as store:
        found = {
            row["url"]: tuple(row["values"].get("phone", ())) for row in map(json.loads, store.records())
        }
    return sum(found.get(url, ()) == phones for url, phones in truth.items()) / COUNT


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        work_inside(folder, patch)
        yield


@pytest.fixture(scope="session")
def watched_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose wrapper is watched, and crawls of its site before and after changes."""
    folder = tmp_path_factory.mktemp("watched")
    for name, layout in LAYOUTS.items():
        pages = of_kind(guide(layout), "restaurant")[:COUNT]
        lines = [{"url": page.page.url, "html": page.page.html.decode()} for page in pages]
        write_lines(folder / f"{name}.jsonl", lines)
    (folder / "food.json").write_text(restaurants().to_json(), encoding="utf-8")
    with inside(folder):
        done("ingest", "original.jsonl")
        with closing(stored()) as store:
            store.save_wrapper(WRAPPER, SITE, restaurants().to_json(), "learn")
        done("extract", "-o", "records.jsonl")
        done("watch", "-o", "watch.jsonl")
    return folder


@pytest.fixture(scope="session")
def changed_place(watched_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after the mild change, which was noticed."""
    folder = copied(watched_place, tmp_path_factory.mktemp("changed") / "place")
    with inside(folder):
        done("ingest", "mild.jsonl")
        done("monitor")
    return folder


@pytest.fixture(scope="session")
def mended_place(changed_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same when the wrapper was repaired."""
    folder = copied(changed_place, tmp_path_factory.mktemp("mended") / "place")
    with inside(folder):
        done("relearn")
    return folder


@pytest.fixture(scope="session")
def reviewed_place(changed_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same when a repair waits for review."""
    folder = copied(changed_place, tmp_path_factory.mktemp("reviewed") / "place")
    (folder / "siteloom.toml").write_text("[change]\naccept = 100\n", encoding="utf-8")
    with inside(folder):
        (folder / "told").write_text(done("relearn"), encoding="utf-8")
    return folder


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


Going = Callable[[Path], Path]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Going:
    """Go to a copy of a place."""

    def going(source: Path) -> Path:
        folder = copied(source, tmp_path / "place")
        work_inside(folder, monkeypatch)
        return folder

    return going


def alarm_script(folder: Path) -> dict[str, str]:
    """An environment in which alarms are appended to the file `alarms`."""
    script = folder / "alarm.py"
    script.write_text("import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())", encoding="utf-8")
    return {"SITELOOM_ALARM_COMMAND": f"{sys.executable} {script} {folder / 'alarms'}"}
