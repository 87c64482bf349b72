"""A settings file from someone else runs nothing and reaches nowhere until it is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from siteloom.apps.cli.verbs import VERBS
from tests.apps.cli.command import Command, one_sentence


@pytest.fixture
def hostile(siteloom: Command) -> Command:
    """A folder whose siteloom.toml would run a program, and the home of someone who trusts nothing yet."""
    (siteloom.folder / "home").mkdir()
    (siteloom.folder / "siteloom.toml").write_text("[alarm]\ncommand = 'touch owned'\n", encoding="utf-8")
    return siteloom


def home(command: Command) -> dict[str, str]:
    return {"HOME": str(command.folder / "home"), "XDG_STATE_HOME": ""}


@pytest.mark.parametrize("arguments", [("status",), ("init",), ("demo",), ("monitor", "x.warc")])
def test_verbs_stop_at_a_file_that_is_not_trusted(hostile: Command, arguments: tuple[str, ...]) -> None:
    assert arguments[0] in VERBS
    result = hostile(*arguments, environment=home(hostile))
    assert result.returncode == 2
    sentence = one_sentence(result)
    assert "siteloom.toml sets alarm.command, which" in sentence
    assert "siteloom config --trust" in sentence
    assert "SITELOOM_ALARM_COMMAND" in sentence
    assert not (hostile.folder / "owned").exists()
    assert not (hostile.folder / ".siteloom").exists()


def test_config_shows_what_is_not_trusted_and_trusts_it(hostile: Command) -> None:
    def origin() -> str:
        result = hostile("config", "-o", "-", environment=home(hostile))
        assert result.returncode == 0, result.stderr
        rows = {row["name"]: row for row in map(json.loads, result.stdout.splitlines())}
        assert rows["alarm.command"]["value"] == "touch owned"
        return str(rows["alarm.command"]["origin"])

    assert origin().endswith("siteloom.toml (not trusted, so it does not count)")
    result = hostile("config", "--trust", environment=home(hostile))
    assert result.returncode == 0, result.stderr
    assert "touch owned" in result.stderr
    assert "is trusted until it changes" in result.stderr
    assert origin().endswith("siteloom.toml")
    assert hostile("init", environment=home(hostile)).returncode == 0
    with Path(hostile.folder, "siteloom.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert "--trust" in one_sentence(hostile("status", environment=home(hostile)))


def test_doctor_says_that_a_file_is_not_trusted(hostile: Command) -> None:
    result = hostile("doctor", "-o", "-", environment=home(hostile))
    assert result.returncode == 1
    (row,) = [row for row in map(json.loads, result.stdout.splitlines()) if row["check"] == "settings"]
    assert (row["ok"], "alarm.command" in row["finding"]) == (False, True)
    assert "backup" not in result.stderr


def test_a_workspace_elsewhere_is_not_used_by_a_link_that_came_with_the_folder(siteloom: Command) -> None:
    victim, cloned = siteloom.folder / "victim", siteloom.folder / "cloned"
    for folder in (victim, cloned, siteloom.folder / "home"):
        folder.mkdir()
    environment = home(siteloom)
    assert Command(victim)("init", environment=environment).returncode == 0
    before = {file: file.read_bytes() for file in victim.rglob("*") if file.is_file()}
    (cloned / ".siteloom").symlink_to("../victim/.siteloom")
    (cloned / "page.html").write_text("<p>x")
    for arguments in (("status",), ("ingest", "."), ("init",)):
        sentence = one_sentence(Command(cloned)(*arguments, environment=environment))
        assert "leads out of this folder by a symbolic link" in sentence
    told = Command(cloned)("doctor", environment=environment)
    assert told.returncode == 1
    assert "leads out of this folder" in told.stderr
    assert {file: file.read_bytes() for file in victim.rglob("*") if file.is_file()} == before
    told = Command(cloned)("status", "--workspace", ".siteloom", environment=environment)
    assert told.returncode == 0, told.stderr
