"""A crawl as a page source: start the child process, stream its pages, report progress and failures.

What fetches can run only once in a process, and only in its main thread; so it is a program of its own. It
is told what to fetch on its standard input, and ends when that is closed, so it never outlives this process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import MissingExtra, SiteloomError, SourceError
from siteloom.core.model import Failure
from siteloom.core.settings import CrawlSettings, PagesSettings
from siteloom.sources.crawling.crawl_journal import Done, Links, Progress
from siteloom.sources.crawling.url_filters import UrlPatterns

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from siteloom.core.model import Page, Resource, Skipped, Validators


NOT_MODIFIED = "not modified"
"""Why a page is skipped that is as it was."""

FORBIDDEN = "forbidden by robots.txt"
"""Why an address is not fetched whose host does not want that."""

WALKED = "only walked for its links"
"""Why a page is skipped that is not one of those to keep."""

_PROGRAM = "siteloom.sources.crawling"


class Ended(NamedTuple):
    """The last thing that the process says; `problem` is why it could not go on, if that is so.

    `error` is one that the user can do something about.
    """

    problem: str = ""
    error: SiteloomError | None = None


@dataclass(frozen=True, slots=True)
class Crawl:
    """Pages of the web: at most `most_pages`, beginning with the URLs.

    With `follows`, links on these pages are followed within the sites that they are on, in such an order
    that URLs of all shapes get their share; `with_sitemaps`, also to what sitemaps of their hosts list. Of
    what is found, the patterns say what is kept, and what is not even fetched. A crawl that only looks ahead
    fetches nothing but the URLs and the sitemaps, and tells which of what it finds is `FORBIDDEN`.
    `progress` is what an earlier part of it has done.

    With `validators` for a URL, its page is only sent if it is another than they were said of; else it is
    `Skipped` as `NOT_MODIFIED`. If `as_asked`, pages have the URLs that were asked for, wherever these lead.

    If it `renders`, pages are what their scripts have made of them in Chromium. `with_requisites`, the
    stylesheets of pages are fetched too, wherever they are.
    """

    urls: tuple[str, ...]
    most_pages: int
    follows: bool = False
    settings: CrawlSettings = CrawlSettings()
    pages: PagesSettings = PagesSettings()
    validators: Mapping[str, Validators] = field(default_factory=dict)
    as_asked: bool = False
    renders: bool = False
    with_requisites: bool = False
    patterns: UrlPatterns = UrlPatterns()
    with_sitemaps: bool = False
    looks_ahead: bool = False
    progress: Progress = Progress()

    def check(self) -> None:
        """Raise an error if this cannot be done here.

        A MissingExtra if what fetches pages is not installed, or what opens them in a browser; a SourceError
        if that would run their scripts as root.
        """
        if find_spec("scrapy") is None:
            raise MissingExtra("Fetching pages from the web", "crawl")
        if self.renders and find_spec("playwright") is None:
            raise MissingExtra("Opening pages in Chromium", "render")
        if self.renders and self.settings.sandbox and os.geteuid() == 0:
            raise SourceError(
                "Chromium has no sandbox when root starts it, and pages could break out of it: run siteloom "
                "as another user, or give --no-sandbox if you trust these sites."
            )

    def read(self) -> Iterator[Page | Resource | Failure | Skipped]:
        """The pages as they come; closing this ends the process that fetches them."""
        with closing(self.events()) as events:
            yield from (event for event in events if not isinstance(event, Links | Done | Ended))

    def events(self) -> Generator[Page | Resource | Failure | Skipped | Links | Done | Ended]:
        """The same, and how far it has come: a page, then its links, then that it is done.

        The last is that the crawl has ended, unless it had to end early.
        """
        self.check()
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
            if item.error is not None:
                raise item.error
            yield Failure(self.urls[0], "fetching failed", item.problem) if item.problem else item
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
