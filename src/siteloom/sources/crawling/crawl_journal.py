"""What a crawl knows, on disk, so that it can continue.

Lines are only ever appended. A line is written when all that it tells of is safe in the store, so it may be
lost, as the last one is when the power fails in the middle of it, and then some pages are fetched again.
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


class Found(NamedTuple):
    """An address that was found, and how many links away from those that were asked for; 0 for these.

    `chain` counts the last of these links: those between pages of one shape that led to nothing else.
    """

    url: str
    clicks: int
    chain: int = 0


class Links(NamedTuple):
    """Addresses that are known from now on."""

    found: tuple[Found, ...]


class Done(NamedTuple):
    """An address that need not be fetched again.

    `at` is where a page was in the end, empty if there was none; `is_kept` says whether it is one of those
    that are wanted.
    """

    url: str
    at: str
    is_kept: bool


class Progress(NamedTuple):
    """What is known from an earlier part of the same crawl."""

    found: tuple[Found, ...] = ()
    done: tuple[Done, ...] = ()

    @property
    def pages(self) -> int:
        """How many pages were fetched and kept."""
        return sum(one.is_kept for one in self.done)


FOLDER = "crawls"
"""The folder of a workspace that the journals of its unfinished crawls are in."""


class Journal(NamedTuple):
    """The journal of one crawl, which is there as long as that is unfinished."""

    workspace: Path
    name: str

    @property
    def file(self) -> Path:
        """Where it is."""
        return self.workspace / self.name

    @classmethod
    def of(cls, workspace: Path, crawl: Crawl, site: str | None) -> Journal:
        """The journal of a crawl into a workspace: the same each time that the same is asked for.

        How many pages are wanted, and how fast, may change from one time to the next.
        """
        ways = (crawl.follows, crawl.with_sitemaps, crawl.renders, crawl.with_requisites)
        asked = [crawl.urls, ways, crawl.patterns, site]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
        return cls(workspace, f"{FOLDER}/{digest}.jsonl")

    def read(self) -> Progress:
        """How far the crawl had come when it was stopped; nothing if it was not begun."""
        found: list[Found] = []
        done: list[Done] = []
        try:
            lines = ConfinedFolder(self.workspace).read(self.name).split(b"\n")
        except FileNotFoundError:
            return Progress()
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror}.") from error
        for line in lines:
            try:
                kind, values = json.loads(line)
                if kind == "found":
                    found.extend(Found(*one) for one in values)
                else:
                    done.append(Done(*values))
            except (ValueError, TypeError):
                continue  # torn: what it told of is found and fetched again
        return Progress(tuple(found), tuple(done))

    def append(self, events: Iterable[Links | Done]) -> None:
        """Write down what is safe in the store by now."""
        lines = [["found", event.found] if isinstance(event, Links) else ["done", event] for event in events]
        # An own line break in front keeps a line that was torn before apart from these.
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
        """Forget the crawl: it has come to its end."""
        ConfinedFolder(self.workspace).remove(self.name)
