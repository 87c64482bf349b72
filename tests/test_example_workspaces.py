"""The workspaces of the examples can be made, and what their README says can be done with them."""

from __future__ import annotations

import csv
import os
import re
import shlex
from pathlib import Path

import pytest
from torture.warm import run_warm

from tests.test_deployment import parsed

ROOT = Path(__file__).parents[1]
MADE_IN = "examples/workspaces"
FEWER = 4  # one in so many of the things that the sites tell of, which is enough for all that is said


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder above all workspaces, as the project's own is."""
    folder = tmp_path_factory.mktemp("project")
    result = make(folder)
    assert "siteloom learn --examples examples.jsonl" in result
    return folder


def make(folder: Path) -> str:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from pathlib import Path; "
        f"from examples.make_workspaces import main; main(Path({MADE_IN!r}), {FEWER})"
    )
    # A workspace that someone works with, in which nothing must be made.
    environment = {**os.environ, "SITELOOM_STORE_WORKSPACE": str(folder / "mine")}
    result = run_warm(["-c", code], folder, environment)
    assert result.returncode == 0, result.stderr
    assert not (folder / "mine").exists()
    return result.stdout


def walks() -> dict[str, list[str]]:
    """The commands of the README by the folder that they are given in."""
    lines = re.findall(r"^    (.+)$", (ROOT / "examples/README.md").read_text(encoding="utf-8"), re.MULTILINE)
    found: dict[str, list[str]] = {".": []}
    for line in lines:
        if line.startswith("cd "):
            found[line.removeprefix("cd ")] = []
        else:
            found[list(found)[-1]].append(line)
    return found


def done(made: Path, workspace: str) -> dict[str, str]:
    """What each command says of a workspace."""
    folder = f"{MADE_IN}/{workspace}"
    told = {}
    for line in walks()[folder]:
        program, *arguments = shlex.split(line)
        assert program == "siteloom"
        result = run_warm(["-m", "siteloom", *arguments], made / folder, os.environ)
        assert result.returncode == 0, (line, result.stderr)
        told[line] = result.stdout + result.stderr
    return told


def records(made: Path, workspace: str) -> list[dict[str, str]]:
    with (made / MADE_IN / workspace / "records.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_workspace_is_told_of(made: Path) -> None:
    folders = {str(folder.relative_to(made)) for folder in (made / MADE_IN).iterdir()}
    assert folders == walks().keys() - {"."}
    (serve,) = walks()["."]
    workspace = str(parsed(shlex.split(serve)[1:])["workspace"])
    assert (made / workspace / "workspace.json").is_file()


def test_the_guide_has_records_that_can_be_explained(made: Path) -> None:
    told = done(made, "guide")
    (explained,) = [text for line, text in told.items() if line.startswith("siteloom explain")]
    assert "Turnip & Barrel" in explained
    assert "Turnip & Barrel" in {row["name"] for row in records(made, "guide")}


def test_the_directory_is_wrapped_from_known_records(made: Path) -> None:
    told = done(made, "known-records")
    assert "refused: opened" in told["siteloom bootstrap --core name,address"]
    (conflicts,) = [text for line, text in told.items() if line.startswith("siteloom entities")]
    assert "68 Mulberry Place" in conflicts
    assert "68 Mulberry Pl " in conflicts
    assert all(row["name"] and row["address"] for row in records(made, "known-records"))


def test_the_change_is_noticed_and_mended(made: Path) -> None:
    told = done(made, "changed-site")
    assert "still stands at" in told["siteloom monitor"]
    assert "a repair waits" in " ".join(re.sub(r"[│\s]+", " ", told["siteloom history"]).split())
    assert all(row["name"] for row in records(made, "changed-site"))
    assert "is as in version 1 again" in told["siteloom rollback larkmoor-guide.example/1"]


def test_what_is_there_is_left_alone(made: Path) -> None:
    again = make(made)
    assert again.count("is there already") == len(walks()) - 1
    assert "siteloom " not in again
