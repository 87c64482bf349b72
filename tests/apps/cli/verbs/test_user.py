"""`siteloom user`: accounts from the command line."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time

import pytest

from siteloom.core.settings import StoreSettings
from siteloom.store.queries.accounts import Passwords
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command, one_sentence
from tests.patience import SECONDS

LONG = "a long enough password\n"
OTHER = "another password\n"


@pytest.fixture
def place(siteloom: Command) -> Command:
    assert siteloom("init").returncode == 0
    return siteloom


def test_accounts_are_added_shown_changed_and_removed(place: Command) -> None:
    assert "make the first one with siteloom user add NAME" in place("user").stderr
    assert "ana may sign in now, as admin." in place("user", "add", "Ana", stdin=LONG).stderr
    assert "bo may sign in now, as editor." in place("user", "add", "bo", stdin=LONG).stderr
    assert (
        "cy may sign in now, as viewer." in place("user", "add", "cy", "--role", "viewer", stdin=LONG).stderr
    )
    assert "cy is admin now." in place("user", "role", "cy", "admin").stderr
    assert "ana cannot sign in any more" in place("user", "remove", "ana").stderr
    shown = place("user", "list", "-o", "-")
    assert [
        (row["name"], row["role"], row["is_enabled"]) for row in map(json.loads, shown.stdout.splitlines())
    ] == [
        ("ana", "admin", False),
        ("bo", "editor", True),
        ("cy", "admin", True),
    ]
    assert "bo" in place("user").stderr
    assert "has another password" in place("user", "password", "ana", stdin="yet another one\r\n").stderr
    store = open_store(StoreSettings(str(place.folder / ".siteloom")))
    kept = store.accounts.password_of("ana")
    store.close()
    assert Passwords().is_right("yet another one", kept)
    assert not Passwords().is_outdated(kept or "")


def test_a_key_is_printed_alone(place: Command) -> None:
    place("user", "add", "ana", stdin=LONG)
    result = place("user", "key", "ana", "nightly export")
    key = result.stdout.removesuffix("\n")
    assert key.startswith("siteloom_")
    assert "\n" not in key
    store = open_store(StoreSettings(str(place.folder / ".siteloom")))
    account = store.accounts.of_key(key)
    labels = [known.label for known in store.accounts.keys("ana")]
    store.close()
    assert account is not None
    assert account.name == "ana"
    assert labels == ["nightly export"]


MISTAKES = (
    ("user add bo", "A password has at least 10 characters."),
    ("user add ana", "There is an account ana already: siteloom user password ana gives it another"),
    ("user add a/b", "The name of an account has 1 to 64 letters"),
    ("user add bo --role king", "There is no such role: it is one of viewer, editor, admin."),
    ("user add", "It is siteloom user add NAME,"),
    ("user role ana", "It is siteloom user role NAME ROLE,"),
    ("user remove ana bo", "It is siteloom user remove NAME,"),
    ("user list ana", "It is siteloom user list,"),
    ("user role ana king", "There is no such role"),
    ("user role ana viewer", "ana is the last admin, and must stay one."),
    ("user remove ana", "ana is the last admin, and must stay one."),
    ("user remove ana --role viewer", "--role is for add"),
    ("user remove ana -o x.csv", "-o is for list."),
    ("user password bo", "There is no account bo: there are ana."),
    ("user dance", "dance is nothing to do with accounts"),
)


def test_mistakes_are_told_in_a_sentence(place: Command) -> None:
    place("user", "add", "ana", stdin=LONG)
    for arguments, sentence in MISTAKES:
        stdin = LONG if arguments == "user add a/b" else "short\n"
        assert sentence in one_sentence(place(*arguments.split(), stdin=stdin))


def test_the_first_account_must_be_an_admin(place: Command) -> None:
    result = place("user", "add", "ana", "--role", "editor", stdin=LONG)
    assert one_sentence(result) == "The first account must be an admin."


def test_a_workspace_is_needed(siteloom: Command) -> None:
    assert "There is no workspace" in one_sentence(siteloom("user", "add", "ana", stdin=LONG))


def test_at_a_terminal_a_password_is_typed_twice_and_not_seen(place: Command) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "siteloom", "user", "add", "ana"],
        cwd=place.folder,
        env=place.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = ""
    for prompt, typed in (("Password: ", LONG), ("Once more: ", OTHER)):
        deadline = time.monotonic() + SECONDS
        while prompt not in seen and time.monotonic() < deadline:
            seen += os.read(ours, 1_000).decode()
        os.write(ours, typed.encode())
    assert process.wait(SECONDS) == 1
    seen += os.read(ours, 10_000).decode()
    os.close(ours)
    assert LONG.strip() not in seen
    assert OTHER.strip() not in seen
    assert "two different passwords" in seen
