"""Runs the command line as a user does: another process, another folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from torture.warm import run_fresh, run_warm


class Command:
    """`siteloom` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, *arguments: str, environment: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **(environment or {})}
        return run_warm(["-m", "siteloom", *arguments], self.folder, environment, stdin)

    def fresh(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same in a Python that has imported nothing yet, which takes seconds."""
        return run_fresh(["-m", "siteloom", *arguments], self.folder, self.environment)

    @property
    def environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("SITELOOM_")}


def share_for_reading(folder: Path) -> None:
    """Let other users read a folder of a test with all it holds: a workspace is private when it is made."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for parent in folder.parents:
        parent.chmod(0o755)
        if parent.name.startswith("pytest-of-"):  # the topmost that pytest has made
            break


def work_inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call verbs in this process as from a folder, without settings of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("SITELOOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(folder)


@pytest.fixture
def siteloom(tmp_path: Path) -> Command:
    return Command(tmp_path)


def one_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """The message of a failed command, which must be a single line that the program says by name."""
    assert result.returncode in (1, 2), result
    assert "Traceback" not in result.stderr
    message = result.stderr.strip().splitlines()[-1]
    assert message.startswith("siteloom: "), result.stderr
    sentence = message.removeprefix("siteloom: ")
    assert result.stderr.count(sentence) == 1, result.stderr
    return sentence
