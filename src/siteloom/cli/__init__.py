"""The command line: one small file a verb, each a thin shell around the functions of the package.

Verbs import what they need inside their functions, so that `siteloom --help`
need not wait for databases and parsers to load.
"""

from __future__ import annotations

from typing import Annotated

import typer

import siteloom
from siteloom.cli import cluster, config, demo, doctor, ingest, init, status, template
from siteloom.cli.shell import PROGRAM, CommonOptions, common_options, verb

_VERBS = (demo, init, ingest, status, cluster, template, doctor, config)

# Help is plain text: drawing it with rich would make it twice as slow to appear.
app = typer.Typer(name=PROGRAM, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {siteloom.__version__}")
        raise typer.Exit


@app.callback()
@common_options
def _common(
    context: typer.Context,
    options: CommonOptions,
    version: Annotated[  # noqa: ARG001 - acts by its callback
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Turn whole template-based web sites into structured records.

    Start with `siteloom demo`, which shows what Siteloom does on a built-in site. To work on
    pages of your own: `siteloom init`, then `siteloom ingest FOLDER_OR_FILE`, then `siteloom status`.
    """
    context.obj = options


for _module in _VERBS:
    app.command(_module.NAME)(verb(_module.run))


def main() -> None:
    """The entry point of the `siteloom` command."""
    app()
