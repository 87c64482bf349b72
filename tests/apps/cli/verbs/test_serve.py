"""`siteloom serve`: a real process that is started, asked and stopped."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from select import select as wait_until_readable

import httpx
import pytest
from sqlalchemy import select
from torture.warm import run_fresh

import siteloom as package
from siteloom.core.settings import StoreSettings
from siteloom.store import schema
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command, one_sentence
from tests.patience import SECONDS


@contextmanager
def served(
    siteloom: Command, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server at any free port, and its process; killed in the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "siteloom", "serve", "--port", "0", *options],
        cwd=siteloom.folder,
        env={**siteloom.environment, **(environment or {})},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        found = None
        while found is None:
            assert wait_until_readable([process.stderr], [], [], SECONDS)[0]
            line = process.stderr.readline()
            assert line, process.wait()
            found = re.search(r"https?://\S+/", line)
        yield found[0], process
    finally:
        process.kill()
        process.communicate()


def stopped(process: subprocess.Popen[str], by: signal.Signals) -> str:
    """What is told by a server that is stopped, which must be a good end."""
    process.send_signal(by)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, told
    assert "Traceback" not in told
    return told


@pytest.fixture
def workspace(siteloom: Command) -> Command:
    assert siteloom("init").returncode == 0
    return siteloom


def test_a_server_answers_until_ctrl_c(workspace: Command) -> None:
    with served(workspace, "-v") as (address, process):
        health = httpx.get(f"{address}health", timeout=SECONDS)
        assert health.json() == {"status": "ok", "version": package.__version__}
        assert "server" not in health.headers
        refused = workspace("serve", "--port", "0")
        assert refused.returncode == 1
        assert one_sentence(refused) == (
            f"Another server (process {process.pid}) has this workspace already: "
            "use that one, or stop it first."
        )
        with httpx.Client(base_url=address, timeout=SECONDS) as browser:
            page = browser.get("/jobs").text
            token = re.search(r'name="csrf-token" content="(\w+)"', page)
            assert token is not None
            started = browser.post("/api/jobs", json={"kind": "cluster"}, headers={"X-CSRF-Token": token[1]})
            assert started.status_code == 202, started.text
            assert browser.get("/api/jobs").json()[0]["author"] == "local"
            # It must end with the server, though someone looks on.
            with browser.stream("GET", f"/api/jobs/{started.json()['id']}/events"):
                told = stopped(process, signal.SIGINT)
        assert "INFO GET /health: 200 in " in told
        assert told.endswith("Stopped.\n")
    with closing(open_store(StoreSettings(workspace=str(workspace.folder / ".siteloom")))) as store:
        assert [job.state for job in store.jobs.latest(9)] in (["cancelled"], ["done"])


def test_being_told_to_stop_is_a_good_end_too(workspace: Command) -> None:
    with served(workspace, "--host", "localhost") as (_, process):
        assert stopped(process, signal.SIGTERM) == "Stopped.\n"


def test_a_port_that_is_taken(workspace: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        refused = workspace("serve", "--port", str(taken))
    assert refused.returncode == 1
    assert one_sentence(refused).startswith(f"Nothing can listen at 127.0.0.1 port {taken}: ")


def test_who_asks_through_a_proxy_is_who_the_proxy_says(workspace: Command) -> None:
    """As the manual sets up a proxy: what visitors claim of themselves does not count."""
    workspace("user", "add", "ana", stdin="the password of ana\n")
    with served(workspace) as (address, _), httpx.Client(base_url=address, timeout=SECONDS) as proxy:
        proxy.headers["X-Forwarded-For"] = "203.0.113.9"
        proxy.headers["X-Forwarded-Proto"] = "https"
        form = proxy.get("/sign-in")
        assert "; Secure" in form.headers["set-cookie"]
        token = re.search(r'name="csrf" value="(\w+)"', form.text)
        key = re.search(r"siteloom=([\w-]+)", form.headers["set-cookie"])
        assert token is not None
        assert key is not None
        wrong = {"csrf": token[1], "name": "ana", "password": "wrong"}
        answer = proxy.post("/sign-in", data=wrong, headers={"Cookie": f"__Host-siteloom={key[1]}"})
        assert answer.status_code == 401
    place = StoreSettings(workspace=str(workspace.folder / ".siteloom"))
    with closing(open_store(place)) as store, store.engine.connect() as connection:
        counted = connection.execute(select(schema.failed_sign_ins.c.address)).scalars().all()
    assert counted == ["203.0.113.9"]


def test_others_are_not_served_without_accounts(workspace: Command) -> None:
    refused = workspace("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "siteloom user add NAME" in one_sentence(refused)


def test_wrong_options_are_told_in_a_sentence(siteloom: Command) -> None:
    assert "There is no workspace at" in one_sentence(siteloom("serve"))
    siteloom("init")
    assert "--certificate and --key" in one_sentence(siteloom("serve", "--key", "k.pem"))
    assert "cannot be used" in one_sentence(siteloom("serve", "--key", "k.pem", "--certificate", "c.pem"))
    assert "no address nowhere.invalid" in one_sentence(siteloom("serve", "--host", "nowhere.invalid"))


def test_without_the_extra_it_says_what_to_install(workspace: Command) -> None:
    (workspace.folder / "uvicorn.py").write_text("raise ModuleNotFoundError('gone', name='uvicorn')")
    environment = {**workspace.environment, "PYTHONPATH": str(workspace.folder)}
    refused = run_fresh(["-m", "siteloom", "serve"], workspace.folder, environment)
    assert one_sentence(refused).endswith("install it with pip install 'siteloom[server]'.")
