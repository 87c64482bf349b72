"""`siteloom init`: make a workspace."""

from __future__ import annotations

from siteloom.cli.shell import Shell

NAME = "init"


def run(shell: Shell) -> None:
    """Make a workspace: the folder in which Siteloom keeps pages and what it learns about them."""
    from siteloom.store import workspace_exists

    existed = workspace_exists(shell.settings.store)
    with shell.store(create=True) as store:
        if existed:
            shell.say(f"There is a workspace at {store.folder} already; its pages stay as they are.")
        else:
            shell.say(f"Made a workspace at {store.folder}. Next: siteloom ingest FOLDER_OR_FILE")
