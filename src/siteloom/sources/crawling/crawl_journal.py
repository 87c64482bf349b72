"""The journal of a crawl: its state on disk, so that an interrupted crawl can continue.

Lines are only appended. A line is written once everything it reports is safe in the store. If a line is lost,
as the last one may be in a power failure, some pages are fetched again.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from siteloom.sources.crawling.crawl_source import Crawl


class DiscoveredUrl(NamedTuple):
    """A discovered address, and how many links (`clicks`) it is away from the start URLs; 0 for these.

    `chain` counts the last of these links: those between pages of one shape that led to nothing else.
    """

    url: str
    clicks: int
    chain: int = 0


class DiscoveredLinks(NamedTuple):
    """Newly discovered addresses."""

    urls: tuple[DiscoveredUrl, ...]


class FetchedUrl(NamedTuple):
    """An address that need not be fetched again.

    `page_url` is the final address of its page, empty if there is none; `is_collected` says whether the page
    matches the patterns of pages to collect.
    """

    url: str
    page_url: str
    is_collected: bool


class CrawlProgress(NamedTuple):
    """The state of a crawl that was interrupted."""

    discovered: tuple[DiscoveredUrl, ...] = ()
    fetched: tuple[FetchedUrl, ...] = ()

    @property
    def pages(self) -> int:
        """How many pages were fetched and collected."""
        return sum(fetched_url.is_collected for fetched_url in self.fetched)


FOLDER = "crawls"
"""The folder of a workspace with the journals of its unfinished crawls."""


class CrawlJournal(NamedTuple):
    """The journal of one crawl, which exists while the crawl is unfinished."""

    workspace: Path
    name: str

    @property
    def file(self) -> Path:
        """The path of the journal."""
        return self.workspace / self.name

    @classmethod
    def of(cls, workspace: Path, crawl: Crawl, site: str | None) -> CrawlJournal:
        """Return the journal of a crawl into a workspace; the same request always has the same journal.

        The number of pages and the speed are not part of the request and may change.
        """
        options = (crawl.follows, crawl.with_sitemaps, crawl.renders, crawl.with_requisites)
        request = [crawl.urls, options, crawl.patterns, site]
        digest = hashlib.sha256(json.dumps(request).encode()).hexdigest()[:16]
        return cls(workspace, f"{FOLDER}/{digest}.jsonl")

    def read(self) -> CrawlProgress:
        """Read how far the crawl had come when it was interrupted; empty if it was not started."""
        discovered: list[DiscoveredUrl] = []
        fetched: list[FetchedUrl] = []
        try:
            lines = ConfinedFolder(self.workspace).read(self.name).split(b"\n")
        except FileNotFoundError:
            return CrawlProgress()
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror}.") from error
        for line in lines:
            try:
                kind, values = json.loads(line)
                if kind == "found":
                    discovered.extend(DiscoveredUrl(*fields) for fields in values)
                else:
                    fetched.append(FetchedUrl(*values))
            except (ValueError, TypeError):
                continue  # a torn line: its addresses are discovered and fetched again
        return CrawlProgress(tuple(discovered), tuple(fetched))

    def append(self, events: Iterable[DiscoveredLinks | FetchedUrl]) -> None:
        """Record events that are safe in the store."""
        lines = [
            ["found", event.urls] if isinstance(event, DiscoveredLinks) else ["done", event]
            for event in events
        ]
        # The leading line break separates these lines from one that was torn before.
        text = "".join("\n" + json.dumps(line, ensure_ascii=False) for line in lines)
        try:
            workspace = ConfinedFolder(self.workspace)
            workspace.make_folder(FOLDER)
            with workspace.open(self.name, "ab") as file:
                file.write((text + "\n").encode("utf-8", "replace"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"{self.file} cannot be written: {error.strerror}.") from error

    def remove(self) -> None:
        """Remove the journal after the crawl has finished."""
        ConfinedFolder(self.workspace).remove(self.name)
