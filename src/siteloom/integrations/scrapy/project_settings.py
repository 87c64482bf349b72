"""The Siteloom settings of a Scrapy project: its workspace and wrappers."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scrapy.utils.conf import closest_scrapy_cfg

from siteloom.core.settings import load_settings
from siteloom.operations.stored_wrappers import wrappers_of_store
from siteloom.store.workspace_folder import open_store, workspace_exists
from siteloom.wrappers.named_wrappers import wrappers_of_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.settings import BaseSettings

    from siteloom.core.settings import ParseSettings, StoreSettings
    from siteloom.wrappers.matching import NamedWrapper

_log = logging.getLogger(__name__)

WRAPPERS_SETTING = "SITELOOM_WRAPPERS"
WORKSPACE_SETTING = "SITELOOM_WORKSPACE"


class Project(NamedTuple):
    """The settings of a project, with every path relative to the project's folder resolved."""

    wrappers: tuple[str, ...]
    store: StoreSettings
    limits: ParseSettings


def project(settings: BaseSettings) -> Project:
    """Read the project of a crawler's settings and of the `siteloom.toml` in its folder."""
    folder = project_folder()
    own, _ = load_settings(folder, os.environ, {"store.workspace": settings.get(WORKSPACE_SETTING)})
    store = replace(own.store, workspace=str(folder / own.store.workspace))
    wrappers = (file for location in settings.getlist(WRAPPERS_SETTING) for file in _files(folder, location))
    return Project(tuple(wrappers), store, own.parse)


def project_folder() -> Path:
    """Return the folder of `scrapy.cfg`, or else the current folder."""
    configuration = closest_scrapy_cfg()
    return Path(configuration).parent if configuration else Path.cwd()


def wrappers_of(crawl_project: Project) -> list[NamedWrapper]:
    """Load the named wrappers, or else those of the workspace, and log warnings about them."""
    wrappers = _read_wrappers(crawl_project)
    for named in wrappers:
        if not named.is_for_pages:
            _log.warning("No page can find its way to %s, for it has no footprint: learn it again.", named)
    return wrappers


def _files(folder: Path, location: str) -> Iterator[str]:
    """Yield a file, or all wrappers in a folder."""
    if "://" in location:
        yield location
        return
    path = folder / location
    files = sorted(path.glob("*.json")) if path.is_dir() else []
    yield from map(str, files or [path])


def _read_wrappers(crawl_project: Project) -> list[NamedWrapper]:
    if crawl_project.wrappers:
        return wrappers_of_files(crawl_project.wrappers, tell=_warn)
    if not workspace_exists(crawl_project.store):
        return []
    with closing(open_store(crawl_project.store)) as store:
        return wrappers_of_store(store, tell=_warn) if store.wrappers() else []


def _warn(message: str) -> None:
    _log.warning("%s", message)
