"""Pages from the web as a source: fetched by a process of its own, as they come.

What fetches can run only once in a process, and only in its main thread; so it is a program of its own. It
is told what to fetch on its standard input, and ends when that is closed, so it never outlives this process.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from siteloom.config import CrawlSettings, PagesSettings
from siteloom.errors import MissingExtra
from siteloom.model import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.model import Page, Skipped

_PROGRAM = "siteloom.pages.crawl"


class Ended(NamedTuple):
    """The last thing that the process says; `problem` is why it could not go on, if that is so."""

    problem: str = ""


@dataclass(frozen=True, slots=True)
class Crawl:
    """Pages of the web: at most `most_pages`, beginning with the URLs.

    With `follows`, links on these pages are followed within the sites that they are on, in such an order
    that URLs of all shapes get their share.
    """

    urls: tuple[str, ...]
    most_pages: int
    follows: bool = False
    settings: CrawlSettings = CrawlSettings()
    pages: PagesSettings = PagesSettings()

    def read(self) -> Iterator[Page | Failure | Skipped]:
        """The pages as they come; closing this ends the process that fetches them."""
        if find_spec("scrapy") is None:
            raise MissingExtra("Fetching pages from the web", "crawl")
        process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, "-P", "-W", "ignore", "-m", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for this process, which ends that one
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(self, process.stdin)
            process.stdin.flush()
            while not isinstance(item := pickle.load(process.stdout), Ended):  # noqa: S301 - our own
                yield item
            if item.problem:
                yield Failure(self.urls[0], "fetching failed", item.problem)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            yield Failure(
                self.urls[0], "process lost", f"what fetches pages ended with status {process.wait()}"
            )
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with suppress(BrokenPipeError):  # it may have ended before it was told what to fetch
                process.stdin.close()

    def shards(self) -> Sequence[Crawl]:
        """All at once: requests to a site must not be closer together than they may."""
        return (self,)
