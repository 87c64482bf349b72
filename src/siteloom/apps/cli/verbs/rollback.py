"""`siteloom rollback`: an earlier version of a wrapper in force again."""

from __future__ import annotations

from typing import Annotated

import typer

from siteloom.apps.cli.source_arguments import verb_context
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
    from siteloom.operations.wrapper_versions import RollbackRequest, rollback

    with verb_context(shell, None) as context:
        result = rollback(context, RollbackRequest(wrapper=wrapper, version=version))
    shell.say(
        f"{wrapper} is as in version {result.restored_version} again, and that is now its version "
        f"{result.version}."
    )
    if result.can_undo:
        shell.say(f"To undo this: siteloom rollback {wrapper} {result.previous_version}")
