"""`siteloom config`: the settings and where they come from."""

from __future__ import annotations

from typing import Annotated

import typer

from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.table_files import Column

NAME = "config"

_COLUMNS = (Column("name"), Column("value"), Column("origin"), Column("help"))
_NOT_TRUSTED = "not trusted, so it does not count"


def run(
    shell: Shell,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Trust the siteloom.toml in this folder as it is now, and show what that allows."
        ),
    ] = False,
    output: OutputOption = None,
) -> None:
    """Show each setting, its value, and where it comes from.

    A setting is given in siteloom.toml (`[parse]`, then `max_bytes = 1000000`), in the environment
    (`SITELOOM_PARSE_MAX_BYTES=1000000`) or, for some, by a flag. The later of these wins.

    What runs programs, removes pages or reaches beyond the folder counts in siteloom.toml only if you trust
    the file: `siteloom config --trust` remembers that you do, until it changes.
    """
    if trust:
        _trust(shell)
        return
    rows = [
        {
            "name": setting.name,
            "value": setting.shown,
            "origin": f"{setting.origin} ({_NOT_TRUSTED})" if setting.needs_trust else setting.origin,
            "help": setting.help,
        }
        for setting in shell.resolved
    ]
    shell.write_or_show(output, "Settings", _COLUMNS, rows)


def _trust(shell: Shell) -> None:
    import os
    from pathlib import Path

    from siteloom.core.settings import SETTINGS_FILE, trust_settings_file

    allowed = trust_settings_file(Path.cwd(), os.environ)
    shell.show("Allowed now", ["name", "value", "help"], ((s.name, s.shown, s.help) for s in allowed))
    shell.say(f"{Path.cwd() / SETTINGS_FILE} is trusted until it changes.")
