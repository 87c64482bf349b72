"""`siteloom status`: what is in the workspace."""

from __future__ import annotations

from siteloom.cli.shell import OutputOption, Shell
from siteloom.output import Column

NAME = "status"

_COLUMNS = (
    Column("site"),
    Column("pages", "integer"),
    Column("versions", "integer"),
    Column("bytes", "integer"),
    Column("packed_bytes", "integer"),
)
_RUNS_SHOWN = 5


def run(shell: Shell, output: OutputOption = None) -> None:
    """Show the sites in the workspace and the latest runs."""
    from siteloom.store import open_store

    store = open_store(shell.settings.store)
    sites = store.sites()
    shell.write(output, _COLUMNS, ({"site": site.name, **site._asdict()} for site in sites))
    if output is None:
        if store.backup:
            shell.say(f"The workspace was upgraded; its state before is kept in {store.backup}.")
        if not sites:
            shell.say(f"The workspace at {store.folder} is empty. Next: siteloom ingest FOLDER_OR_FILE")
            return
        rows = (
            (site.name, site.pages, site.versions, site.bytes / 1e6, site.bytes / max(1, site.packed_bytes))
            for site in sites
        )
        shell.show("Sites", ("site", "pages", "versions", "MB", "times smaller packed"), rows)
        shell.show(
            "Latest runs",
            ("run", "verb", "started", "status", "result"),
            (
                (str(r.id), r.verb, f"{r.started_at:%Y-%m-%d %H:%M:%S}", r.status, _in_words(r.counts))
                for r in store.runs(_RUNS_SHOWN)
            ),
        )
    store.close()


def _in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
