"""What opens doors is nowhere to be read afterwards: not in what is logged, measured, or kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from select import select

import httpx
from sqlalchemy import make_url
from sqlalchemy import select as all_of

from siteloom.core.settings import StoreSettings
from siteloom.store import schema
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command
from tests.patience import SECONDS, wait_until

PASSWORD = "hunter2-hunter2-hunter2"
NEW_PASSWORD = "correct-horse-battery"
MISTYPED = "hunter2-hunter2-hunter3"
OF_DATABASE = "the-password-of-the-database"
OF_WEBHOOK = "the-token-of-the-webhook"
IN_QUERY = "a-secret-in-a-query"
WRONG_KEY = "siteloom_not-a-key-but-perhaps-that-of-another-one"
LOUD = ("-vv", "--debug", "--log-file", "log.jsonl")
# A server that has one request more, over which it breaks.
BREAKING = """
from siteloom.apps.server import app as application
from fastapi import Request

def create_app(store, settings, make=application.create_app):
    app = make(store, settings)

    async def broken(request: Request) -> None:
        raise RuntimeError(f"{len(await request.body())} bytes")

    app.add_api_route("/api/broken", broken, methods=["POST"])
    return app

application.create_app = create_app
from siteloom.apps.cli.main import main
main()
"""


@contextmanager
def running(folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that says all there is to say, and what it has said once it has ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", BREAKING, "serve", "--port", "0", *LOUD],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    try:
        assert process.stdout is not None
        while not (found := re.search(r"https?://\S+/", "".join(said))):
            assert select([process.stdout], [], [], SECONDS)[0], said
            said.append(process.stdout.readline())
            assert said[-1], said
        yield found[0], said
        process.send_signal(signal.SIGINT)
        said.append(process.communicate(timeout=SECONDS)[0])
    finally:
        process.kill()
        process.wait()


def test_no_secret_is_logged_measured_or_kept(tmp_path: Path, postgres_url: str) -> None:
    url = make_url(postgres_url).set(password=OF_DATABASE).render_as_string(hide_password=False)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("SITELOOM_")} | {
        "SITELOOM_STORE_URL": url,
        "SITELOOM_ALARM_WEBHOOK": f"http://127.0.0.1:9/hook?token={OF_WEBHOOK}",
        "PYTHONUNBUFFERED": "1",
    }

    def siteloom(*arguments: str, stdin: str = "") -> str:
        done = Command(tmp_path)(*arguments, *LOUD, environment=environment, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    told = [siteloom("init"), siteloom("user", "add", "ana", stdin=f"{PASSWORD}\n"), siteloom("config")]
    with running(tmp_path, environment) as (address, said), httpx.Client(base_url=address) as browser:
        secrets, measured = _use_all_secrets(browser)
    told += [*said, measured, (tmp_path / "log.jsonl").read_text("utf-8")]
    settings = StoreSettings(str(tmp_path / ".siteloom"), url)
    with closing(open_store(settings)) as store, store.engine.connect() as connection:
        tables = schema.metadata.sorted_tables
        kept = {table.name: str(connection.execute(all_of(table)).all()) for table in tables}
    for place in ("".join(said), told[-1]):  # on the screen, and in the log
        assert "/api/broken failed" in place
        assert "RuntimeError" in place
    secrets |= {
        "the password": PASSWORD,
        "the new password": NEW_PASSWORD,
        "a password mistyped": MISTYPED,
        "the password of the database": OF_DATABASE,
        "the token of the webhook": OF_WEBHOOK,
        "a query": IN_QUERY,
        "a key that is none": WRONG_KEY,
    }
    assert {what for what, secret in secrets.items() if secret in "".join(told)} == set()
    assert {
        (what, name) for what, secret in secrets.items() for name in kept if secret in kept[name]
    } == set()
    assert {name: text for name, text in kept.items() if "ana" in text}.keys() >= {"users", "jobs"}


def _use_all_secrets(browser: httpx.Client) -> tuple[dict[str, str], str]:
    """All that opens a door is used, rightly and wrongly; returns it, and what the server has measured."""
    form = browser.get("/sign-in", params={"next": f"/jobs?token={IN_QUERY}"}).text
    before = browser.cookies["siteloom"]
    token = _token(form)
    for password, status in ((MISTYPED, 401), (PASSWORD, 303)):
        data = {"name": "ana", "password": password, "csrf": token, "next": f"/?token={IN_QUERY}"}
        assert browser.post("/sign-in", data=data).status_code == status
    with_token = {"X-CSRF-Token": browser.get("/api/me").json()["csrf"]}
    secrets = {
        "the cookie": browser.cookies["siteloom"],
        "the cookie before": before,
        "the token": with_token["X-CSRF-Token"],
        "the token before": token,
    }
    made = browser.post("/api/keys", json={"label": "export"}, headers=with_token)
    secrets["the key"] = made.json()["key"]
    page = browser.post("/settings/keys", data={"label": "two", "csrf": with_token["X-CSRF-Token"]}).text
    found = re.search(r"siteloom_[\w-]{43}", page)
    assert found is not None
    secrets["the key of the page"] = found[0]
    with httpx.Client(
        base_url=browser.base_url, headers={"Authorization": f"Bearer {secrets['the key']}"}
    ) as own:
        assert own.get(f"/api/nothing?key={IN_QUERY}").status_code == 404
        assert own.post("/api/broken", json={"password": PASSWORD}).status_code == 500
        assert own.post("/api/accounts", json={"name": [PASSWORD], "password": PASSWORD}).status_code == 422
        account = {"name": "bo", "password": PASSWORD, "role": "viewer"}
        assert own.post("/api/accounts", json=account).status_code == 201
        job = own.post("/api/jobs", json={"kind": "index"}).json()["id"]
        wait_until(lambda: own.get(f"/api/jobs/{job}").json()["state"] not in ("waiting", "running"))
        change = {"current": PASSWORD, "new": NEW_PASSWORD}
        assert own.put("/api/me/password", json=change).status_code == 204
    for path in ("/api/me", f"/nothing?key={IN_QUERY}"):
        browser.get(path, headers={"Authorization": f"Bearer {WRONG_KEY}"})
    return secrets, browser.get("/metrics").text


def _token(page: str) -> str:
    found = re.search(r'name="csrf" value="(\w+)"', page)
    assert found is not None
    return found[1]
