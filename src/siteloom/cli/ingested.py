"""What became of pages that were put into the workspace, told and written."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.output import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from siteloom.cli.shell import Shell
    from siteloom.model import Failure
    from siteloom.pipeline import IngestReport
    from siteloom.store import Store

FAILURES_SHOWN = 5
"""So many failures tell what is wrong; all of them go to `--failures`."""
_FAILURE_COLUMNS = (Column("url"), Column("reason"), Column("detail"))

SiteOption = Annotated[
    str | None,
    typer.Option(
        "--site", metavar="NAME", help="Put all pages into this site [the domain of each page's URL]."
    ),
]

FailuresOption = Annotated[
    str | None,
    typer.Option(
        "--failures", metavar="FILE", help="Write what failed and why: .jsonl, .csv, .parquet or -."
    ),
]


def tell_ingested(
    shell: Shell, store: Store, report: IngestReport, failures: str | None, title: str = "Ingested into"
) -> None:
    """Show what became of all that was read, and write what failed to a file, if one is named."""
    write_failures(shell, failures, store.failures(report.run_id))
    counts = [
        ("new", report.new),
        ("changed since the last time", report.changed),
        ("unchanged", report.unchanged),
    ]
    if report.resources:
        counts.append(("of these, stylesheets and images", report.resources))
    show_counts(shell, f"{title} {store.folder}", counts, report.failures, report.skipped)
    if report.failures:
        show_first(shell, store.failures(report.run_id))


def write_failures(shell: Shell, destination: str | None, failures: Iterable[Failure]) -> None:
    """Write what failed to a file, if one is named."""
    rows = ({"url": f.url, "reason": f.reason, "detail": f.detail} for f in failures)
    shell.write(destination, _FAILURE_COLUMNS, rows)


def show_counts(
    shell: Shell,
    title: str,
    counts: Iterable[tuple[str, int]],
    failures: Mapping[str, int],
    skipped: Mapping[str, int],
) -> None:
    """Show how many pages there were, and how many failed or were skipped for which reason."""
    rows = [
        *counts,
        *((f"failed: {reason}", count) for reason, count in failures.items()),
        *((f"skipped: {reason}", count) for reason, count in skipped.items()),
    ]
    shell.show(title, ("", "count"), rows)


def show_first(shell: Shell, failures: Iterable[Failure]) -> None:
    """Show the first of what failed."""
    rows = [(f.url, f.reason, f.detail) for f in islice(failures, FAILURES_SHOWN)]
    shell.show("What failed first", ("where", "reason", "detail"), rows)
