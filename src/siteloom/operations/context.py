"""Where an operation works and whom it informs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from siteloom.core.progress import SILENT, Progress
from siteloom.core.settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.settings import Settings
    from siteloom.sources.page_source import PageSource
    from siteloom.store.store import Store


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where an operation works and whom it informs.

    `store` is the workspace, or a temporary one that holds the pages of `sources`. Parse limits, thresholds
    and the number of processes come from `settings` and nowhere else. `author` is the account that asked for
    the operation; it is kept with annotations, decisions and runs. `unread` counts the pages of the sources
    that could not be read, by reason, and `skipped` the documents that are no pages.
    """

    store: Store
    settings: Settings
    progress: Progress = SILENT
    sources: tuple[PageSource, ...] = ()
    author: str | None = None
    now: Callable[[], datetime] = utc_now
    unread: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0


@contextmanager
def open_context(
    settings: Settings, *, progress: Progress = SILENT, author: str | None = None, create: bool = False
) -> Iterator[Context]:
    """The workspace of the settings, which is closed in the end."""
    from siteloom.store.workspace_folder import open_store  # noqa: PLC0415 - databases are slow to load

    store = open_store(settings.store, create=create)
    try:
        if store.backup:
            progress.message(f"The workspace was upgraded; its previous state is kept in {store.backup}.")
        yield Context(store=store, settings=settings, progress=progress, author=author)
    finally:
        store.close()


@contextmanager
def source_context(
    settings: Settings, sources: Sequence[PageSource], *, progress: Progress = SILENT
) -> Iterator[Context]:
    """A temporary workspace beside sources whose pages the operation reads as a stream."""
    from siteloom.store.workspace_folder import open_store  # noqa: PLC0415 - databases are slow to load

    with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
        store = open_store(StoreSettings(workspace=folder), create=True)
        try:
            yield Context(store=store, settings=settings, progress=progress, sources=tuple(sources))
        finally:
            store.close()


@contextmanager
def temporary_context(
    settings: Settings,
    sources: Sequence[PageSource],
    *,
    progress: Progress = SILENT,
    names: Sequence[str] = (),
) -> Iterator[Context]:
    """A temporary workspace with the pages of sources, which is removed in the end.

    Stages read pages in any order and more than once, which a stream cannot give. `names` are the sources as
    the user wrote them.
    """
    from siteloom.operations.page_import import import_pages  # noqa: PLC0415 - databases are slow to load
    from siteloom.store.workspace_folder import open_store  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
        store = open_store(StoreSettings(workspace=folder), create=True)
        try:
            report = import_pages(store, sources, jobs=settings.run.jobs, names=names)
            yield Context(
                store=store,
                settings=settings,
                progress=progress,
                sources=tuple(sources),
                unread=report.failures,
                skipped=sum(report.skipped.values()),
            )
        finally:
            store.close()
