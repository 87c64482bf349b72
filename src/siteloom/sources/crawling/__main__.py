"""The process that fetches: what to fetch comes in as a pickle, and what was fetched goes out so."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from typing import TYPE_CHECKING

from siteloom.core.terminal_text import guard_process
from siteloom.sources.crawling.crawl_source import Crawl, Ended
from siteloom.sources.crawling.spider import run_crawl

if TYPE_CHECKING:
    from siteloom.core.model import Failure, Page, Resource, Skipped
    from siteloom.sources.crawling.crawl_journal import Done, Links


def main() -> None:
    """Fetch, and end at once when no one listens any more."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed must not get between
    guard_process()
    crawl = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own
    assert isinstance(crawl, Crawl)
    threading.Thread(target=_end_with_input, daemon=True).start()

    def tell(what: Page | Resource | Failure | Skipped | Links | Done | Ended) -> None:
        try:
            pickle.dump(what, output)
            output.flush()
        except BrokenPipeError:
            os._exit(1)

    try:
        run_crawl(crawl, tell)
        tell(Ended())
    except Exception as error:  # noqa: BLE001 - told where the crawl was asked for
        tell(Ended(repr(error)))


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)  # past the buffer, which Python could not close while a thread waits in it
    os._exit(1)


if __name__ == "__main__":
    main()
