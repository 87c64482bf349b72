"""Documents followed to the letter: an entry in a table says what each takes, and what comes of it.

An entry is a function with the decorator `followed`. It is given a `Place`, an empty folder: it puts there
what the document takes for granted, calls `place.follow()`, which does what all blocks of the document say,
one after the other, and asserts what must hold then. What cannot be done in a test is named in `not_run`,
each command or block (by its first line) with the reason.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg
import pytest
from torture.warm import run_warm

from siteloom.core.settings import load_settings
from tests.apps.cli.command import Command
from tests.apps.cli.verbs.test_serve import served, stopped
from tests.docs.blocks import ROOT, Block, blocks, read
from tests.docs.shop import line_of
from tests.patience import SECONDS

Result = subprocess.CompletedProcess[str]

# What only a shell understands, unless it stands in quotes.
_FOR_A_SHELL = re.compile(r"""["'][^"']*["']|(?P<sign>[|<>;`$])""")


@dataclass(frozen=True)
class Entry:
    """How a document is followed."""

    follow: Callable[[Place], None]
    not_run: Mapping[str, str]


TABLE: dict[str, Entry] = {}


def followed(document: str, *, not_run: Mapping[str, str] | None = None) -> Callable[..., None]:
    """Let a function follow a document."""

    def enter(function: Callable[[Place], None]) -> None:
        assert document not in TABLE, document
        TABLE[document] = Entry(function, not_run or {})

    return enter


def follow_document(document: str, folder: Path, request: pytest.FixtureRequest) -> None:
    """Follow a document, all of it."""
    entry = TABLE[document]
    place = Place(folder, document, entry.not_run, request)
    entry.follow(place)
    place.check_that_all_is_done()


@dataclass
class Place:
    """A folder in which a document is followed."""

    folder: Path
    document: str
    not_run: Mapping[str, str]
    request: pytest.FixtureRequest
    instead: dict[str, str] = field(default_factory=dict)
    """What stands here for what the document names: a server on loopback for a host, for instance."""
    typed: dict[str, str] = field(default_factory=dict)
    """What is typed when a command asks."""
    fails: dict[str, str] = field(default_factory=dict)
    """The commands that must fail, and what they say then."""
    environment: dict[str, str] = field(default_factory=dict)
    database: str = ""
    """Where SQL is run: a database of PostgreSQL."""
    results: dict[str, Result] = field(default_factory=dict)
    """What came of each command and each program, as the document has it."""

    def __post_init__(self) -> None:
        self._left = [(block, step) for block in blocks(self.document) for step in block.steps]
        self._begun: Block | None = None
        self._inside: Path = self.folder
        self._used: set[str] = set()
        names = [name for name in os.environ if name.startswith("SITELOOM_")]
        plain = {name: value for name, value in os.environ.items() if name not in names}
        scripts = Path(sys.executable).parent
        state = str(self.folder / ".state")  # whom a person trusts is no affair of tests
        path = f"{scripts}:{plain['PATH']}"
        self.environment = {**plain, "PATH": path, "XDG_STATE_HOME": state, "COLUMNS": "120"}

    def __getitem__(self, beginning: str) -> Result:
        """What came of the one step that begins so."""
        (found,) = [result for step, result in self.results.items() if step.startswith(beginning)]
        return found

    @property
    def last(self) -> Result:
        """What came of the step that was done last."""
        return next(reversed(self.results.values()))

    @cached_property
    def blocks(self) -> list[Block]:
        return blocks(self.document)

    @property
    def document_text(self) -> str:
        return read(self.document)

    def text_of(self, beginning: str) -> str:
        """The text of the one block that begins so."""
        (found,) = [block.text for block in self.blocks if block.text.startswith(beginning)]
        return found

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file, in a folder that is made if it is not there."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def write_lines(self, name: str, rows: list[dict[str, object]]) -> Path:
        return self.write(name, "".join(map(line_of, rows)))

    def take(self, *names: str) -> None:
        """Put files and folders of the shop here; `workspace` is one with a wrapper and its records."""
        shop: Path = self.request.getfixturevalue("shop_folder")
        for name in names:
            if (shop / name).is_dir():
                shutil.copytree(shop / name, self.folder / name.replace("workspace", ".siteloom"))
            else:
                shutil.copy(shop / name, self.folder / name)

    def take_try_it(self) -> None:
        """Put here what `siteloom demo --keep try-it` leaves."""
        shutil.copytree(self.request.getfixturevalue("try_it"), self.folder / "try-it")

    def rows(self, name: str) -> list[dict[str, object]]:
        """The rows of a file of JSON Lines."""
        return [json.loads(line) for line in (self.folder / name).read_text("utf-8").split("\n") if line]

    def siteloom(self, *arguments: str) -> Result:
        """Do what the document does not say, but takes to be done."""
        result = run_warm(["-m", "siteloom", *arguments], self.folder, self.environment)
        assert result.returncode == 0, (arguments, result.stderr)
        return result

    def follow(self, *, before: str | None = None) -> None:
        """Do what is left of the document, or what stands before the first step that begins so."""
        while self._left and not (before and self._left[0][1].startswith(before)):
            block, step = self._left.pop(0)
            if block is not self._begun:
                self._begun, self._inside = block, self.folder
            if (known := step.split("\n")[0]) in self.not_run:
                self._used.add(known)
                continue
            self._do(block, step)
        assert not before or self._left, f"{self.document} has no step any more that begins with {before}"

    def check_that_all_is_done(self) -> None:
        assert not self._left, f"{self.document}, not followed: {self._left[0][1]}"
        for named in (self.not_run, self.instead, self.typed, self.fails):
            gone = named.keys() - self._used
            assert not gone, f"{self.document} does not say this any more: {gone}"

    def _do(self, block: Block, step: str) -> None:
        text = step
        for said, here in self.instead.items():
            if said in text:
                self._used.add(said)
                text = text.replace(said, here)
        match block.kind:
            case "shell":
                self._check(step, self._shell(step, text))
            case "crontab":
                self._check(step, self._shell(step, text.split(maxsplit=5)[5]))
            case "python":
                self._check(step, run_warm(["-c", text], self._inside, self.environment))
            case "json":
                assert records_in(text), step
            case "toml":
                assert settings_in(text), step
            case "sql":
                assert self.database, f"Say where this is run: {step}"
                with psycopg.connect(self.database) as connection:
                    connection.execute(text.encode())
            case "output":
                self._check_output(step)
            case _:
                pytest.fail(
                    f"{self.document}, line {block.line}: no one knows how to run this. If it is nothing "
                    f"that runs, list its first line in not_run, with what it is: {step}"
                )

    def _check(self, step: str, result: Result | None) -> None:
        if result is None:
            return
        self.results[step] = result
        if step in self.fails:
            self._used.add(step)
            assert result.returncode != 0, step
            assert self.fails[step] in result.stderr
        else:
            assert result.returncode == 0, f"{self.document}: {step}\n{result.stdout}\n{result.stderr}"

    def _check_output(self, shown: str) -> None:
        """What a document shows as output was said by a step before, line by line; "..." stands for more."""
        said = flat(" ".join(result.stdout + result.stderr for result in self.results.values()))
        for line in shown.split("\n"):
            assert flat(line.removesuffix("...")) in said, f"{self.document} shows what nothing says: {line}"

    def _shell(self, step: str, line: str) -> Result | None:
        """What comes of a line that is typed into a shell; None if it is not run, but checked."""
        if any(match["sign"] for match in _FOR_A_SHELL.finditer(line)):
            return self._bash(line)
        result = None
        for command in line.split(" && "):
            program, *arguments = shlex.split(command)
            match program:
                case "siteloom" if arguments[:1] == ["serve"]:
                    self._serve(*arguments[1:])
                case "siteloom":
                    self._used |= {step} & self.typed.keys()
                    result = run_warm(
                        ["-m", "siteloom", *arguments],
                        self._inside,
                        self.environment,
                        self.typed.get(step, ""),
                    )
                    if result.returncode:
                        return result
                case "cd":
                    self._inside /= arguments[0]
                case "export":
                    name, _, value = arguments[0].partition("=")
                    self.environment[name] = value
                case "make":
                    assert set(arguments) <= make_targets(), line
                case "pip":
                    assert arguments[0] == "install"
                    assert all(_is_siteloom(one) for one in arguments[1:]), line
                case _:
                    return self._bash(line)
        return result

    def _bash(self, line: str) -> Result:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self._inside,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def _serve(self, *options: str) -> None:
        """Start the server, ask whether it is well, and stop it."""
        with served(Command(self._inside), *options) as (address, process):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the certificate is made up
            here = address.replace("0.0.0.0", "127.0.0.1")
            assert httpx.get(f"{here}health", verify=context, timeout=SECONDS).json()["status"] == "ok"
            assert stopped(process, signal.SIGINT).endswith("Stopped.\n")


def flat(told: str) -> str:
    """What is told, each table on one line."""
    return " ".join(told.replace("│", " ").split())


def make_targets() -> set[str]:
    """What make can be asked for."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def extras() -> set[str]:
    """What can be installed with Siteloom."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return set(project["optional-dependencies"])


def _is_siteloom(requirement: str) -> bool:
    match = re.fullmatch(r"(?:\.|siteloom)(?:\[([\w,-]+)\])?", requirement)
    return match is not None and set((match[1] or "all").split(",")) <= extras()


def records_in(text: str) -> list[object]:
    """What JSON says: one value, or one a line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.split("\n")]


def settings_in(text: str) -> dict[str, object]:
    """The settings that a siteloom.toml gives."""
    with TemporaryDirectory() as folder:
        Path(folder, "siteloom.toml").write_text(text, encoding="utf-8")
        _, resolved = load_settings(Path(folder), {}, {}, shows_untrusted=True)
        return {one.name: one.value for one in resolved if "siteloom.toml" in str(one.origin)}
