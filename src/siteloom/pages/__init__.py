"""Pages in: folders of HTML, WARC, WACZ, Parquet and JSON Lines, here or elsewhere, each read as a stream."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from siteloom.model import Failure, Page
from siteloom.pages.locations import open_sources
from siteloom.pages.source import PageSource, SourceItem, open_source, read_sources

__all__ = ["PageSource", "SourceItem", "open_source", "open_sources", "read_pages", "read_sources"]

_log = logging.getLogger(__name__)


def read_pages(*sources: str | Path, on_failure: Callable[[Failure], object] | None = None) -> Iterator[Page]:
    """Stream the pages of folders, WARC, WACZ, Parquet and JSON Lines files, one source after the other.

    What cannot be read goes to `on_failure`, or else to the log as a warning;
    the rest goes on. A source that does not exist raises `SourceError` at once. A text may also stand
    for many sources, as on the command line: see `open_sources`.
    """
    report = on_failure or _log_failure
    return _pages(open_sources(sources), report)


def _pages(sources: list[PageSource], on_failure: Callable[[Failure], object]) -> Iterator[Page]:
    for item in read_sources(sources):
        if isinstance(item, Page):
            yield item
        elif isinstance(item, Failure):
            on_failure(item)


def _log_failure(failure: Failure) -> None:
    _log.warning("%s: %s (%s)", failure.url, failure.reason, failure.detail)
