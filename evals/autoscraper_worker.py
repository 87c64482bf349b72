"""Runs inside AutoScraper's own environment: examples and pages come in as JSON, values go out.

In: {"examples": [{"html": ..., "values": {attribute: [value]}}], "pages": [html]}.
Out: for each page {attribute: [value]}.
"""

from __future__ import annotations

import json
import sys

from autoscraper import AutoScraper  # type: ignore[import-not-found]


def main() -> None:
    work = json.load(sys.stdin)
    scraper = AutoScraper()
    for example in work["examples"]:
        wanted = {attribute: values for attribute, values in example["values"].items() if values}
        scraper.build(html=example["html"], wanted_dict=wanted, update=True)
    json.dump(
        [scraper.get_result_exact(html=html, group_by_alias=True, unique=True) for html in work["pages"]],
        sys.stdout,
    )


if __name__ == "__main__":
    main()
