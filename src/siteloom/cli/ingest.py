"""`siteloom ingest`: pages into the workspace."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.cli.shell import Shell
from siteloom.cli.sources import SOURCE_HELP, why_no_page
from siteloom.errors import SourceError
from siteloom.output import Column

if TYPE_CHECKING:
    from siteloom.pipeline import IngestReport
    from siteloom.store import Store

NAME = "ingest"

_FAILURES_SHOWN = 5
_FAILURE_COLUMNS = (Column("url"), Column("reason"), Column("detail"))


def run(
    shell: Shell,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help=f"{SOURCE_HELP}."),
    ],
    site: Annotated[
        str | None,
        typer.Option(
            "--site", metavar="NAME", help="Put all pages into this site [the domain of each page's URL]."
        ),
    ] = None,
    resources: Annotated[
        bool,
        typer.Option(
            "--resources", help="Keep stylesheets and images of WARCs too, for showing pages later."
        ),
    ] = False,
    failures: Annotated[
        str | None,
        typer.Option(
            "--failures", metavar="FILE", help="Write what failed and why: .jsonl, .csv, .parquet or -."
        ),
    ] = None,
) -> None:
    """Read pages into the workspace.

    The workspace is made if it is not there. Reading the same pages again changes nothing; a page
    whose content has changed gets a new version. It is safe to stop this at any time and start again.
    """
    from siteloom.model import Page
    from siteloom.output import check_destination
    from siteloom.pages import open_sources
    from siteloom.pages.remote import shown
    from siteloom.pipeline import ingest

    if failures:
        check_destination(failures)
    opened = open_sources(sources, shell.settings.pages, with_resources=resources)
    with shell.store(create=True) as store:
        with shell.counting("Reading") as count:
            report = ingest(
                store,
                opened,
                site=site,
                jobs=shell.settings.run.jobs,
                names=[shown(source) for source in sources],
                on_item=lambda item: count(1) if isinstance(item, Page) else None,
            )
        failed = (
            {"url": f.url, "reason": f.reason, "detail": f.detail} for f in store.failures(report.run_id)
        )
        shell.write(failures, _FAILURE_COLUMNS, failed)
        _tell(shell, store, report)
    if report.kept == 0:
        why = why_no_page(failed=bool(report.failures), skipped=sum(report.skipped.values()))
        raise SourceError(f"No page could be read: {why}.")


def _tell(shell: Shell, store: Store, report: IngestReport) -> None:
    shell.show(
        f"Ingested into {store.folder}",
        ("", "count"),
        [
            ("new", report.new),
            ("changed since the last time", report.changed),
            ("unchanged", report.unchanged),
            *((f"failed: {reason}", count) for reason, count in report.failures.items()),
            *((f"skipped: {reason}", count) for reason, count in report.skipped.items()),
        ],
    )
    if report.failures:
        shown = list(islice(store.failures(report.run_id), _FAILURES_SHOWN))
        shell.show(
            "What failed first", ("where", "reason", "detail"), [(f.url, f.reason, f.detail) for f in shown]
        )
