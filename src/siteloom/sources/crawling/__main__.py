"""The child process of a crawl: reads the crawl as a pickle, and writes pages and progress as pickles."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from typing import TYPE_CHECKING

from siteloom.core.terminal_text import guard_process
from siteloom.sources.crawling.crawl_source import Crawl, CrawlEnded
from siteloom.sources.crawling.spider import run_crawl

if TYPE_CHECKING:
    from siteloom.core.model import Failure, Page, Resource, Skipped
    from siteloom.sources.crawling.crawl_journal import DiscoveredLinks, FetchedUrl


def main() -> None:
    """Run the crawl, and exit at once when no one reads its output any more."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # printed text must not mix with the pickles
    guard_process()
    crawl = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own
    assert isinstance(crawl, Crawl)
    threading.Thread(target=_end_with_input, daemon=True).start()

    def tell(event: Page | Resource | Failure | Skipped | DiscoveredLinks | FetchedUrl | CrawlEnded) -> None:
        try:
            pickle.dump(event, output)
            output.flush()
        except BrokenPipeError:
            os._exit(1)

    try:
        run_crawl(crawl, tell)
        tell(CrawlEnded())
    except Exception as error:  # noqa: BLE001 - the parent process reports it
        tell(CrawlEnded(repr(error)))


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)  # past the buffer, which Python could not close while a thread waits in it
    os._exit(1)


if __name__ == "__main__":
    main()
