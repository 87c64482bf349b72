"""`siteloom status`: what is in the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.table_files import Column

if TYPE_CHECKING:
    from collections.abc import Iterable

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
_RUNS_SHOWN = 5


def run(shell: Shell, output: OutputOption = None) -> None:
    """Show the sites in the workspace and the latest runs."""
    with shell.store() as store:
        sites = store.sites()
        shell.write(output, _COLUMNS, ({"site": site.name, **site._asdict()} for site in sites))
        if output is None and not sites:
            shell.say(f"The workspace at {store.folder} is empty. Next: siteloom ingest FOLDER_OR_FILE")
        elif output is None:
            show_sites(shell, sites)
            runs = (
                (str(r.id), r.verb, f"{r.started_at:%Y-%m-%d %H:%M:%S}", r.status, _in_words(r.counts))
                for r in store.runs(_RUNS_SHOWN)
            )
            shell.show("Latest runs", ("run", "verb", "started", "status", "result"), runs)


def show_sites(shell: Shell, sites: Iterable[Site]) -> None:
    """Print a table of sites."""
    rows = (
        (
            site.name,
            site.pages,
            site.versions,
            site.bytes / 1e6,
            site.bytes / max(1, site.packed_bytes),
            site.annotated,
            site.wrappers,
        )
        for site in sites
    )
    header = ("site", "pages", "versions", "MB", "times smaller packed", "annotated", "wrappers")
    shell.show("Sites", header, rows)


def _in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
