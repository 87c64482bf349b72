"""Runs all benchmarks, or one, and keeps the figures: `python -m benchmarks DATA [--only NAME]`."""

from __future__ import annotations

import argparse
import platform
import re
import sys
from pathlib import Path

from benchmarks import (
    annotating,
    bootstrapping,
    bulk,
    cleaning,
    clustering,
    comparison,
    discovering,
    extraction,
    learning,
    parsing,
    records_table,
    starting,
    storing,
    verbs,
)
from benchmarks.corpus import corpus_sites
from benchmarks.measure import as_table
from siteloom.html.parser import PARSER

RESULTS = Path(__file__).with_name("results.md")
BENCHMARKS = {
    "starting": starting,
    "parsing": parsing,
    "storing": storing,
    "clustering": clustering,
    "learning": learning,
    "annotating": annotating,
    "bootstrapping": bootstrapping,
    "extraction": extraction,
    "cleaning": cleaning,
    "discovering": discovering,
    "records_table": records_table,
    "bulk": bulk,
    "comparison": comparison,
    "verbs": verbs,
}


def main(data: Path, only: str | None = None) -> None:
    if not corpus_sites(data):
        sys.exit(f"There are no real pages at {data}: benchmarks need them (see scripts/unpack-data).")
    parts = [
        "# Measured speed and memory\n",
        "Made by `make bench`; ratios within one run, CPU seconds of one core.",
        f"Python {platform.python_version()}, {PARSER}.\n",
    ]
    before = _tables() if only else {}
    for name, benchmark in BENCHMARKS.items():
        if only in (None, name):
            table = as_table(benchmark.TITLE, benchmark.figures(data))
            print(table, flush=True)
            parts.append(table)
        elif benchmark.TITLE in before:
            parts.append(before[benchmark.TITLE])
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


def _tables() -> dict[str, str]:
    """The tables as they were measured before, by their titles."""
    sections = re.split("^## ", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {section.partition("\n")[0]: f"## {section.rstrip()}\n" for section in sections}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed and memory on real pages."
    )
    parser.add_argument("data", type=Path, help="where scripts/unpack-data put the pages")
    parser.add_argument("--only", choices=BENCHMARKS, help="run one, and keep the figures of the others")
    arguments = parser.parse_args()
    main(arguments.data, arguments.only)
