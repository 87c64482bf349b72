"""`siteloom ingest`: import pages."""

from __future__ import annotations

from typing import Annotated

import typer

from siteloom.apps.cli.result_tables import FailuresOption, SiteOption, show_imported, write_failures
from siteloom.apps.cli.source_arguments import SOURCE_HELP, no_page_read, verb_context
from siteloom.apps.cli.terminal import Shell

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
    """Import pages into the workspace.

    The workspace is created if it does not exist. Importing the same pages again changes nothing; a page
    whose content has changed gets a new version, and if it is watched, it is compared with the one before.
    It is safe to stop this at any time and start again. -j N compresses N blocks of pages at once.
    """
    from siteloom.core.errors import NoPageImported
    from siteloom.core.remote_files import shown
    from siteloom.core.table_files import check_destination
    from siteloom.operations.ingest import IngestRequest, ingest
    from siteloom.sources.open_sources import open_sources

    if failures:
        check_destination(failures)
    request = IngestRequest(
        sources=tuple(open_sources(sources, shell.settings.pages, with_resources=resources)),
        names=tuple(shown(source) for source in sources),
        site=site,
    )
    is_empty = False
    with verb_context(shell, None, create=True) as context:
        try:
            result = ingest(context, request)
        except NoPageImported as error:
            result, is_empty = error.result, True
        write_failures(shell, failures, context.store.failures(result.run))
    show_imported(shell, result, f"Ingested into {context.store.folder}")
    if is_empty:
        raise no_page_read(failed=bool(result.failures), skipped=sum(result.skipped.values()))
