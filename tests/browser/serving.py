"""The web application as a browser meets it: a workspace, a server on this machine, a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.apps.server.app import create_app
from siteloom.core.model import Page
from siteloom.core.settings import StoreSettings, load_settings
from siteloom.core.urls import site_of
from siteloom.operations.cluster import cluster_store
from siteloom.operations.page_import import import_pages
from siteloom.sources.page_source import Items
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import directory, guide, of_kind
from tests.apps.server.serving import serving as served
from tests.store.test_overview import cluster

GUIDE = "larkmoor-guide.example"
DIRECTORY = "tableatlas.example"
LAPTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
SMALL_PHONE: ViewportSize = {"width": 360, "height": 780}
BROWSERS = ("chromium", "chromium-browser")


class NoBrowser(Exception):
    """There is no browser to test with."""


def some_pages() -> list[BuiltinPage]:
    """Pages of both built-in sites: few, but enough of each kind for templates."""
    return [
        *of_kind(guide(), "restaurant")[:24],
        *of_kind(guide(), "event")[:10],
        *of_kind(guide(), "list")[:8],
        *of_kind(directory(), "restaurant")[:12],
    ]


def make_workspace(folder: Path, pages: Sequence[Page]) -> None:
    """Put pages into a new workspace and find their templates."""
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as store:
        import_pages(store, [Items(pages)])
        cluster_store(store, "vertex")


def make_template(folder: Path, pages: Sequence[Page]) -> None:
    """Put pages of a site into a new workspace, as if all were made from one template."""
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as store:
        import_pages(store, [Items(pages)])
        addresses = [PageAddress(site_of(page.url), page.url) for page in pages]
        with store.clustering({"site": None}) as run:
            whole = cluster(f"{addresses[0].site}/1", *range(len(pages)))
            store.save_clusters(run.id, [whole], addresses)


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """The address of the application for a store, which ends with the block."""
    settings, _ = load_settings(store.folder, {}, {"store.workspace": str(store.folder)})
    with served(create_app(store, settings)) as address:
        yield address


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise NoBrowser("These tests need Chromium: run scripts/install-programs chromium, and try again.")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]) as browser,
    ):
        yield browser
