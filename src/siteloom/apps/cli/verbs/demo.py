"""`siteloom demo`: run the demo."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError

NAME = "demo"

_CSV_FILE = "siteloom-demo.csv"


def run(
    shell: Shell,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DIR", help="Keep the demo's pages, workspace and CSV file here."),
    ] = None,
) -> None:
    """Show on built-in web sites what Siteloom does, step by step.

    With --verbose, show the details.

    It generates two web sites, imports their pages, learns wrappers, extracts records, changes the sites and
    repairs the wrappers. The records are written to siteloom-demo.csv in the current folder; everything else
    is removed in the end. With --keep, all of it stays in one folder.
    """
    from siteloom.apps.demo.story import Reporter, tell_story

    reporter = Reporter(shell.say, shell.is_verbose)
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="siteloom-demo-") as folder:
            tell_story(reporter, shell.settings, Path(folder), Path(_CSV_FILE))
    elif (Path(keep) / "workspace").exists():
        raise UsageError(f"There is a demo in {keep} already: name another folder, or remove it.")
    else:
        tell_story(reporter, shell.settings, Path(keep), Path(keep) / _CSV_FILE)
