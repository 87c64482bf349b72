"""What hostile pages and names do to the terminal and the logs of those who look at them: nothing."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from siteloom.core.terminal_text import TextRecords
from tests.apps.cli.command import Command
from tests.apps.cli.verbs.test_serve import served, stopped
from tests.patience import SECONDS, wait_until

# A title of the window, hidden text, a link, a cleared screen and a colour by C1, what overwrites, and RLO.
HOSTILE = "\x1b]0;owned\x07\x1b[8;47mhid\x1b]8;;http://evil.example\x1b\\link\x9b2J\x9b35m\x7f\x08\x08\rnew\u202etfel"
# What ends a line for a terminal, an editor or `str.splitlines`.
LINE_ENDS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029")
FORGED = "".join(f"{end}ERROR forged" for end in LINE_ENDS)
INDENTED = "\r\n    ERROR forged" * len(LINE_ENDS)  # as a terminal gets it

# The styles and movements that rich uses for tables and progress. The terminal driver makes \n into \r\n.
_OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|1A|2K)|\r(?=\n|\x1b\[(?:2K|1A))")
_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Shown(NamedTuple):
    """What came of a program at a terminal: its status, what it wrote there, and to its standard output."""

    status: int
    text: str
    piped: bytes


def at_terminal(siteloom: Command, *arguments: str, typed: str = "", to_pipe: bool = False) -> Shown:
    """Run Python at a terminal of its own, with standard output there or in a pipe."""
    ours, its = pty.openpty()
    written = bytearray()

    def read() -> None:
        while True:
            try:
                written.extend(os.read(ours, 65536))
            except OSError:  # as Linux says that no one has the terminal any more
                return

    environment = {**siteloom.environment, "TERM": "xterm-256color", "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=siteloom.folder,
        env=environment,
        stdin=its,
        stdout=subprocess.PIPE if to_pipe else its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        os.write(ours, typed.encode())
        piped, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        reader.join()
        os.close(ours)
    return Shown(process.returncode, written.decode("utf-8"), piped or b"")


def verb_at_terminal(siteloom: Command, *arguments: str, typed: str = "", to_pipe: bool = False) -> Shown:
    return at_terminal(siteloom, "-m", "siteloom", *arguments, typed=typed, to_pipe=to_pipe)


def check_harmless(text: str) -> None:
    assert "\x1b[8;47m" not in text
    acting = _ACTING.search(_OWN.sub("", text))
    assert acting is None, text[max(0, acting.start() - 200) : acting.start() + 200]


def write_pages(folder: Path) -> None:
    def page(number: int) -> dict[str, object]:
        html = (
            f"<title>Widget {number} {HOSTILE}</title><h1>Widget {number} {HOSTILE}</h1>"
            f"<table><tr><td>Price {HOSTILE}<td>{number * 7 + 1}.50 {HOSTILE}"
            f"<tr><td>Maker<td>M{number} {HOSTILE}</table>"
        )
        return {"url": f"https://shop.example/p/{number}?{HOSTILE}", "html": html}

    rows = [*map(page, range(8)), {"url": f"https://shop.example/none{FORGED}{HOSTILE}"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "pages.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A folder with a file of hostile pages, and a workspace that has them."""
    siteloom = Command(tmp_path_factory.mktemp("hostile"))
    write_pages(siteloom.folder)
    for line in (("init",), ("ingest", "pages.jsonl"), ("cluster",)):
        told = siteloom(*line)
        assert told.returncode == 0, told.stderr
    return siteloom


@pytest.mark.parametrize(
    ("line", "visible", "own"),
    [
        (("ingest", "pages.jsonl", "-vv"), f"failed https://shop.example/none{INDENTED}", "\x1b[1m"),
        (("sample",), "]0;owned[8;47mhid", "\x1b[1m"),
        (("discover",), "]0;owned[8;47mhid", "\x1b[1m"),
        (("search", "widget"), "\ufffd[8;47mhid", "\x1b[1;36m"),
        (("template",), "[8;47mhid", "\x1b[36m"),
        (("watch", "pages.jsonl", "-k", "2"), "siteloom: ", ""),
        (("doctor",), "packs", "\x1b[1m"),
        (("clean", "pages.jsonl", "-o", "-"), "\ufffd[8;47mhid", "\x1b["),
        (("ingest", f"no{HOSTILE}{FORGED}", "--debug"), "no\ufffd]0;owned\ufffd\ufffd[8;47mhid", ""),
        (("status", f"--option{HOSTILE}"), "8;47", ""),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)
def test_hostile_pages_do_not_act_on_the_terminal(
    hostile: Command, line: tuple[str, ...], visible: str, own: str
) -> None:
    shown = verb_at_terminal(hostile, *line).text
    check_harmless(shown)
    assert visible in shown
    assert own in shown


def test_a_terminal_that_is_not_to_show_colours_is_one(
    hostile: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "")
    shown = verb_at_terminal(hostile, "sample").text
    assert "\x1b[1m" not in shown
    assert "]0;owned[8;47mhid" in shown
    check_harmless(shown)


def test_files_and_pipes_get_every_byte(hostile: Command) -> None:
    hostile("clean", "pages.jsonl", "-o", "clean.jsonl")
    content = (hostile.folder / "clean.jsonl").read_bytes()
    assert "\x9b2J" in content.decode("utf-8")
    assert verb_at_terminal(hostile, "clean", "pages.jsonl", "-o", "-", to_pipe=True).piped == content
    assert hostile("clean", "pages.jsonl", "-o", "-").stdout.encode() == content
    assert "\x1b[8;47mhid" in hostile("sample").stderr
    assert f"{HOSTILE}\n" in read_in_pipe(hostile, "search", "widget")


def read_in_pipe(siteloom: Command, *line: str) -> str:
    """What a verb says in a pipe, its line ends as they are."""
    process = subprocess.run(
        [sys.executable, "-m", "siteloom", *line],
        cwd=siteloom.folder,
        env=siteloom.environment,
        stderr=subprocess.PIPE,
        check=True,
        timeout=SECONDS,
    )
    return process.stderr.decode("utf-8")


def test_what_is_told_beside_a_line_of_progress_is_harmless(siteloom: Command) -> None:
    told = """
import sys, warnings
from siteloom.apps.cli.terminal import Shell
from siteloom.core.settings import Settings
from siteloom.core.terminal_text import guard_process

guard_process()
shell = Shell(Settings(), (), quiet=False)
hostile = sys.argv[1]
with shell.counting(f"Reading {hostile}") as count:
    shell.warn(f"1 {hostile}")
    shell.say(f"2 {hostile}")
    sys.stderr.write(f"3 {hostile}\\n")
    sys.stdout.write(f"4 {hostile}\\n")
    warnings.warn(f"5 {hostile}")
    with shell.counting("Writing"):
        shell.say(f"6 {hostile}")
    shell.show(f"7 {hostile}", [f"8 {hostile}"], [[f"9 {hostile}"]])
for byte in hostile.encode():
    sys.stdout.buffer.write(bytes([byte]))
raise ValueError(f"10 {hostile}")
"""
    shown = at_terminal(siteloom, "-c", told, HOSTILE).text
    check_harmless(shown)
    plain = _OWN.sub("", shown)
    for number in range(1, 11):
        assert re.search(rf"{number} \ufffd?]0;owned\ufffd*\[8;47mhid", plain), number
    assert "\x1b[32m" in shown
    assert "\x1b[1m" in shown


def test_a_terminal_can_be_asked_and_answered(hostile: Command) -> None:
    shown = verb_at_terminal(hostile, "forget", "shop.example", typed="n\n")
    assert "Forget all this? It cannot be undone. [y/N]: " in shown.text
    assert "Aborted" in shown.text
    assert shown.status == 1
    check_harmless(shown.text)


def test_messages_are_told_though_there_is_nothing_to_tell_them_to(siteloom: Command) -> None:
    line = 'exec "$0" -m siteloom init 2>&-'
    subprocess.run(
        ["sh", "-c", line, sys.executable],
        cwd=siteloom.folder,
        env=siteloom.environment,
        check=True,
        timeout=SECONDS,
    )
    assert (siteloom.folder / ".siteloom").is_dir()


@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_record_of_the_log_cannot_forge_another(end: str) -> None:
    record = logging.LogRecord("siteloom", logging.INFO, "", 0, "%s", (f"a{end}ERROR b\x1b[2J",), None)
    assert TextRecords().format(record) == "INFO a\n    ERROR b\ufffd[2J"


def test_the_trace_of_an_error_is_part_of_its_record() -> None:
    error = ValueError(f"a{FORGED}")
    trace = (ValueError, error, None)
    record = logging.LogRecord("siteloom", logging.ERROR, "", 0, "failed", (), trace)
    first, *others = TextRecords().format(record).splitlines()
    assert first == "ERROR failed"
    assert others[-1] == "    ERROR forged"
    assert all(line.startswith("    ") for line in others)


def test_logs_in_files_hold_a_record_a_line(hostile: Command) -> None:
    told = hostile("ingest", "pages.jsonl", "-v", "--log-file", "log.jsonl").stderr
    assert f"WARNING failed https://shop.example/none{INDENTED}".replace("\r", "") in told
    assert not re.search("^ERROR forged", told, re.MULTILINE)
    logged = (hostile.folder / "log.jsonl").read_text(encoding="ascii").splitlines()
    messages = [json.loads(line)["message"] for line in logged]
    assert any(
        message.startswith(f"failed https://shop.example/none{FORGED}{HOSTILE}") for message in messages
    )


def test_errors_that_name_hostile_files_are_one_record(hostile: Command) -> None:
    for debug in ((), ("--debug",)):
        told = hostile("ingest", f"no{FORGED}", *debug).stderr
        assert "siteloom: There is no file or folder no\n    ERROR forged" in told
        assert all(re.match("siteloom: |Traceback |    ", line) for line in told.splitlines())


def test_jobs_of_the_server_cannot_forge_its_log(siteloom: Command) -> None:
    """They are processes of their own, and what they log goes to the same place."""
    write_pages(siteloom.folder)
    siteloom("init")
    with (
        served(siteloom, "-v") as (address, process),
        httpx.Client(base_url=address, timeout=SECONDS) as browser,
    ):
        browser.get("/a%0AERROR forged%E2%80%A8ERROR forged\x85")
        token = re.search(r'name="csrf-token" content="(\w+)"', browser.get("/jobs").text)
        assert token is not None
        browser.headers["X-CSRF-Token"] = token[1]
        content = (siteloom.folder / "pages.jsonl").read_bytes()
        upload = browser.put("/api/uploads/pages.jsonl", content=content).json()["upload"]
        order = {"kind": "ingest", "arguments": {"upload": upload}}
        job = browser.post("/api/jobs", json=order)
        assert job.status_code == 202, job.text
        wait_until(lambda: browser.get(f"/api/jobs/{job.json()['id']}").json()["state"] == "done")
        told = stopped(process, signal.SIGTERM)
    assert "WARNING failed https://shop.example/none\n    ERROR forged\n" in told
    assert "INFO GET /a%0AERROR%20forged" in told
    assert not re.search("^ERROR forged", "\n".join(told.splitlines()), re.MULTILINE)
    assert _ACTING.search(told) is None
