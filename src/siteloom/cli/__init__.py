"""The command line: one small file a verb, each a thin shell around the functions of the package.

A verb is listed by its line in `VERBS`; its module is imported when the verb is called. Verbs import what
they need inside their functions, so that help need not wait for databases and parsers to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import siteloom
from siteloom.cli.options import PROGRAM, CommonOptions, common_options

VERBS = {
    "demo": "Show on built-in web sites what Siteloom does, step by step.",
    "init": "Make a workspace: the folder in which Siteloom keeps pages and what it learns about them.",
    "ingest": "Read pages into the workspace.",
    "crawl": "Fetch pages from the web into the workspace.",
    "status": "Show the sites in the workspace and the latest runs.",
    "cluster": "Find the templates of pages: which were made alike, and what they share.",
    "template": (
        "Show the template of each cluster: its essential paths as a tree, and the text that its pages share."
    ),
    "discover": "Show what varies between the pages of a cluster as a table, with no examples.",
    "clean": "Clean pages of their template: the text that is on them because of their site.",
    "sample": "Choose the pages to annotate first: those that together show most of what differs.",
    "examples": "Make examples of what another scraper was taught, for siteloom learn.",
    "learn": "Learn wrappers from pages whose values are known.",
    "extract": "Extract the records of pages, each by the wrapper that it is for.",
    "export": "Write a wrapper as XSLT, as XPath in JSON, as a Scrapy spider or as a web-poet page object.",
    "explain": "Show which wrapper a page is for and why, and where each value came from.",
    "watch": "Choose the pages of each wrapper by which changes of its site are noticed.",
    "monitor": (
        "Compare pages with how they were when they were chosen to be watched, and tell what changed."
    ),
    "relearn": "Reuse or repair wrappers after a change, from the records that are known.",
    "history": "Show the versions of wrappers, why each was made, and what checks found.",
    "rollback": "Put an earlier version of a wrapper in force again.",
    "seeds": "Keep known records in the workspace, by which new sites are wrapped, or show which there are.",
    "bootstrap": "Wrap sites from records that are known from elsewhere, without any annotation.",
    "entities": "Find which records of several sources are about the same thing, and where they differ.",
    "search": "Search pages and records for words; the best hits come first.",
    "serve": "Show the workspace in a browser: sites, templates, pages to annotate, jobs and records.",
    "user": "Show and change who may sign in to the server, and what they may do.",
    "backup": "Copy the whole workspace to a folder, while others go on working with it.",
    "forget": "Remove sites or pages from the workspace, with all that came from them.",
    "doctor": "Check the installation and, if there is a workspace, every page in it.",
    "config": "Show each setting, its value, and where the value comes from.",
}
"""Each verb, which is the name of its module too, and the first line of its help; help lists them so."""


class _Verb(TyperCommand):
    """A verb of which only the name and a line of help are known until it is called."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the whole verb, which then takes the place of this one."""
        assert self.name is not None
        return command_of(self.name).make_context(*arguments, **options)


def command_of(name: str) -> TyperCommand:
    """A verb with all its arguments and options."""
    from siteloom.cli.shell import verb

    module = import_module(f"{__name__}.{name}")
    whole = typer.Typer(add_completion=False, rich_markup_mode=None)
    whole.command(module.NAME)(verb(module.run))
    command = typer.main.get_command(whole)
    assert isinstance(command, TyperCommand)
    return command


class _Verbs(TyperGroup):
    """All verbs of the table."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, line in VERBS.items():
            self.add_command(_Verb(name, help=line))


# Help is plain text: drawing it with rich would make it twice as slow to appear.
app = typer.Typer(
    name=PROGRAM, cls=_Verbs, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
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

    Start with `siteloom demo`, which shows what Siteloom does on a built-in site. To work on
    pages of your own: `siteloom init`, then `siteloom ingest FOLDER_OR_FILE`, then `siteloom status`.
    """
    context.obj = options


def main() -> None:
    """The entry point of the `siteloom` command."""
    app()
