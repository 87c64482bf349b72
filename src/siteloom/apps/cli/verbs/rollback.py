"""`siteloom rollback`: an earlier version of a wrapper in force again."""

from __future__ import annotations

from typing import Annotated

import typer

from siteloom.apps.cli.terminal import Shell

NAME = "rollback"


def run(
    shell: Shell,
    wrapper: Annotated[
        str, typer.Argument(metavar="WRAPPER", help="A wrapper of the workspace by its name.")
    ],
    version: Annotated[
        int | None,
        typer.Argument(
            metavar="VERSION", help="The one before the newest, if none is named.", show_default=False
        ),
    ] = None,
) -> None:
    """Put an earlier version of a wrapper in force again.

    It becomes the newest version, so that nothing is lost, and this can be undone the same way.
    """
    from siteloom.operations.relearn import roll_back
    from siteloom.operations.watch import watch_again
    from siteloom.store.queries.wrappers import WITHDRAWN

    with shell.store() as store:
        before = store.wrapper(wrapper)
        old, new = roll_back(store, wrapper, version)
        shell.say(f"{wrapper} is as in version {old} again, and that is now its version {new}.")
        if before.origin != WITHDRAWN:
            shell.say(f"To undo this: siteloom rollback {wrapper} {before.version}")
        watch_again(store, wrapper)
