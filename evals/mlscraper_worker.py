"""Runs inside mlscraper's own environment: examples and pages come in as JSON, values go out.

In: {"seconds": limit, "examples": [{"html": ..., "values": {attribute: [value]}}], "pages": [html]}.
Out: {"found": for each page {attribute: [value]}, "failed": [why nothing was learned for an attribute]}.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from mlscraper.html import Page  # type: ignore[import-not-found]
from mlscraper.samples import (  # type: ignore[import-not-found]
    NoMatchFoundException,
    Sample,
    TrainingSet,
)
from mlscraper.training import train_scraper  # type: ignore[import-not-found]


class TooLong(Exception):
    """The limit has passed."""


def main() -> None:
    work = json.load(sys.stdin)
    signal.signal(signal.SIGVTALRM, _stop)
    pages = [Page(example["html"]) for example in work["examples"]]
    scrapers: dict[str, Any] = {}
    failed: list[str] = []
    for attribute in sorted({name for example in work["examples"] for name in example["values"]}):
        values = [example["values"].get(attribute, []) for example in work["examples"]]
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, work["seconds"])
            scrapers[attribute] = _learned(pages, values)
        except TooLong:
            failed.append(f"more than {work['seconds']} CPU seconds")
        except Exception as error:  # noqa: BLE001 - whatever it fails with is told
            failed.append(type(error).__name__)  # its message may be a piece of a page
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    found = [
        {name: _extracted(scraper, page) for name, scraper in scrapers.items()}
        for page in map(Page, work["pages"])
    ]
    json.dump({"found": found, "failed": failed}, sys.stdout)


def _stop(*_: object) -> None:
    raise TooLong


def _learned(pages: list[Any], values: list[list[str]]) -> Any:
    is_list = any(len(of_page) > 1 for of_page in values)
    samples = TrainingSet()
    for page, of_page in zip(pages, values, strict=True):
        if of_page:
            sample = Sample(page, of_page if is_list else of_page[0])
            try:
                sample.get_matches()
            except NoMatchFoundException:
                continue
            samples.add_sample(sample)
    if samples.item is None:
        raise NoMatchFoundException
    return train_scraper(samples)


def _extracted(scraper: Any, page: Any) -> list[str]:
    """It raises an error where its selector finds nothing."""
    try:
        value = scraper.get(page)
    except AssertionError:
        return []
    values = value if isinstance(value, list) else [value]
    return [text for text in values if text]


if __name__ == "__main__":
    main()
