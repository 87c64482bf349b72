"""A store with a small built-in site, clustered; each test has a copy of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from siteloom.apps.demo.sites import guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.settings import StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store


@pytest.fixture(scope="session")
def guide() -> list[BuiltinPage]:
    return list(guide_site())


@pytest.fixture(scope="session")
def clustered_guide(guide: list[BuiltinPage], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace that is never written to."""
    folder = tmp_path_factory.mktemp("guide") / "workspace"
    store = open_store(StoreSettings(workspace=str(folder)), create=True)
    with store.ingesting({}, 1) as (_, writer):
        for one in guide:
            writer.add(one.page, "guide")
    cluster_store(store, "vertex")
    store.close()
    return folder


@pytest.fixture
def store(clustered_guide: Path, tmp_path: Path) -> Iterator[Store]:
    folder = tmp_path / "workspace"
    shutil.copytree(clustered_guide, folder)
    opened = open_store(StoreSettings(workspace=str(folder)))
    yield opened
    opened.close()
