"""The command line: one small file a verb, each a thin shell around the functions of the package.

A verb is listed by its line in `VERBS`; its module is imported when the verb is called. Verbs import what
they need inside their functions, so that help need not wait for databases and parsers to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

import siteloom
from siteloom.apps.cli.terminal import PROGRAM, CommonOptions, common_options
from siteloom.apps.cli.verbs import VERBS
from siteloom.core.terminal_text import guard_process


class VerbCommand(TyperCommand):
    """A verb with all its arguments and options, and help in which arguments look as they are typed."""

    def collect_usage_pieces(self, *_: Any) -> list[str]:
        """What follows the name of the verb."""
        return ["[OPTIONS]", *map(usage_of, self._arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what each argument and each option means."""
        options = [one.get_help_record(ctx) for one in self.get_params(ctx) if one not in self._arguments]
        if self._arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(one.metavar or "", one.help or "") for one in self._arguments])
        with formatter.section("Options"):
            formatter.write_dl([one for one in options if one is not None])

    @property
    def _arguments(self) -> list[TyperArgument]:
        return [one for one in self.params if isinstance(one, TyperArgument)]


def usage_of(argument: TyperArgument) -> str:
    """An argument as it stands behind its verb: in brackets if it may be left out."""
    name = argument.metavar or ""
    return (name if argument.required else f"[{name}]") + ("..." if argument.nargs != 1 else "")


class _Verb(TyperCommand):
    """A verb of which only the name and a line of help are known until it is called."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the whole verb, which then takes the place of this one."""
        assert self.name is not None
        return command_of(self.name).make_context(*arguments, **options)


def command_of(name: str) -> VerbCommand:
    """A verb as a whole."""
    from siteloom.apps.cli.terminal import verb

    module = import_module(f"siteloom.apps.cli.verbs.{name}")
    whole = typer.Typer(add_completion=False, rich_markup_mode=None)
    whole.command(module.NAME, cls=VerbCommand)(verb(module.run))
    command = typer.main.get_command(whole)
    assert isinstance(command, VerbCommand)
    return command


class _Verbs(TyperGroup):
    """All verbs of the table."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, line in VERBS.items():
            self.add_command(_Verb(name, help=line))


# Help is plain text: drawing it with rich would make it twice as slow to appear.
app = typer.Typer(
    name=PROGRAM,
    cls=_Verbs,
    subcommand_metavar="VERB [ARGUMENTS]...",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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

    Start with siteloom demo, which shows what Siteloom does on built-in web sites. To work on pages of your
    own: siteloom init, then siteloom ingest FOLDER_OR_FILE, then siteloom status. siteloom VERB --help
    explains a verb.

    A verb that takes SOURCE reads only that and writes only -o; without, it works on the workspace. Data goes
    to -o FILE, in the format that the name ends in (.jsonl, .csv, .parquet, or - for JSON Lines on standard
    output), here or elsewhere, such as s3://bucket/records.parquet; a file appears whole or not at all.
    Messages, tables and progress go to standard error. The exit status is 0 if all went well, 1 if something
    failed, 2 if the call itself was wrong, and 130 after Ctrl-C.
    """
    context.obj = options


def main() -> None:
    """The entry point of the `siteloom` command."""
    guard_process()
    app()
