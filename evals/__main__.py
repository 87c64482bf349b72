"""Runs all evaluations and compares them with their floors: `python -m evals DATA [--update]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evals.reachable import measure
from evals.swde import fingerprint

FLOORS = Path(__file__).with_name("floors.json")


def main(data: Path, update: bool) -> None:
    if not (data / "swde").is_dir():
        sys.exit(f"There are no real pages at {data}: evaluations need them (see scripts/unpack-data).")
    corpus = fingerprint(data)
    rows = list(measure(data))
    print("True values that are text nodes of their pages\n")
    print(f"{'site':30} {'values':>8} {'found':>8} {'share':>7} {'unparsed pages':>15}")
    for row in rows:
        share = row.found / max(1, row.values)
        print(f"{row.site:30} {row.values:8,} {row.found:8,} {share:7.4f} {row.unparsed:15}")
    figures = {
        "reachable_values": round(sum(row.found for row in rows) / sum(row.values for row in rows), 4),
        "parsed_sites": sum(row.unparsed == 0 for row in rows),
    }
    print(json.dumps(figures))

    floors = json.loads(FLOORS.read_text(encoding="utf-8"))
    if update:
        FLOORS.write_text(
            json.dumps({"corpus": corpus, "floors": figures}, indent=2) + "\n", encoding="utf-8"
        )
    elif floors["corpus"] != corpus:
        sys.exit(
            f"The floors belong to another corpus ({floors['corpus']}, this is {corpus}): run with --update."
        )
    elif low := {name: floor for name, floor in floors["floors"].items() if figures[name] < floor}:
        sys.exit(f"Below the floor: {low}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), update="--update" in sys.argv[2:])
