"""Alarms: they reach a web address or a command, and say in a sentence when they do not."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from torture.postgres import free_port

from siteloom.core.child_processes import SAFE_PATH, safe_path
from siteloom.core.settings import AlarmSettings
from siteloom.maintenance import alarms
from siteloom.maintenance.alarms import raise_alarm
from tests.patience import SECONDS

CHANGES: list[dict[str, object]] = [
    {"wrapper": "shop", "site": "a.example"},
    {"wrapper": "\N{SNAKE} \ud800\n", "share": 0.5},
]


@dataclass
class Webhook:
    """A server on this machine that keeps what it is sent."""

    address: str
    status: int = 204
    seconds: float = 0
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.address.removesuffix("/hook?to=me")

    def with_login(self, login: str) -> str:
        return self.address.replace("://", f"://{login}@")


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            hook.requests.append((self.command, self.path, dict(self.headers), body))
            time.sleep(hook.seconds)
            self.send_response(hook.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *details: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = Webhook(f"http://127.0.0.1:{server.server_port}/hook?to=me")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield hook
    server.shutdown()
    thread.join()
    server.server_close()


def python(program: str, *arguments: str) -> AlarmSettings:
    """Settings whose command is a program in Python."""
    return AlarmSettings(command=shlex.join([sys.executable, "-c", program, *arguments]))


def post(address: str) -> str:
    """The sentence about a post that fails."""
    (problem,) = raise_alarm(CHANGES, AlarmSettings(webhook=address))
    return problem


def test_changes_are_posted_as_json(webhook: Webhook) -> None:
    assert raise_alarm(CHANGES, AlarmSettings(webhook=webhook.address)) == []
    ((method, path, headers, body),) = webhook.requests
    assert (method, path, headers["Content-Type"]) == ("POST", "/hook?to=me", "application/json")
    assert "Authorization" not in headers
    assert json.loads(body) == {"changes": CHANGES}


def test_a_command_gets_the_environment_of_whoever_runs_siteloom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what Siteloom tells the processes that it starts, and that those have, too."""
    monkeypatch.delenv(SAFE_PATH, raising=False)
    told = tmp_path / "told"
    program = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(repr(dict(os.environ)))"
    with safe_path():
        assert SAFE_PATH in os.environ
        assert raise_alarm(CHANGES, python(program, str(told))) == []
    assert SAFE_PATH not in told.read_text(encoding="utf-8")
    assert "PATH" in told.read_text(encoding="utf-8")


def test_a_command_gets_changes_as_json_lines(tmp_path: Path) -> None:
    told = tmp_path / "two words"
    program = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())"
    assert raise_alarm(CHANGES, python(program, str(told))) == []
    assert [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()] == CHANGES


def test_without_changes_or_settings_nothing_happens(webhook: Webhook, tmp_path: Path) -> None:
    program = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
    command = python(program, str(tmp_path / "told")).command
    assert raise_alarm([], AlarmSettings(webhook.address, command)) == []
    assert raise_alarm(CHANGES, AlarmSettings()) == []
    assert webhook.requests == []
    assert list(tmp_path.iterdir()) == []


def test_each_place_that_cannot_be_told_has_a_sentence_and_the_others_are_told(webhook: Webhook) -> None:
    webhook.status = 500
    failing = python("raise SystemExit(3)").command
    problems = raise_alarm(CHANGES, AlarmSettings(webhook.address, failing))
    assert problems == [
        f"The alarm could not be posted to {webhook.host}: it answered 500 Internal Server Error.",
        f"The alarm command {sys.executable} ended with status 3.",
    ]
    webhook.status = 200
    assert raise_alarm(CHANGES, AlarmSettings(webhook.address, failing)) == problems[1:]
    assert len(webhook.requests) == 2


def test_name_and_password_go_to_the_server_but_are_not_shown(webhook: Webhook) -> None:
    address = webhook.with_login("me:se%3Acr%C3%A9t@x")
    assert raise_alarm(CHANGES, AlarmSettings(webhook=address)) == []
    ((_, path, headers, _),) = webhook.requests
    assert path == "/hook?to=me"
    assert "@" not in headers["Host"]
    scheme, login = headers["Authorization"].split()
    assert (scheme, b64decode(login).decode()) == ("Basic", "me:se:crét@x")
    webhook.status = 401
    assert post(address) == (
        f"The alarm could not be posted to {webhook.host}: it answered 401 Unauthorized."
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_for_the_changes_would_be_lost(webhook: Webhook, status: int) -> None:
    webhook.status = status
    assert f"it answered {status} " in post(webhook.address)
    assert [(method, path) for method, path, *_ in webhook.requests] == [("POST", "/hook?to=me")]


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    host = f"http://127.0.0.1:{free_port()}"
    assert post(f"{host}/hook") == f"The alarm could not be posted to {host}: Connection refused."


def test_a_server_that_does_not_answer_is_not_waited_for(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarms, "_SECONDS_TO_POST", 0.1)
    webhook.seconds = 0.5
    assert post(webhook.address) == f"The alarm could not be posted to {webhook.host}: timed out."


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("ftp://a.example/x", "ftp://a.example"),
        ("file:///etc/passwd", "***"),
        ("a.example/x", "***"),
        (" ", "***"),
    ],
)
def test_only_web_addresses_are_posted_to(address: str, shown: str) -> None:
    assert post(address) == (
        f"The alarm could not be posted to {shown}: only addresses of http and https are accepted."
    )


@pytest.mark.parametrize(
    "address",
    [
        "{}/services/T0/SECRET?key=SECRET#SECRET",
        "{}/?SECRET",
        "SECRET@{}",
        "SECRET:SECRET@{}/SECRET",
        "SECRET@SECRET@{}/",
    ],
)
def test_nothing_of_an_address_is_told_but_its_host(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    host = f"127.0.0.1:{free_port()}"
    assert post(f"http://{address.format(host)}") == (
        f"The alarm could not be posted to http://{host}: Connection refused."
    )


@pytest.mark.parametrize(
    "address",
    [
        "http://me:secret/x@a.example/",
        "http://me:secret@a.example:port/",
        "http://me:secret@[::1/",
        "http://me:secret@127.0.0.1/a b",
        "http://me:secret@127.0.0.1/é",
        "http://me:secret@/x",
    ],
)
def test_a_broken_address_is_told_without_its_password(address: str) -> None:
    problem = post(address)
    assert problem.startswith("The alarm could not be posted to ")
    assert "secret" not in problem
    assert "me" not in problem.split(": ")[0]


def test_what_a_failing_command_said_last_is_told() -> None:
    program = "import sys; sys.exit('first\\nno way to https://me:secret@a.example/\\n')"
    assert raise_alarm(CHANGES, python(program)) == [
        f"The alarm command {sys.executable} ended with status 1 (no way to https://me:***@a.example/)."
    ]


def test_a_command_that_does_not_exist_is_named() -> None:
    assert raise_alarm(CHANGES, AlarmSettings(command="/nonexistent/tell --now")) == [
        "The alarm command /nonexistent/tell could not be run: No such file or directory."
    ]


@pytest.mark.parametrize("command", ["tell 'me", " "])
def test_a_command_that_cannot_be_read_is_told(command: str) -> None:
    assert raise_alarm(CHANGES, AlarmSettings(command=command)) == [
        "The alarm command could not be read: mend the setting alarm.command."
    ]


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    program = "import sys; sys.exit(0 if sys.argv[1:] == ['$HOME', ';', 'false'] else 1)"
    assert raise_alarm(CHANGES, python(program, "$HOME", ";", "false")) == []


def test_a_command_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarms, "_SECONDS_TO_RUN", 0.2)
    before = time.monotonic()
    assert raise_alarm(CHANGES, python("import time; time.sleep(600)")) == [
        f"The alarm command {sys.executable} was ended: it took longer than 0.2 seconds."
    ]
    assert time.monotonic() - before < SECONDS


def test_a_command_need_not_read_the_changes() -> None:
    many = [{"number": number, "text": "x" * 1_000} for number in range(1_000)]
    assert raise_alarm(many, python("pass")) == []


def test_what_a_command_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    program = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(child.pid))
"""
    assert raise_alarm(CHANGES, python(program, str(tmp_path / "pid"))) == []
    left_running = psutil.Process(int((tmp_path / "pid").read_text()))
    assert left_running.is_running()
    left_running.kill()


def test_what_a_command_writes_does_not_come_between_records(capfd: pytest.CaptureFixture[str]) -> None:
    assert raise_alarm(CHANGES, python("print('told')")) == []
    assert capfd.readouterr().out == ""
