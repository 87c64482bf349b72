"""`siteloom config`: the settings and where they come from."""

from __future__ import annotations

from siteloom.cli.shell import OutputOption, Shell
from siteloom.output import Column

NAME = "config"

_COLUMNS = (Column("name"), Column("value"), Column("origin"), Column("help"))


def run(shell: Shell, output: OutputOption = None) -> None:
    """Show each setting, its value, and where the value comes from.

    A setting is given in siteloom.toml (`[parse]`, then `max_bytes = 1000000`), in the environment
    (`SITELOOM_PARSE_MAX_BYTES=1000000`) or, for some, by a flag. The later of these wins.
    """
    shell.write(output, _COLUMNS, ({**s._asdict(), "value": s.shown} for s in shell.resolved))
    if output is None:
        rows = ((s.name, s.shown, s.origin, s.help) for s in shell.resolved)
        shell.show("Settings", [column.name for column in _COLUMNS], rows)
