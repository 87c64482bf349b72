"""No module is taken from the current folder, which may be someone else's, by any process of Siteloom."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import siteloom
from siteloom.core.child_processes import SAFE_PATH, environment_of_programs, safe_path

SOURCE = Path(siteloom.__file__).parent

# As the command `siteloom` is: a script in another folder. Processes that are spawned run it again, and find
# what stands beside it.
LIBRARY = """
import json, sys
from beside import Squared
from siteloom.engines.local_engine import LocalEngine
if __name__ == "__main__":
    shards = [(number, number) for number in range(4)]
    print(json.dumps(sorted(LocalEngine(2).run(Squared, shards))))
    import os
    print(os.environ.get("PYTHONSAFEPATH"))
"""
SERVER = """
import sys, time
if __name__ == "__main__":
    from siteloom.apps.server.event_stream import Changes
    from siteloom.apps.server.job_runner import JobRunner
    from siteloom.core.settings import Settings, StoreSettings
    from siteloom.store.workspace_folder import open_store
    settings = Settings(store=StoreSettings(sys.argv[1]))
    store = open_store(settings.store, create=True)
    runner = JobRunner(store, settings, Changes())
    runner.start()
    job = runner.submit("index", {}, "ana")
    while not store.jobs.get(job.id).has_ended:
        time.sleep(0.01)
    print(store.jobs.get(job.id).state)
    runner.stop()
    store.close()
"""
SPARK = LIBRARY.replace("local_engine import LocalEngine", "spark_engine import SparkEngine").replace(
    "LocalEngine(2)", "SparkEngine('local[2]')"
)
BESIDE = """
class Squared:
    def __call__(self, shard, lost, step):
        return shard * shard
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder in which many a module would be found, each of which tells that it was."""
    folder = tmp_path / "unpacked"
    folder.mkdir()
    modules = ("multiprocessing", "io", "json", "numpy", "siteloom", "pickle", "socket", "signal", "pyspark")
    for name in modules:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'stolen')!r}, 'a').write('{name} ')\n")
    return folder


def run(script: Path, folder: Path, *arguments: str, python_path: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != SAFE_PATH}
    if python_path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(python_path), *sys.path])
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_processes_of_a_program_take_no_module_of_the_current_folder(hostile: Path, tmp_path: Path) -> None:
    """But they find what stands beside the program, as it does itself."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program/beside.py").write_text(BESIDE)
    script = tmp_path / "program/script.py"
    script.write_text(LIBRARY)
    assert run(script, hostile).splitlines() == ["[[0, 0], [1, 1], [2, 4], [3, 9]]", "None"]
    assert not (tmp_path / "stolen").exists()


def test_nor_do_those_of_jobs_of_the_server(hostile: Path, tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    script.write_text(SERVER)
    assert run(script, hostile, str(tmp_path / "workspace")).split() == ["done"]
    assert not (tmp_path / "stolen").exists()


def test_nor_do_those_of_spark(hostile: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    script = tmp_path / "spark.py"
    script.write_text(SPARK)
    (tmp_path / "beside.py").write_text(BESIDE)
    found = run(script, hostile, python_path=tmp_path)  # its processes need to have all modules by themselves
    assert found.splitlines() == ["[[0, 0], [1, 1], [2, 4], [3, 9]]", "None"]
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize("before", [None, "", "1"])
def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv(SAFE_PATH, raising=False)
    if before is not None:
        monkeypatch.setenv(SAFE_PATH, before)
    with safe_path():
        with safe_path():
            assert os.environ[SAFE_PATH]
        assert os.environ[SAFE_PATH]
        assert environment_of_programs().get(SAFE_PATH) == (before or None)
    assert os.environ.get(SAFE_PATH) == before


def test_no_process_is_started_otherwise() -> None:
    """Only these modules start any: those of `multiprocessing` by `safe_path`, a crawl's by `-P`."""
    starting = ("multiprocessing", "subprocess", "concurrent.futures", "asyncio.subprocess", "pty")
    found = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if any(name in starting for name in names):
                found.add(str(file.relative_to(SOURCE)))
    assert found == {
        "apps/server/job_runner.py",
        "engines/local_engine.py",
        "maintenance/alarms.py",
        "sources/crawling/crawl_source.py",
        "store/workspace_copy.py",
    }
