"""Runs evaluations and compares them with their floors: `python -m evals DATA [--only NAME] [--update]`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from evals import (
    change,
    changed_sites,
    clustering,
    comparison,
    discovery,
    exports,
    floors,
    learning,
    lifetime,
    matching,
    mutations,
    reachable,
    redundancy,
    search,
    text,
)
from evals.swde import fingerprint

_EVALUATIONS = {
    "reachable": reachable.figures,
    "clustering": clustering.figures,
    "learning": learning.figures,
    "matching": matching.figures,
    "change": change.figures,
    "mutations": mutations.figures,
    "changed-sites": changed_sites.figures,
    "lifetime": lifetime.figures,
    "redundancy": redundancy.figures,
    "discovery": discovery.figures,
    "search": search.figures,
    "exports": exports.figures,
    "text": text.figures,
    "comparison": comparison.figures,
}


def main(data: Path, only: str | None, update: bool, allow_regression: bool) -> None:
    if not (data / "swde").is_dir() or not (data / "change").is_dir():
        sys.exit(f"There are no real pages at {data}: evaluations need them (see scripts/unpack-data).")
    figures: dict[str, float] = {}
    for name, evaluate in _EVALUATIONS.items():
        if only in (None, name):
            figures |= evaluate(data)
    print(json.dumps(figures, indent=2))
    try:
        if update:
            floors.update(fingerprint(data), figures, allow_regression, is_part=only is not None)
        else:
            floors.check(fingerprint(data), figures, is_part=only is not None)
    except floors.FloorError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m evals", description="Accuracy on real pages.")
    parser.add_argument("data", type=Path, help="where scripts/unpack-data put the pages")
    parser.add_argument("--only", choices=list(_EVALUATIONS), help="run one evaluation alone")
    parser.add_argument("--update", action="store_true", help="make the figures the floors")
    parser.add_argument("--allow-regression", action="store_true", help="even where that lowers a floor")
    arguments = parser.parse_args()
    main(arguments.data, arguments.only, arguments.update, arguments.allow_regression)
