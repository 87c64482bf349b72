"""What is deployed with: the files name only what there is."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import typer

from siteloom.apps.cli.main import app
from siteloom.apps.cli.verbs import VERBS
from siteloom.core.settings import load_settings

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What an image for the server leaves out: Java, a browser, and what is for those who write spiders.
NOT_IN_THE_IMAGE = {"spark", "render", "web-poet", "all"}
FILES = ["Dockerfile", "examples/docker-compose.yml", "examples/github-actions/monitor.yml"]


def instructions(name: str) -> list[str]:
    """What the instructions of a name say in the Dockerfile, in their order."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    return re.findall(rf"^{name} (.+)$", text, re.MULTILINE)


def command_of(name: str) -> list[str]:
    (line,) = instructions(name)
    words: list[str] = json.loads(line[line.index("[") :])
    return words


def copied() -> list[str]:
    lines = [line.split() for line in instructions("COPY") if not line.startswith("--from")]
    return [name for *names, _ in lines for name in names]


def test_what_the_image_copies_is_there_and_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    let_through = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    assert sorted(copied()) == sorted(let_through)
    for name in copied():
        assert (ROOT / name).exists(), name


def test_the_image_copies_all_that_a_build_reads() -> None:
    needed = [PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "src"]
    assert [name for name in needed if not any(fnmatch(has, name) for has in copied())] == []


def extras_in(text: str) -> set[str]:
    return {
        extra for listed in re.findall(r"(?:\.|siteloom)\[([\w,-]+)\]", text) for extra in listed.split(",")
    }


def test_the_image_has_every_extra_but_those_it_cannot_run() -> None:
    script = (ROOT / "scripts" / "lock").read_text(encoding="utf-8")
    (extras,) = re.findall(r"^SERVER_EXTRAS=\((.+)\)", script, re.MULTILINE)
    assert set(extras.split()) == set(PROJECT["optional-dependencies"]) - NOT_IN_THE_IMAGE


def test_the_workflow_installs_extras_that_there_are() -> None:
    text = (ROOT / "examples/github-actions/monitor.yml").read_text(encoding="utf-8")
    assert extras_in(text)
    assert extras_in(text) <= set(PROJECT["optional-dependencies"])


def parsed(words: list[str]) -> dict[str, object]:
    """The parameters of a call of siteloom, by the very code that reads a command line."""
    group = typer.main.get_command(app)
    verb, *arguments = words
    assert verb in VERBS
    command = group.commands[verb]  # type: ignore[attr-defined]
    return dict(command.make_context(verb, arguments, parent=None).params)


def calls(file: str) -> list[list[str]]:
    """The calls of siteloom in a file, even in its comments."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = re.findall(r"(?:^#   |run: |--rm )(siteloom .+)$", text, re.MULTILINE)
    listed = re.findall(r"^\s*(?:CMD|command:) (\[\"serve.+\])$", text, re.MULTILINE)
    return [*(shlex.split(line)[1:] for line in lines), *map(json.loads, listed)]


@pytest.mark.parametrize("file", FILES)
def test_every_call_is_one_that_siteloom_understands(file: str) -> None:
    assert calls(file)
    for call in calls(file):
        parsed(call)


def test_a_call_that_siteloom_does_not_understand_is_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["serve", "--hots", "0.0.0.0"])


def test_the_image_serves_where_it_is_looked_for() -> None:
    port = parsed(command_of("CMD"))["port"]
    assert instructions("EXPOSE") == [str(port)]
    assert f"http://127.0.0.1:{port}/health'" in command_of("HEALTHCHECK")[-1]
    compose = (ROOT / "examples/docker-compose.yml").read_text(encoding="utf-8")
    assert f'"127.0.0.1:{port}:{port}"' in compose


@pytest.mark.parametrize("file", FILES)
def test_settings_in_the_environment_are_settings(file: str) -> None:
    _, settings = load_settings(ROOT, {}, {})
    known = {f"SITELOOM_{setting.name.replace('.', '_').upper()}" for setting in settings}
    named = set(re.findall(r"\bSITELOOM_\w+", (ROOT / file).read_text(encoding="utf-8")))
    assert named
    assert named <= known
