"""`siteloom backup`; the guide is followed by tests/docs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest

from siteloom.apps.cli.main import app
from tests.apps.cli.command import Command, one_sentence, work_inside
from tests.formats import kept


@pytest.fixture
def place(siteloom: Command) -> Command:
    """With a workspace in which much has happened."""
    kept.unpack_workspace(kept.kept("workspace")[-1], siteloom.folder / ".siteloom")
    return siteloom


def test_it_is_told_how_to_restore(place: Command) -> None:
    made = place("backup", "a backup")
    assert "every page in it reads back" in made.stderr
    told = re.search(r"remove (\S+), then (cp -r .+), then siteloom doctor", made.stderr)
    assert told is not None
    shutil.rmtree(told[1])
    subprocess.run(shlex.split(told[2]), cwd=place.folder, check=True)
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
    monkeypatch.setattr("siteloom.store.workspace_copy._copy_pack", interrupted)
    with pytest.raises(SystemExit) as end:
        app(["backup", "a backup"])
    assert end.value.code == 130
    assert capsys.readouterr().err.endswith("siteloom: Interrupted; there is no backup.\n")
    assert not list(place.folder.glob("a backup*"))
