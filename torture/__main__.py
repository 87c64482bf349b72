"""Does all of it, or some parts: `python -m torture [PART...] [--effort 0.1] [--seed 1]`.

What came of each part is kept, so that parts can be run one at a time, and the page is written anew of all.
"""

from __future__ import annotations

import argparse
import platform
import sqlite3
import sys
import tempfile
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from siteloom import __version__
from siteloom.html.parser import PARSER
from torture.ordeals import PartReport, Plan, as_page

if TYPE_CHECKING:
    from torture.ordeals import Ordeal, Part

PARTS = ("fuzzing", "kills", "disks", "concurrency", "crawl", "users", "api")
KEPT = Path("build/torture")
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
INTRODUCTION = (Path(__file__).parent / "introduction.md").read_text(encoding="utf-8")


def main(names: list[str], effort: float, seed: int) -> int:
    """Do some parts; returns the exit status."""
    KEPT.mkdir(parents=True, exist_ok=True)
    is_borne = True
    for name in names:
        part = cast("Part", import_module(f"torture.{name}"))
        print(f"## {part.TITLE}", flush=True)
        with tempfile.TemporaryDirectory(prefix="siteloom-torture-") as folder:
            done = [_told(ordeal) for ordeal in part.ordeals(Plan(effort, seed, Path(folder)))]
        is_borne = is_borne and all(ordeal.is_borne for ordeal in done)
        today = datetime.now(UTC).date().isoformat()
        report = PartReport(part.TITLE, seed, effort, today, _versions(), done)
        (KEPT / f"{name}.json").write_text(report.to_json(), encoding="utf-8")
    files = [KEPT / f"{name}.json" for name in PARTS]
    reports = [PartReport.from_json(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    PAGE.write_text(as_page(INTRODUCTION, reports), encoding="utf-8")
    return 0 if is_borne else 1


def _told(ordeal: Ordeal) -> Ordeal:
    verdict = "borne" if ordeal.is_borne else "NOT BORNE"
    print(
        f"{verdict}: {ordeal.what}: {ordeal.how_often}; {ordeal.found} ({ordeal.seconds:.0f} s)", flush=True
    )
    return ordeal


def _versions() -> str:
    python, sqlite = platform.python_version(), sqlite3.sqlite_version
    return f"Siteloom {__version__}, Python {python}, {PARSER}, SQLite {sqlite}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m torture", description="Does its worst to Siteloom.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named"
    )
    parser.add_argument("--effort", type=float, default=1.0, help="share of the full counts")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: name {', '.join(PARTS)}")
    sys.exit(main(arguments.parts or list(PARTS), arguments.effort, arguments.seed))
