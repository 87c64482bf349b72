"""`siteloom status`: what is in the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.apps.cli.source_arguments import verb_context
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.table_files import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from siteloom.operations.status import SiteStatus
    from siteloom.store.queries.sites import Site

NAME = "status"

_COLUMNS = (
    Column("site"),
    Column("pages", "integer"),
    Column("versions", "integer"),
    Column("bytes", "integer"),
    Column("packed_bytes", "integer"),
    Column("annotated", "integer"),
    Column("wrappers", "integer"),
)


def run(shell: Shell, output: OutputOption = None) -> None:
    """Show the sites in the workspace and the latest runs."""
    from siteloom.operations.status import status

    with verb_context(shell, None) as context:
        result = status(context)
    if output is not None:
        names = [column.name for column in _COLUMNS]
        shell.write(
            output, _COLUMNS, ({name: getattr(site, name) for name in names} for site in result.sites)
        )
    elif not result.sites:
        shell.say(f"The workspace at {context.store.folder} is empty. Next: siteloom ingest FOLDER_OR_FILE")
    else:
        _show_sites(shell, ((site.site, site) for site in result.sites))
        runs = (
            (str(run.id), run.verb, f"{run.started_at:%Y-%m-%d %H:%M:%S}", run.status, _in_words(run.counts))
            for run in result.runs
        )
        shell.show("Latest runs", ("run", "verb", "started", "status", "result"), runs)


def show_sites(shell: Shell, sites: Iterable[Site]) -> None:
    """Print a table of sites."""
    _show_sites(shell, ((site.name, site) for site in sites))


def _show_sites(shell: Shell, sites: Iterable[tuple[str, Site | SiteStatus]]) -> None:
    rows = (
        (
            name,
            site.pages,
            site.versions,
            site.bytes / 1e6,
            site.bytes / max(1, site.packed_bytes),
            site.annotated,
            site.wrappers,
        )
        for name, site in sites
    )
    header = ("site", "pages", "versions", "MB", "times smaller packed", "annotated", "wrappers")
    shell.show("Sites", header, rows)


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
