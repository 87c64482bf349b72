"""`siteloom init`: make a workspace."""

from __future__ import annotations

from siteloom.apps.cli.terminal import Shell

NAME = "init"


def run(shell: Shell) -> None:
    """Make a workspace, the folder that keeps pages and wrappers.

    Verbs that take pages in make it, too, if it is not there. --workspace names another folder than
    .siteloom, --store a PostgreSQL database for its tables.
    """
    from siteloom.store.workspace_folder import workspace_exists

    existed = workspace_exists(shell.settings.store)
    with shell.store(create=True) as store:
        if existed:
            shell.say(f"There is a workspace at {store.folder} already; its pages stay as they are.")
        else:
            shell.say(f"Made a workspace at {store.folder}. Next: siteloom ingest FOLDER_OR_FILE")
