"""`siteloom ingest`: pages into the workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from siteloom.apps.cli.result_tables import FailuresOption, SiteOption, tell_ingested
from siteloom.apps.cli.source_arguments import SOURCE_HELP, no_page_read
from siteloom.apps.cli.terminal import Shell
from siteloom.apps.cli.verbs.forget import forget_what_expired

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
    from siteloom.core.model import Page
    from siteloom.core.remote_files import shown
    from siteloom.core.table_files import check_destination
    from siteloom.operations.ingest import ingest
    from siteloom.sources.open_sources import open_sources

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
        raise no_page_read(failed=bool(report.failures), skipped=sum(report.skipped.values()))
