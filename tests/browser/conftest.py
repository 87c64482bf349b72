"""Fixtures of the tests in a real browser.

What these tests change, they change by mouse and keyboard in the page as it is shown; scripts and the API are
only asked what is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, WebError, expect

from siteloom.core.settings import StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.browser.serving import LAPTOP, NoBrowser, make_workspace, running_browser, serving, some_pages
from tests.browser.signing_in import add_account
from tests.patience import MILLISECONDS

expect.set_options(timeout=MILLISECONDS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        with running_browser() as browser:
            yield browser
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def built_in_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some pages of the built-in sites, in clusters, and nothing annotated. Tests get copies of it."""
    folder = tmp_path_factory.mktemp("built-in") / ".siteloom"
    make_workspace(folder, [page.page for page in some_pages()])
    return folder


@pytest.fixture(scope="session")
def workspace_with_people(built_in_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with accounts: Ada is an admin, Edith an editor, Vita a viewer."""
    folder = tmp_path_factory.mktemp("people")
    shutil.copytree(built_in_workspace, folder / ".siteloom")
    for name, role in (("ada", "admin"), ("edith", "editor"), ("vita", "viewer")):
        add_account(folder, name, role)
    return folder / ".siteloom"


@pytest.fixture
def workspace(built_in_workspace: Path, tmp_path: Path) -> Path:
    """The workspace of a test, without accounts; `Command(tmp_path)` works on it."""
    return Path(shutil.copytree(built_in_workspace, tmp_path / ".siteloom"))


@pytest.fixture
def workspace_store(workspace: Path) -> Iterator[Store]:
    with closing(open_store(StoreSettings(workspace=str(workspace)))) as store:
        yield store


@pytest.fixture(scope="module")
def lived_in_store(lived_in_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A workspace that was lived in, for all tests of a module: for those that only look."""
    folder = shutil.copytree(lived_in_folder, tmp_path_factory.mktemp("lived-in") / ".siteloom")
    with closing(open_store(StoreSettings(workspace=str(folder)))) as store:
        yield store


@pytest.fixture
def served(workspace_store: Store) -> Iterator[str]:
    """The address of the application."""
    with serving(workspace_store) as address:
        yield address


@dataclass
class Overheard:
    """What pages have complained about in the browser, and which addresses it has asked for."""

    complaints: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def listen(self, context: BrowserContext) -> None:
        context.on("console", self._hear)
        context.on("weberror", self._hear_error)
        context.on("request", lambda request: self.addresses.append(request.url))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _hear_error(self, error: WebError) -> None:
        self.complaints.append(str(error.error))

    def forgive(self, status: int) -> None:
        """Take no notice of what the console says about answers of this status, and only of that."""
        assert all(f"status of {status}" in complaint for complaint in self.complaints), self.complaints
        self.complaints.clear()

    def hosts(self) -> set[str]:
        """The hosts that were asked for something."""
        return {host for host in (urlsplit(address).netloc for address in self.addresses) if host}


@pytest.fixture
def overheard(served: str) -> Iterator[Overheard]:
    """Nothing may go to another host, in any test, and no page may complain unless a test forgives it."""
    overheard = Overheard()
    yield overheard
    assert overheard.hosts() <= {urlsplit(served).netloc}
    assert overheard.complaints == []


Visiting = Callable[..., Page]


@pytest.fixture
def visiting(browser: Browser, served: str, overheard: Overheard) -> Iterator[Visiting]:
    """Opens an empty page for someone who shares nothing with others: `visiting(viewport=PHONE)`."""
    contexts: list[BrowserContext] = []

    def visit(**options: Any) -> Page:
        context = browser.new_context(**{"base_url": served, "viewport": LAPTOP, **options})
        context.set_default_timeout(MILLISECONDS)
        overheard.listen(context)
        contexts.append(context)
        return context.new_page()

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture
def page(visiting: Visiting) -> Page:
    """An empty page on a laptop."""
    return visiting()
