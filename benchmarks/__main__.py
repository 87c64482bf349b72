"""Runs all benchmarks and keeps the figures: `python -m benchmarks DATA`."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from benchmarks import clustering, parsing, starting, storing
from benchmarks.corpus import corpus_sites
from benchmarks.measure import as_table
from siteloom.dom import PARSER

RESULTS = Path(__file__).with_name("results.md")


def main(data: Path) -> None:
    if not corpus_sites(data):
        sys.exit(f"There are no real pages at {data}: benchmarks need them (see scripts/unpack-data).")
    parts = [
        "# Measured speed and memory\n",
        "Made by `make bench`; ratios within one run, CPU seconds of one core.",
        f"Python {platform.python_version()}, {PARSER}.\n",
    ]
    for benchmark in (starting, parsing, storing, clustering):
        table = as_table(benchmark.TITLE, benchmark.figures(data))
        print(table, flush=True)
        parts.append(table)
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
