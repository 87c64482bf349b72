"""`siteloom forget`: erase sites and pages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import show_forgotten
from siteloom.apps.cli.source_arguments import verb_context
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError

if TYPE_CHECKING:
    from siteloom.operations.forget import ForgetPreview

NAME = "forget"


def run(
    shell: Shell,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SITE_OR_URL",
            help="A site as siteloom status shows it, or the URL of a page.",
            show_default=False,
        ),
    ] = None,
    expired: Annotated[
        bool,
        typer.Option("--expired", help="What the settings of retention say was kept for long enough."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show how much of each kind would be removed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Remove sites or pages, with everything derived from them.

    This removes all versions of the pages, their records in every run, annotations, watched pages, known
    records, entities and entries of the search index; with a site, its wrappers, too. Files written with -o
    and backups are not touched. This cannot be undone. It is safe to stop it at any time and start again.
    """
    from siteloom.operations.forget import ForgetRequest, forget, preview

    if bool(names) == expired:
        raise UsageError("Name the sites or URLs to forget, or give --expired, and not both.")
    request = ForgetRequest(names=tuple(names or ()), expired=expired)
    with verb_context(shell, None) as context:
        if dry_run:
            show_forgotten(shell, "What would be removed", preview(context, request), is_done=False)
            return
        if not yes:
            _confirm(shell, preview(context, request))
        result = forget(context, request)
    show_forgotten(shell, "Removed", result)


def _confirm(shell: Shell, would: ForgetPreview) -> None:
    """Have a person at a terminal look at what would be removed; without one, --yes is needed."""
    if not sys.stdin.isatty():
        raise UsageError("This cannot be undone: give --yes, or look first with --dry-run.")
    show_forgotten(shell, "What will be removed", would, is_done=False)
    typer.confirm("Forget all this? It cannot be undone.", abort=True, err=True)
