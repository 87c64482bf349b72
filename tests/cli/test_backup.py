"""`siteloom backup`, and what the guide says of restoring."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from siteloom.cli import app

from ..formats import kept
from .command import Command, one_sentence, work_inside

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "back-up.md"


@pytest.fixture
def place(siteloom: Command) -> Command:
    """With a workspace in which much has happened."""
    kept.unpack_workspace(kept.kept("workspace")[-1], siteloom.folder / ".siteloom")
    return siteloom


def follow(place: Command, line: str) -> None:
    """Do what a line of the guide says."""
    if line.startswith("siteloom "):
        done = place(*shlex.split(line)[1:])
        assert done.returncode == 0, (line, done.stderr)
        return
    subprocess.run(["bash", "-c", line], cwd=place.folder, check=True)


def test_a_workspace_is_backed_up_and_restored_as_the_guide_says(place: Command) -> None:
    before = place("status", "-o", "-").stdout
    section = GUIDE.read_text(encoding="utf-8").partition("## With PostgreSQL")[0]
    lines = re.findall(r"^    (.+)$", section, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["siteloom", "rm", "cp", "siteloom"]
    for line in lines:
        follow(place, line)
    assert place("status", "-o", "-").stdout == before
    assert "larkmoor-guide.example" in before


def test_it_is_told_how_to_restore(place: Command) -> None:
    made = place("backup", "a backup")
    assert "every page in it reads back" in made.stderr
    told = re.search(r"remove (\S+), then (cp -r .+), then siteloom doctor", made.stderr)
    assert told is not None
    shutil.rmtree(told[1])
    follow(place, told[2])
    assert place("status").returncode == 0
    again = place("backup", "a backup")
    assert again.returncode == 2
    assert one_sentence(again).endswith("a backup is not empty: give a folder that is new or empty.")


def test_without_a_workspace_there_is_a_sentence(siteloom: Command) -> None:
    assert one_sentence(siteloom("backup", "backup")).startswith("There is no workspace at ")


def test_who_interrupts_it_is_told_that_there_is_none(
    place: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    work_inside(place.folder, monkeypatch)
    monkeypatch.setattr("siteloom.store.backup._copy_pack", interrupted)
    with pytest.raises(SystemExit) as end:
        app(["backup", "a backup"])
    assert end.value.code == 130
    assert capsys.readouterr().err.endswith("siteloom: Interrupted; there is no backup.\n")
    assert not list(place.folder.glob("a backup*"))
