"""Contexts in which tests call operations."""

from __future__ import annotations

from siteloom.core.progress import SILENT, Progress
from siteloom.core.settings import ParseSettings, Settings
from siteloom.operations.context import Context
from siteloom.store.store import Store


def context_of(
    store: Store,
    *,
    parse: ParseSettings = ParseSettings(),
    progress: Progress = SILENT,
    author: str | None = None,
) -> Context:
    """A context of a store with the default settings, or with other parse limits."""
    return Context(store=store, settings=Settings(parse=parse), progress=progress, author=author)


class CountingProgress:
    """Keeps what an operation reports: each stage, each count and each message."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.counts: list[int] = []
        self.messages: list[str] = []

    def start(self, message: str, total: int | None = None, unit: str = "page", done: int = 0) -> None:
        self.stages.append((message, total))
        assert unit
        assert done >= 0

    def advance(self, count: int = 1) -> None:
        self.counts.append(count)

    def message(self, text: str) -> None:
        self.messages.append(text)
