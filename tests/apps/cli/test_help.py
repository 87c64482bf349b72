"""Help comes at once and says what a newcomer needs."""

from __future__ import annotations

import inspect
import os
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

from siteloom.apps.cli import verbs
from siteloom.apps.cli.verbs import VERBS
from tests.apps.cli.command import Command


def test_help_lists_every_verb_with_what_it_does(siteloom: Command) -> None:
    result = siteloom.fresh("--help")
    assert result.returncode == 0
    listed = result.stdout.partition("Commands:\n")[2].splitlines()
    for verb in VERBS:
        (line,) = [line for line in listed if line.strip().startswith(verb + " ")]
        assert line.endswith(VERBS[verb])  # whole, as wide as a terminal is


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(siteloom: Command, verb: str) -> None:
    result = siteloom.fresh(verb, "--help")
    assert result.returncode == 0
    assert "--workspace" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "list[str]" not in result.stdout


def test_without_arguments_there_is_help(siteloom: Command) -> None:
    assert "siteloom demo" in siteloom().stderr + siteloom().stdout


def test_the_version_is_told(siteloom: Command) -> None:
    import siteloom as package

    assert siteloom("--version").stdout == f"siteloom {package.__version__}\n"


def test_every_module_of_a_verb_is_in_the_table() -> None:
    files = [file.name for file in pkgutil.iter_modules(verbs.__path__)]
    modules = {file: import_module(f"siteloom.apps.cli.verbs.{file}") for file in files}
    names = {file: module.NAME for file, module in modules.items() if hasattr(module, "NAME")}
    assert names == {verb: verb for verb in VERBS}


@pytest.mark.parametrize("verb", VERBS)
def test_the_line_of_a_verb_in_the_table_is_the_first_of_its_help(verb: str) -> None:
    documentation = inspect.getdoc(import_module(f"siteloom.apps.cli.verbs.{verb}").run)
    assert documentation is not None
    assert documentation.splitlines()[0] == VERBS[verb]
    assert documentation.splitlines()[1:2] in ([], [""])


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a fresh interpreter has loaded when `siteloom` ends."""
    script = (
        "import atexit, sys; from siteloom.apps.cli.main import main;"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    command = [sys.executable, "-c", script, *arguments]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())


def test_help_loads_neither_a_verb_nor_a_heavy_library() -> None:
    loaded = loaded_by("--help")
    assert "typer" in loaded
    assert not {f"siteloom.apps.cli.verbs.{verb}" for verb in VERBS} & loaded
    assert not {"alembic", "lxml", "numba", "numpy", "pyarrow", "rich", "sqlalchemy"} & loaded


def test_a_verb_loads_no_other() -> None:
    loaded = loaded_by("config", "--help")
    assert {verb for verb in VERBS if f"siteloom.apps.cli.verbs.{verb}" in loaded} == {"config"}


def test_a_verb_that_is_not_there_is_refused_with_the_nearest(siteloom: Command) -> None:
    result = siteloom("ingst")
    assert result.returncode == 2
    assert "No such command 'ingst'. Did you mean 'ingest'" in result.stderr


@pytest.mark.parametrize(
    ("words", "expected"), [("siteloom ing", "ingest"), ("siteloom ingest --res", "--resources")]
)
def test_a_shell_completes_verbs_and_their_options(words: str, expected: str) -> None:
    script = "import sys; sys.argv[0] = 'siteloom'; from siteloom.apps.cli.main import main; main()"
    asked = {
        "_SITELOOM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == [expected]
