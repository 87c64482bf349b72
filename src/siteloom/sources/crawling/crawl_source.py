"""A crawl as a page source: start the child process, stream its pages, report progress and failures.

Scrapy can run only once in a process, and only in its main thread, so the crawler is a program of its own. It
reads what to fetch from its standard input and exits when that is closed, so it never outlives this process.
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
from siteloom.sources.crawling.crawl_journal import CrawlProgress, DiscoveredLinks, FetchedUrl
from siteloom.sources.crawling.url_filters import UrlPatterns

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from siteloom.core.model import Page, Resource, Skipped, Validators


NOT_MODIFIED = "not modified"
"""The reason for skipping a page that has not changed."""

FORBIDDEN = "forbidden by robots.txt"
"""The reason for not fetching an address that its host excludes."""

WALKED = "only walked for its links"
"""The reason for skipping a page that is not to be collected."""

_PROGRAM = "siteloom.sources.crawling"


class CrawlEnded(NamedTuple):
    """The last message of the child process; `problem` is why it could not continue, if it could not.

    `error` is an error that the user can fix.
    """

    problem: str = ""
    error: SiteloomError | None = None


@dataclass(frozen=True, slots=True)
class Crawl:
    """Pages of the web: at most `most_pages`, beginning with the URLs.

    With `follows`, links on these pages are followed within their sites, in an order that covers all shapes
    of URLs; `with_sitemaps`, links in the sitemaps of their hosts as well. The patterns say which pages are
    collected, and which are not even fetched. A crawl that only looks ahead fetches only the URLs and the
    sitemaps, and reports which discovered addresses are `FORBIDDEN`. `progress` is the state of an
    interrupted crawl to continue.

    With `validators` for a URL, its page is only sent if it has changed since; otherwise it is `Skipped` as
    `NOT_MODIFIED`. If `as_asked`, pages keep the requested URLs, wherever these redirect to.

    If it `renders`, pages are the documents after their scripts have run in Chromium. `with_requisites`, the
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
    progress: CrawlProgress = CrawlProgress()

    def check(self) -> None:
        """Raise an error if the crawl cannot run here.

        MissingExtra if Scrapy or Playwright is needed but not installed; SourceError if Chromium would run
        the scripts of pages as root.
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
        """Yield the pages as they arrive; closing the iterator ends the child process."""
        with closing(self.events()) as events:
            yield from (
                event for event in events if not isinstance(event, DiscoveredLinks | FetchedUrl | CrawlEnded)
            )

    def events(
        self,
    ) -> Generator[Page | Resource | Failure | Skipped | DiscoveredLinks | FetchedUrl | CrawlEnded]:
        """Yield pages and progress: a page, then its links, then that the URL is done.

        The last event is that the crawl has ended, unless it ended early.
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
            while not isinstance(item := pickle.load(process.stdout), CrawlEnded):  # noqa: S301 - our own
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
            with suppress(BrokenPipeError):  # the process may have ended before it read what to fetch
                process.stdin.close()

    def shards(self) -> Sequence[Crawl]:
        """Return the crawl itself: splitting it would break the delay between requests to a site."""
        return (self,)
