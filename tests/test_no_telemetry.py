"""Nothing is told to anyone: no verb opens a connection that was not asked for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from siteloom.apps.demo.sites import guide_site
from tests.patience import SECONDS

# Python runs it in every process that the verbs start, before anything else.
WATCHER = """
import os, sys

def _watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        address = arguments[0] if event.startswith("socket.get") else arguments[1]
        host = address[0] if isinstance(address, tuple) else address
        if event in ("socket.connect", "socket.sendto") and not isinstance(address, tuple):
            return  # a socket of this machine, named by a path
        if host not in ("127.0.0.1", "::1", "localhost", None):
            with open(os.environ["WATCHED"], "a") as file:
                file.write(f"{event} {address} by {sys.argv}\\n")
            raise PermissionError("no one is to be told anything")

sys.addaudithook(_watch)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(WATCHER, encoding="utf-8")
    unset = {name: value for name, value in os.environ.items() if not name.startswith("SITELOOM_")}
    return {**unset, "PYTHONPATH": str(tmp_path / "hook"), "WATCHED": str(tmp_path / "watched")}


def run(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_watcher_sees_who_tells_something(environment: dict[str, str], tmp_path: Path) -> None:
    script = "import socket; socket.create_connection(('192.0.2.7', 80), 1)"
    assert "no one is to be told anything" in run(environment, tmp_path, "-c", script).stderr
    assert "192.0.2.7" in (tmp_path / "watched").read_text()


def test_no_verb_connects_to_anyone(environment: dict[str, str], tmp_path: Path) -> None:
    places = [one for one in guide_site() if one.kind == "restaurant"][:12]
    lines = [json.dumps({"url": one.page.url, "html": one.page.html.decode()}) for one in places]
    (tmp_path / "crawl.jsonl").write_text("\n".join(lines), encoding="utf-8")
    known = [
        json.dumps({"url": one.page.url, "values": {"name": list(one.truth["name"])}}) for one in places[:3]
    ]
    (tmp_path / "examples.jsonl").write_text("\n".join(known), encoding="utf-8")
    verbs = [
        ["--help"],
        ["ingest", "crawl.jsonl"],
        ["cluster"],
        ["learn", "--examples", "examples.jsonl"],
        ["extract", "-o", "records.jsonl"],
        ["serve", "--port", "0"],
    ]
    # One process for all: to load the libraries takes longer than the work.
    script = """
import json, sys
from siteloom.apps.cli.main import app
for arguments in json.loads(sys.argv.pop()):
    try:
        app(arguments)
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, json.dumps(verbs)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if address := re.search(r"http://127\.0\.0\.1:\d+/", line):
                with urlopen(address[0], timeout=SECONDS) as answer:
                    assert b"<title>" in answer.read()
                break
        else:
            pytest.fail("".join(said))
    finally:
        process.terminate()
        process.communicate()
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) > len(places) / 2
    assert not (tmp_path / "watched").exists(), (tmp_path / "watched").read_text()
