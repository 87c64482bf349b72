"""`siteloom ingest`: pages into the workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from siteloom.cli.forget import forget_what_expired
from siteloom.cli.ingested import FailuresOption, SiteOption, tell_ingested
from siteloom.cli.shell import Shell
from siteloom.cli.sources import SOURCE_HELP, why_no_page
from siteloom.errors import SourceError

NAME = "ingest"


def run(
    shell: Shell,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help=f"{SOURCE_HELP}."),
    ],
    site: SiteOption = None,
    resources: Annotated[
        bool,
        typer.Option(
            "--resources", help="Keep stylesheets and images of WARCs too, for showing pages later."
        ),
    ] = False,
    failures: FailuresOption = None,
) -> None:
    """Read pages into the workspace.

    The workspace is made if it is not there. Reading the same pages again changes nothing; a page whose
    content has changed gets a new version. It is safe to stop this at any time and start again.
    -j N compresses so many blocks of pages at once.
    """
    from siteloom.filesystems import shown
    from siteloom.model import Page
    from siteloom.output import check_destination
    from siteloom.pages import open_sources
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
        tell_ingested(shell, store, report, failures)
        forget_what_expired(shell, store)
    if report.kept == 0:
        why = why_no_page(failed=bool(report.failures), skipped=sum(report.skipped.values()))
        raise SourceError(f"No page could be read: {why}.")
