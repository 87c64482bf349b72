"""An application on an empty store, a clock to turn, and accounts whose passwords cost little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from fastapi import FastAPI

from siteloom.apps.server import create_app
from siteloom.core.settings import Settings, StoreSettings
from siteloom.store.queries.accounts import Role
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.access import CHEAP, Served, served_with_people
from tests.apps.server.browsing import Browser
from tests.store.helpers import Clock


class People:
    """An application with whoever signs in to it."""

    def __init__(self, app: FastAPI, store: Store) -> None:
        self.app = app
        self.store = store

    def add(self, name: str, role: Role) -> None:
        self.store.accounts.add(name, role, CHEAP.hashed(self.password(name)))

    def password(self, name: str) -> str:
        return f"the password of {name}"

    def browser(self, name: str, role: Role) -> Browser:
        """A browser in which an account is signed in, which is made if it is not there."""
        if self.store.accounts.find(name) is None:
            self.add(name, role)
        browser = Browser(self.app)
        assert browser.sign_in(name, self.password(name)).status_code == 303
        return browser


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def empty_store(tmp_path: Path, clock: Clock, empty_workspace: Path) -> Iterator[Store]:
    copytree(empty_workspace, tmp_path / "workspace")
    opened = open_store(StoreSettings(str(tmp_path / "workspace")), clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def app(empty_store: Store) -> FastAPI:
    application = create_app(empty_store, Settings())
    application.state.services = replace(application.state.services, passwords=CHEAP)
    return application


@pytest.fixture
def people(app: FastAPI, empty_store: Store) -> People:
    """An application with an admin called ana."""
    everyone = People(app, empty_store)
    everyone.add("ana", "admin")
    return everyone


@pytest.fixture(scope="module")
def served(lived_in_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An application in which much has happened, with accounts of all roles, for the tests of a module."""
    folder = copytree(lived_in_folder, tmp_path_factory.mktemp("served") / "workspace")
    with served_with_people(folder) as everything:
        yield everything
