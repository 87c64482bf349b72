"""Help comes at once and says what a newcomer needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from siteloom.cli import app

from .command import Command

VERBS = [command.name for command in app.registered_commands if command.name]


def test_help_lists_every_verb_with_what_it_does(siteloom: Command) -> None:
    result = siteloom("--help")
    assert result.returncode == 0
    for verb in VERBS:
        (line,) = [line for line in result.stdout.splitlines() if line.strip().startswith(verb + " ")]
        assert len(line.split()) > 3


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(siteloom: Command, verb: str) -> None:
    result = siteloom(verb, "--help")
    assert result.returncode == 0
    assert "--workspace" in result.stdout


def test_without_arguments_there_is_help(siteloom: Command) -> None:
    assert "siteloom demo" in siteloom().stderr + siteloom().stdout


def test_the_version_is_told(siteloom: Command) -> None:
    import siteloom as package

    assert siteloom("--version").stdout == f"siteloom {package.__version__}\n"


def test_help_loads_no_heavy_library() -> None:
    script = "import sys, siteloom.cli; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"alembic", "lxml", "numba", "numpy", "pyarrow", "rich", "sqlalchemy"} & set(loaded)
